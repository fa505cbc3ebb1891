"""The command line run in the test's own process, in a new project with a store of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backstory.domain.ids import ProjectId
from backstory.entrypoints.cli.main import main

KNOWN = "The gate is oiled in spring"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a command said, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


class CommandLine:
    """A person in the folder ``home``/``name``, whose store holds one memory (``KNOWN``), found by words alone."""

    def __init__(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, name: str
    ) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch
        folder = home / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        self.set(HOME=str(home / "store"), NO_BACKGROUND="1", RECALL_MODE="lexical")
        self.ok("remember", KNOWN)
        self.project = ProjectId(self.json("status")["project"]["id"])
        self.path = home / "store" / "backstory.db"

    def set(self, **settings: str) -> None:
        """Variables of the environment, named without their prefix."""
        for name, value in settings.items():
            self._monkeypatch.setenv(f"BACKSTORY_{name}", value)

    def run(self, *arguments: str) -> Done:
        self._capsys.readouterr()
        code = main(arguments)
        out, err = self._capsys.readouterr()
        return Done(returncode=code, stdout=out, stderr=err)

    def ok(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *arguments: str) -> Any:  # Any: JSON of any shape
        return json.loads(self.ok(*arguments, "--json"))
