"""Whether OpenCode and Backstory work together: found, installed, started, loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from backstory.__about__ import __version__
from backstory.config import Settings
from backstory.config.locations import HOME
from backstory.entrypoints.doctor import Check
from backstory.entrypoints.local_time import shown_time
from backstory.entrypoints.opencode.bridge_probe import start_bridge
from backstory.entrypoints.opencode.handshake import read_handshake
from backstory.entrypoints.opencode.host_config import obstacles
from backstory.entrypoints.opencode.install import PLUGIN, FileState, Installation, differs, installations
from backstory.entrypoints.opencode.locations import places
from backstory.entrypoints.opencode.probe import find_opencode, load_in_opencode, opencode_version
from backstory.entrypoints.opencode.sidecar import Sidecar, is_short_lived
from backstory.errors import BackstoryError

TESTED = (1, 18)
INSTALL = "`backstory install opencode`"

Announce = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """What is examined: an OpenCode started in ``directory`` under ``env``, against what would be installed now.

    ``program`` is the OpenCode to run, if not the one that is found. ``announce`` is told before something slow begins.
    """

    env: Mapping[str, str]
    directory: Path
    settings: Settings
    wanted: Sidecar
    program: Path | None = None
    announce: Announce = lambda _: None


def check_opencode(patient: Patient, *, probe: bool) -> list[Check]:
    """Every check of the host. With ``probe``, OpenCode is started to see whether it loads the plugin."""
    program, checks = _program(patient)
    found = installations(places(patient.env, patient.directory))
    checks += _files(found, patient)
    for trouble in obstacles(patient.env, patient.directory):
        checks.append(Check(name="configuration", state="warn", message=trouble))
    ours = [installation for installation in found if installation.is_ours]
    if ours:
        checks += [_bridge(installation, patient) for installation in ours]
        checks.append(_load_proof(ours, program, patient) if probe else _last_load(ours, patient))
    elif probe:
        checks.append(Check(name="load", state="fail", message="there is no plugin to load", mend=INSTALL))
    return checks


def _program(patient: Patient) -> tuple[Path | None, list[Check]]:
    program = patient.program or find_opencode(patient.env)
    if program is None:
        message = "OpenCode was not found on PATH, nor in ~/.opencode/bin"
        mend = "install OpenCode, or name its program with --opencode"
        return None, [Check(name="opencode", state="warn", message=message, mend=mend)]
    outcome = opencode_version(program, patient.env)
    if outcome.failure:
        return None, [Check(name="opencode", state="warn", message=outcome.failure, mend="reinstall OpenCode")]
    real = program.resolve()
    where = str(program) if real == program else f"{program} ({real})"
    return program, [_version(outcome.version, where)]


def _version(version: str, where: str) -> Check:
    message = f"OpenCode {version} at {where}"
    parts = version.split(".")
    number = tuple(int(part) if part.isdecimal() else 0 for part in parts[:2])
    if number[0] == 1 and number >= TESTED:
        return Check(name="opencode", state="ok", message=message)
    if number[0] == 2:
        message += ": written for 2.x after its documentation, tested with 1.18"
        return Check(name="opencode", state="warn", message=message, mend="`backstory doctor --probe` tries it out")
    message += ": tested with 1.18"
    return Check(name="opencode", state="warn", message=message, mend="upgrade OpenCode to 1.18")


def _files(found: Sequence[Installation], patient: Patient) -> Iterator[Check]:
    if not any(installation.is_ours for installation in found):
        yield Check(name="plugin", state="warn", message="Backstory is not installed in OpenCode", mend=INSTALL)
    for installation in found:
        yield _file_check(installation, patient)


def _file_check(installation: Installation, patient: Patient) -> Check:
    path = installation.folder / PLUGIN
    mend = INSTALL + (" --project" if installation.place.scope == "project" else "")
    match installation.plugin, installation.sidecar:
        case (FileState.FOREIGN, _) | (_, FileState.FOREIGN):
            message = f"{path} or the .json beside it was not written by Backstory"
            return Check(name="plugin", state="fail", message=message, mend=f"move it away, then {mend}")
        case (FileState.MISSING, _) | (_, FileState.MISSING):
            message = f"of {path} and the .json beside it, one is missing"
            return Check(name="plugin", state="fail", message=message, mend=mend)
        case (FileState.STALE, _):
            message = f"{path} is of another version ({installation.version or 'unknown'}) or was edited"
            return Check(name="plugin", state="warn", message=message, mend=f"{mend}, then restart OpenCode")
        case _:
            changed = differs(installation, patient.wanted)
    if changed:
        message = f"{path} was installed with other settings: {', '.join(changed)}"
        return Check(name="plugin", state="warn", message=message, mend=f"{mend}, then restart OpenCode")
    return Check(name="plugin", state="ok", message=f"{path} is installed and up to date")


def _bridge(installation: Installation, patient: Patient) -> Check:
    """Start what the sidecar names. A project's sidecar may come with a clone: it is started only if it is our own."""
    name, command = "bridge", installation.command
    mend = f"{INSTALL} with the Python that has Backstory"
    if not command:
        message = f"{installation.folder} has no usable command in its .json"
        return Check(name=name, state="fail", message=message, mend=mend)
    if installation.place.scope == "project" and command != patient.wanted.command:
        message = f"{installation.place.config} would start {command[0]!r}, which is not this Backstory: not tried here"
        return Check(name=name, state="warn", message=message, mend=f"{INSTALL} --project, if that folder is yours")
    try:
        environ = {**patient.env, **installation.env}
        outcome = start_bridge(command, environ, folder=installation.folder)
    except BackstoryError as error:
        return Check(name=name, state="fail", message=f"{command[0]} cannot be tried: {error}")
    if outcome.failure:
        return Check(name=name, state="fail", message=f"{command[0]} {outcome.failure}", mend=mend)
    message = f"{command[0]} answers as Backstory {outcome.version} after {outcome.seconds:.1f} s"
    if outcome.version != __version__:
        return Check(name=name, state="warn", message=f"{message}; this is {__version__}", mend=mend)
    if is_short_lived(command[0]):
        message += ", but lies where it may be cleaned away"
        return Check(name=name, state="warn", message=message, mend="install Backstory with pipx or in a venv to stay")
    return Check(name=name, state="ok", message=message)


def _last_load(ours: Sequence[Installation], patient: Patient) -> Check:
    """What the last hello says. Without one nothing is known: OpenCode is silent about plugins that fail to load."""
    notes = [note for folder in _data_folders(ours, patient) if (note := read_handshake(folder)) is not None]
    note = max(notes, key=lambda note: note.time, default=None)
    mend = "start OpenCode once, or run `backstory doctor --probe`"
    if note is None:
        message = "nothing shows that OpenCode ever loaded the plugin; it is silent about plugins that fail to load"
        return Check(name="load", state="warn", message=message, mend=mend)
    message = f"OpenCode loaded the plugin on {shown_time(note.time)} in {note.directory}"
    if note.time < _installed_at(ours):
        return Check(name="load", state="warn", message=f"{message}, before it was last installed", mend=mend)
    if note.backstory_version != __version__:
        message += f", with Backstory {note.backstory_version}"
        return Check(name="load", state="warn", message=message, mend="restart OpenCode")
    if note.is_outdated:
        message += ", with other tools or deadlines than the settings ask for since"
        return Check(name="load", state="warn", message=message, mend="restart OpenCode")
    return Check(name="load", state="ok", message=message)


def _data_folders(ours: Sequence[Installation], patient: Patient) -> list[Path]:
    named = [Path(installation.env[HOME]) for installation in ours if HOME in installation.env]
    return [*dict.fromkeys([patient.settings.data_dir, *named])]


def _installed_at(ours: Sequence[Installation]) -> datetime:
    """When the newest plugin file was written; a second is granted, since file systems and notes round differently."""
    seconds = max((installation.folder / PLUGIN).stat().st_mtime for installation in ours)
    return datetime.fromtimestamp(seconds - 1, UTC)


def _load_proof(ours: Sequence[Installation], program: Path | None, patient: Patient) -> Check:
    if program is None:
        return Check(name="load", state="fail", message="without OpenCode nothing can be tried")
    in_project = [installation for installation in ours if installation.place.scope == "project"]
    patient.announce("starting OpenCode; the first start with a plugin may take a minute, because it runs npm then")
    chosen = (in_project or ours)[0]
    directory = patient.directory if in_project else None
    try:
        outcome = load_in_opencode(program, patient.env, directory=directory, sidecar_env=chosen.env)
    except BackstoryError as error:
        return Check(name="load", state="fail", message=f"OpenCode cannot be tried: {error}")
    if outcome.failure:
        mend = 'see docs/how-to/when-something-is-wrong.md, "OpenCode does not load the plugin"'
        return Check(name="load", state="fail", message=outcome.failure, mend=mend)
    message = f"OpenCode loaded the plugin, which said hello after {outcome.seconds:.1f} s"
    return Check(name="load", state="ok", message=message)
