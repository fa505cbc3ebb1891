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
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeVar

from backstory.testing.opencode_binary import find_opencode

T = TypeVar("T")
Json = Any  # whatever the HTTP API answers; tests reach into it at any depth

PROVIDER = "scripted"
MODEL = "main"
SMALL_MODEL = "small"
OUTPUT_LIMIT_TOKENS = 4096
START_TIMEOUT_S = 60
PROMPT_TIMEOUT_S = 120

_OFFLINE = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_SHARE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "OPENCODE_DISABLE_TERMINAL_TITLE": "1",
    "OPENCODE_DISABLE_CLAUDE_CODE": "1",
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
}
_NO_GIT_IDENTITY = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}
_AUTHOR = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.invalid")
_INHERITED = ("PATH", "LANG", "LC_ALL", "TERM", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


def wait_for(what: Callable[[], T], *, timeout_s: float = 10.0) -> T:
    """Call ``what`` every 50 ms until it returns something true, and return that; after the timeout, the last value."""
    end = time.monotonic() + timeout_s
    while not (value := what()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


def seed_node_modules(folder: Path) -> None:
    """Make OpenCode believe that its npm package is installed in a configuration folder.

    OpenCode 1.18 otherwise runs npm there before it loads any plugin. It looks for ``node_modules`` and for the
    package's name at the root of the lock file; a plugin that really imports the package would not load.
    """
    (folder / "node_modules").mkdir(parents=True, exist_ok=True)
    wants = {"dependencies": {"@opencode-ai/plugin": "*"}}
    (folder / "package.json").write_text(json.dumps(wants))
    (folder / "package-lock.json").write_text(json.dumps({"lockfileVersion": 3, "packages": {"": wants}}))


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
        self._config_file.write_text(json.dumps(_config(model_url, context_limit_tokens) | dict(config or {})))
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
        return {**inherited, **_OFFLINE, **_NO_GIT_IDENTITY, **places, **self._environ, **(environ or {})}

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


def _config(model_url: str, context_limit_tokens: int) -> dict[str, Json]:
    limit = {"context": context_limit_tokens, "output": OUTPUT_LIMIT_TOKENS}
    models = {name: {"name": name, "limit": limit, "tool_call": True} for name in (MODEL, SMALL_MODEL)}
    provider = {
        "npm": "@ai-sdk/openai-compatible",  # part of the binary; nothing is fetched
        "name": "Scripted",
        "options": {"baseURL": model_url, "apiKey": "none"},
        "models": models,
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        "enabled_providers": [PROVIDER],
        "model": f"{PROVIDER}/{MODEL}",
        "small_model": f"{PROVIDER}/{SMALL_MODEL}",
        "provider": {PROVIDER: provider},
    }


class Server:
    """A running ``opencode serve``. ``directory`` is the folder a call works in, by default where it started."""

    def __init__(self, process: subprocess.Popen[str], *, directory: Path) -> None:
        self.process = process
        self.directory = directory
        self.output: list[str] = []
        self._url = ""
        self._ready = threading.Event()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            threading.Thread(target=self._read, args=(stream,), daemon=True).start()
        if not self._ready.wait(START_TIMEOUT_S) or not self._url:
            self.close()
            raise RuntimeError("opencode serve did not start: " + "\n".join(self.output)[-2000:])

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self.output.append(line.rstrip())
            if "listening on" in line:
                self._url = line.rpartition("listening on")[2].strip()
                self._ready.set()
        self._ready.set()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the process, by force if ``how`` does not do it in 15 s. Closing twice is fine."""
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def call(
        self,
        method: str,
        path: str,
        body: Json = None,
        *,
        directory: Path | None = None,
        timeout_s: float = PROMPT_TIMEOUT_S,
        **query: str,
    ) -> Json:
        """One HTTP call; RuntimeError with the server's words when it is refused."""
        query = {"directory": str(directory or self.directory), **query}
        request = urllib.request.Request(
            f"{self._url}{path}?{urllib.parse.urlencode(query)}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as response:
                raw = response.read()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.code} {error.read()[:500]!r}") from error
        return json.loads(raw) if raw else None

    def create_session(
        self, *, title: str | None = "A titled session", directory: Path | None = None, **body: Json
    ) -> str:
        """A new session's id. With ``title=None`` OpenCode asks the model for a title beside the first prompt."""
        body = body if title is None else {"title": title, **body}
        return str(self.call("POST", "/session", body, directory=directory)["id"])

    def prompt(
        self,
        session: str,
        text: str,
        *,
        directory: Path | None = None,
        timeout_s: float = PROMPT_TIMEOUT_S,
        **body: Json,
    ) -> Json:
        """Send a prompt and wait for the whole turn; the assistant's message with its parts."""
        body = {"parts": [{"type": "text", "text": text}], **body}
        return self.call("POST", f"/session/{session}/message", body, directory=directory, timeout_s=timeout_s)

    def say(self, session: str, text: str, *, directory: Path | None = None) -> str:
        """Send a prompt and return the text of the answer."""
        parts = self.prompt(session, text, directory=directory)["parts"]
        return "".join(part["text"] for part in parts if part["type"] == "text")

    def messages(self, session: str, *, directory: Path | None = None) -> list[Json]:
        """The stored messages, each ``{info, parts}``, oldest first."""
        return list(self.call("GET", f"/session/{session}/message", directory=directory))

    def compact(self, session: str, *, directory: Path | None = None) -> None:
        """Compact the session now, and wait for it."""
        model = {"providerID": PROVIDER, "modelID": MODEL}
        self.call("POST", f"/session/{session}/summarize", model, directory=directory)

    def delete_session(self, session: str, *, directory: Path | None = None) -> None:
        """Delete a session and its children."""
        self.call("DELETE", f"/session/{session}", directory=directory)

    def reload(self, *, directory: Path | None = None) -> None:
        """Dispose this directory's instance; the next call loads it, and its plugins, anew."""
        self.call("POST", "/instance/dispose", {}, directory=directory)
