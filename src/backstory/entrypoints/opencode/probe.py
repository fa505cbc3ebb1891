"""Starting OpenCode to see whether it works, until it has loaded the plugin.

It runs with throw-away data, so that nothing it does is kept. The bridge by itself is started in ``bridge_probe.py``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backstory.config.locations import CONFIG, HOME, user_config_file
from backstory.entrypoints.opencode.handshake import FILE as HANDSHAKE
from backstory.entrypoints.opencode.handshake import Handshake, read_handshake
from backstory.entrypoints.opencode.install import PLUGIN

PROBE_TIMEOUT_S = 120.0
"""OpenCode may first have to give up on npm: 75 s when its registry refuses connections."""
VERSION_TIMEOUT_S = 20.0
ENDING_S = 2.0
SHOWN_CHARS = 300

_QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_SHARE": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of starting something: ``failure`` is empty when it worked, else one sentence; took so many seconds."""

    failure: str = ""
    version: str = ""
    seconds: float = 0.0


def find_opencode(env: Mapping[str, str]) -> Path | None:
    """The program on PATH, else where OpenCode's own installer puts it."""
    if found := shutil.which("opencode", path=env.get("PATH", "")):
        return Path(found)
    home = env.get("HOME", "")
    own = Path(home) / ".opencode" / "bin" / "opencode"
    return own if home and os.access(own, os.X_OK) and own.is_file() else None


def opencode_version(program: Path, env: Mapping[str, str]) -> Outcome:
    """What ``opencode --version`` says."""
    started = time.monotonic()
    command = [str(program), "--version"]
    try:
        done = subprocess.run(
            command, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, timeout=VERSION_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Outcome(failure=f"{program} does not run: {error}")
    version = re.search(rb"[0-9]+\.[0-9]+\.[0-9]+\S*", done.stdout)
    if done.returncode or version is None:
        said = _first_line(done.stderr) or f"exit code {done.returncode}"
        return Outcome(failure=f"{program} --version fails: {said}")
    return Outcome(version=version.group().decode(errors="replace"), seconds=time.monotonic() - started)


def load_in_opencode(
    program: Path, env: Mapping[str, str], *, directory: Path | None, sidecar_env: Mapping[str, str]
) -> Outcome:
    """Start OpenCode headless and wait until the plugin, loaded by it, has said hello to the bridge.

    No model is asked. OpenCode reads the user's own settings and cache, but keeps sessions and state in a throw-away
    folder; so does Backstory, unless the sidecar names its folder. It runs in ``directory``, or in an empty folder.
    2 to 5 s; longer when OpenCode has to run npm first.
    """
    started = time.monotonic()
    with throw_away() as scratch, (scratch / "output").open("w+b") as output:
        here = directory or scratch / "project"
        here.mkdir(exist_ok=True)
        environ = {**_probe_environment(env, scratch), "PWD": str(here)}
        notes = [Path(environ[HOME]), *([Path(sidecar_env[HOME])] if HOME in sidecar_env else [])]
        try:
            process = subprocess.Popen(
                [str(program), "debug", "wait"],  # loads the folder's plugins, then does nothing until it is ended
                cwd=here,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return Outcome(failure=f"OpenCode cannot be started: {error}")
        try:
            note = _wait_for_hello(process, notes, here)
        finally:
            ended = process.poll() is not None
            _end_group(process)
        seconds = time.monotonic() - started
        if note is not None:
            return Outcome(version=note.backstory_version, seconds=seconds)
        if ended:
            output.seek(0)
            said = _first_line(output.read()) or f"exit code {process.returncode}"
            return Outcome(failure=f"OpenCode ended by itself: {said}", seconds=seconds)
        said = last_line(_content(scratch / "plugin.log"))
        why = f"the plugin says: {said}" if said else _why_silent(program, environ, here)
        return Outcome(failure=f"no hello within {seconds:.0f} s: {why}", seconds=seconds)


def _probe_environment(env: Mapping[str, str], scratch: Path) -> dict[str, str]:
    return {
        **env,
        **_QUIET,
        **own_data(env, scratch),
        "XDG_DATA_HOME": str(scratch / "data"),
        "XDG_STATE_HOME": str(scratch / "state"),
        "BACKSTORY_PLUGIN_LOG": str(scratch / "plugin.log"),
    }


def own_data(env: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """A store of its own for what is started, with the user's settings, which would else be looked for beside it."""
    settings = user_config_file(env)
    home = {HOME: str(scratch / "home"), "BACKSTORY_STORE": "sqlite"}
    return {**home, CONFIG: str(settings)} if settings.exists() else home


def _wait_for_hello(process: subprocess.Popen[bytes], notes: Sequence[Path], directory: Path) -> Handshake | None:
    """The first note, in one of these data folders, that is new and comes from ``directory``."""
    before = {folder: _modified(folder) for folder in notes}
    end = time.monotonic() + PROBE_TIMEOUT_S
    while time.monotonic() < end:
        is_over = process.poll() is not None
        for folder in notes:
            note = read_handshake(folder) if _modified(folder) != before[folder] else None
            if note is not None and Path(note.directory).resolve() == directory.resolve():
                return note
        if is_over:
            return None
        time.sleep(0.1)
    return None


def _why_silent(program: Path, env: Mapping[str, str], directory: Path) -> str:
    """Whether OpenCode sees the file at all; it keeps to itself why a plugin that it sees did not load."""
    command = [str(program), "debug", "config"]
    try:
        done = subprocess.run(
            command, cwd=directory, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=VERSION_TIMEOUT_S
        )
        listed = json.loads(done.stdout)["plugin"]
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
        return "OpenCode is still busy, perhaps with npm, or does not say which plugins it would load"
    if any(PLUGIN in str(entry) for entry in listed):
        return "OpenCode sees the plugin, but could not load it, and does not say why"
    return "OpenCode does not look for plugins where Backstory is installed"


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """OpenCode and whatever it started."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDING_S)


@contextlib.contextmanager
def throw_away() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="backstory-doctor-", ignore_cleanup_errors=True) as folder:
        (Path(folder) / "home").mkdir()
        yield Path(folder).resolve()


def _modified(folder: Path) -> int:
    try:
        return (folder / HANDSHAKE).stat().st_mtime_ns
    except (OSError, ValueError):
        return 0


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _first_line(output: bytes) -> str:
    """The first line that says something. Never more: OpenCode prints a faulty configuration whole, keys included."""
    return next(iter(_lines(output)), "")


def last_line(output: bytes) -> str:
    return next(iter(_lines(output)[::-1]), "")


def _lines(output: bytes) -> list[str]:
    text = re.sub(r"\x1b\[[0-9;]*m", "", output.decode(errors="replace"))
    return [line.strip()[:SHOWN_CHARS] for line in text.splitlines() if line.strip()]
