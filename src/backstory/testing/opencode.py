"""The real OpenCode, run headless in throw-away folders: no network, no npm, nothing of the user's own configuration.

    with ScriptedModel() as model:
        opencode = OpenCode(tmp_path, model.url)
        project = opencode.project()
        opencode.install_plugin(PLUGIN, sidecar)
        print(opencode.run("hello", cwd=project).text)       # one process for one prompt, 3 to 7 s
        with opencode.serve(cwd=project) as server:          # one process for many prompts
            session = server.create_session()
            server.prompt(session, "hello")

One ``OpenCode`` is one home: its sessions outlive a process, so a second ``run`` or ``serve`` is a restart, and two at
once share the store. Projects, git worktrees and subfolders are told apart by ``cwd``.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from backstory.testing.opencode_binary import find_opencode
from backstory.testing.opencode_config import (
    NO_GIT_IDENTITY,
    OFFLINE,
    Json,
    scripted_config,
    seed_node_modules,
)
from backstory.testing.opencode_server import PROMPT_TIMEOUT_S, Server

T = TypeVar("T")
_AUTHOR = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.invalid")
_INHERITED = ("PATH", "LANG", "LC_ALL", "TERM", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


def wait_for(what: Callable[[], T], *, timeout_s: float = 60.0) -> T:
    """Call ``what`` every 50 ms until it returns something true, and return that; after the timeout, the last value."""
    end = time.monotonic() + timeout_s
    while not (value := what()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one ``opencode run`` left behind. ``events`` are its JSON lines, in order."""

    exit_code: int
    events: tuple[Json, ...]
    stderr: str
    duration_s: float

    @property
    def text(self) -> str:
        """What the assistant said."""
        return "".join(event["part"]["text"] for event in self.events if event.get("type") == "text")

    @property
    def session(self) -> str:
        """The session's id; an AssertionError when the run never got one."""
        ids = [event["sessionID"] for event in self.events if event.get("sessionID")]
        assert ids, f"no session: exit code {self.exit_code}, {self.stderr[-1000:]}"
        return str(ids[0])


class OpenCode:
    """One isolated home below ``root``, whose only model is the one at ``model_url``.

    ``environ`` is added to the environment of every process. ``context_limit_tokens`` is how much the model is said to
    take before OpenCode compacts. The binary is found by ``find_opencode`` unless given; raises OpenCodeMissing.
    """

    def __init__(
        self,
        root: Path,
        model_url: str,
        *,
        binary: Path | None = None,
        environ: Mapping[str, str] | None = None,
        config: Mapping[str, Json] | None = None,
        context_limit_tokens: int = 200_000,
    ) -> None:
        self.binary = binary or find_opencode()
        self.root = root.resolve()
        self.home = self.root / "home"
        self.config_folder = self.home / ".config" / "opencode"
        self.config_folder.mkdir(parents=True, exist_ok=True)
        seed_node_modules(self.config_folder)
        # Outside the configuration folder, which thereby belongs to whatever is being installed and tested.
        self._config_file = self.root / "scripted.json"
        self._config_file.write_text(json.dumps(scripted_config(model_url, context_limit_tokens) | dict(config or {})))
        self._environ = dict(environ or {})

    def environment(self, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """The whole environment of a process in this home; nothing but a few neutral variables is inherited."""
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        home = str(self.home)
        places = {
            "HOME": home,
            "OPENCODE_TEST_HOME": home,
            "OPENCODE_CONFIG": str(self._config_file),
            "XDG_CONFIG_HOME": f"{home}/.config",
            "XDG_DATA_HOME": f"{home}/.local/share",
            "XDG_STATE_HOME": f"{home}/.local/state",
            "XDG_CACHE_HOME": f"{home}/.cache",
            "TMPDIR": str(self.root),
        }
        return {**inherited, **OFFLINE, **NO_GIT_IDENTITY, **places, **self._environ, **(environ or {})}

    def project(self, name: str = "project", *, git: bool = True, files: Mapping[str, str] | None = None) -> Path:
        """Make a folder with the given files, committed to a new git repository unless ``git`` is False."""
        folder = self.root / name
        folder.mkdir()
        for path, text in (files or {}).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        if git:
            self.git(folder, "init", "-q", "-b", "main")
            self.git(folder, "add", "-A")
            self.git(folder, "commit", "-q", "--allow-empty", "-m", f"Start {name}")
        return folder

    def worktree(self, project: Path, name: str) -> Path:
        """Add a git worktree of ``project`` on a new branch, beside it."""
        folder = self.root / name
        self.git(project, "worktree", "add", "-q", "-b", name, str(folder))
        return folder

    def git(self, folder: Path, *arguments: str) -> str:
        """Run git in ``folder`` and return what it printed; CalledProcessError when it fails."""
        command = ["git", *_AUTHOR, *arguments]
        return subprocess.run(
            command, cwd=folder, env=self.environment(), check=True, capture_output=True, text=True
        ).stdout.strip()

    def install_plugin(
        self, plugin: Path, sidecar: Mapping[str, Json] | None, *, below: Path | None = None, name: str = "backstory.js"
    ) -> Path:
        """Copy a plugin file to ``plugins/NAME`` and write its sidecar beside it, without any installer.

        ``below`` is a configuration folder: the global one by default, or a project's ``.opencode``; it is seeded too.
        """
        folder = below or self.config_folder
        seed_node_modules(folder)
        target = folder / "plugins" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(plugin, target)
        if sidecar is not None:
            target.with_name("backstory.json").write_text(json.dumps(sidecar))
        return target

    def run(
        self,
        prompt: str,
        *,
        cwd: Path,
        session: str | None = None,
        environ: Mapping[str, str] | None = None,
        timeout_s: float = PROMPT_TIMEOUT_S,
    ) -> Run:
        """``opencode run``: one prompt, in a new session or in ``session``; a process that hangs is killed.

        OpenCode puts quotes around a prompt that has spaces.
        """
        command = ["run", "--format", "json", *(["--session", session] if session else []), prompt]
        started = time.monotonic()
        process = self._start(command, cwd=cwd, environ=environ)
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            err += f"\nkilled after {timeout_s} s"
        events = tuple(json.loads(line) for line in out.splitlines() if line.startswith("{"))
        return Run(exit_code=process.returncode, events=events, stderr=err, duration_s=time.monotonic() - started)

    def serve(self, *, cwd: Path, environ: Mapping[str, str] | None = None) -> Server:
        """``opencode serve``: a process that takes many prompts over HTTP. Use it as a context manager."""
        return Server(self._start(["serve", "--port", "0"], cwd=cwd, environ=environ), directory=cwd)

    def _start(self, command: Sequence[str], *, cwd: Path, environ: Mapping[str, str] | None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.binary), *command],
            cwd=cwd,
            env=self.environment(environ) | {"PWD": str(cwd)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
