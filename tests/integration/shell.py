"""The command line as a person runs it: a process for each command, in a home of its own.

Test modules take the fixture by its name.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Shell:
    """A person's shell in a project of theirs. What a command starts in the background is switched off."""

    home: Path
    folder: Path
    variables: dict[str, str] = field(default_factory=lambda: {"BACKSTORY_NO_BACKGROUND": "1"})

    @property
    def env(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BACKSTORY_", "NO_COLOR"))}
        return {**kept, "BACKSTORY_HOME": str(self.home), "COLUMNS": "100", "TERM": "xterm-256color", **self.variables}

    def command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "backstory", *args]

    def run(self, *args: str, stdin: str | bytes = b"") -> subprocess.CompletedProcess[str]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            self.command(*args), input=data, capture_output=True, cwd=self.folder, env=self.env, timeout=240
        )
        encoding = self.variables.get("PYTHONIOENCODING", "utf-8")
        stdout, stderr = done.stdout.decode(encoding), done.stderr.decode(encoding)
        return subprocess.CompletedProcess(args, done.returncode, stdout, stderr)

    def ok(self, *args: str, stdin: str | bytes = b"") -> str:
        done = self.run(*args, stdin=stdin)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def json(self, *args: str, stdin: str | bytes = b"") -> Any:  # Any: JSON of any shape
        return json.loads(self.ok(*args, "--json", stdin=stdin))

    def error(self, *args: str, stdin: str | bytes = b"") -> dict[str, Any]:
        done = self.run(*args, "--json", stdin=stdin)
        assert done.stdout == ""
        told: dict[str, Any] = json.loads(done.stderr)["error"]
        assert set(told) - {"candidates"} == {"type", "message", "field", "hint", "exit_code"}
        assert done.returncode == told["exit_code"]
        return told

    def on_a_terminal(self, *args: str) -> str:
        """What the command prints where standard output is a terminal."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            self.command(*args), stdin=theirs, stdout=theirs, stderr=theirs, cwd=self.folder, env=self.env
        )
        os.close(theirs)
        printed = b""
        while chunk := _read(ours):
            printed += chunk
        os.close(ours)
        assert process.wait(timeout=240) == 0
        return printed.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux: the other side is closed
        return b""


def eventually(holds: Callable[[], bool], *, seconds: float = 60) -> bool:
    """Whether something comes true within a time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    folder = tmp_path / "orchard"
    folder.mkdir()
    return Shell(home=tmp_path / "home", folder=folder)
