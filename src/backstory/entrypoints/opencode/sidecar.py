"""The file beside the installed plugin: how to start the Python half, and what to offer before it has started."""

from __future__ import annotations

import json
import logging
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backstory.__about__ import __version__
from backstory.config import Settings, load_leniently
from backstory.config.locations import CONFIG, HOME, home_folder, user_config_file
from backstory.entrypoints.opencode.files import read_regular, write_whole
from backstory.errors import BackstoryError, InstallError

log = logging.getLogger(__name__)

FILE = "backstory.json"
KEY = "backstory"
"""Every sidecar of ours has it; its value is the format of the sidecar, 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """The content of the file. ``manifest`` are the tools, each with name, description and JSON Schema;
    ``deadlines_ms`` overrides the plugin's own deadlines.
    """

    command: tuple[str, ...]
    env: Mapping[str, str]
    manifest: Sequence[Mapping[str, object]]
    deadlines_ms: Mapping[str, int]
    version: str = __version__

    def content(self) -> bytes:
        """The file, readable by people. Raises InstallError for a path that is not text."""
        fields = {
            KEY: 1,
            "version": self.version,
            "command": self.command,
            "env": self.env,
            "deadlines_ms": self.deadlines_ms,
            "manifest": self.manifest,
        }
        try:
            return _written(fields)
        except UnicodeEncodeError as error:
            raise InstallError(f"OpenCode could not start {self.command[0]!r}: the path is not UTF-8") from error


def _written(fields: Mapping[str, object]) -> bytes:
    return (json.dumps(fields, ensure_ascii=False, indent=2) + "\n").encode()


def sidecar_for(settings: Settings, env: Mapping[str, str]) -> Sidecar:
    """The sidecar that fits these settings, this interpreter, and the folders that ``env`` names.

    Raises InstallError if the interpreter does not know its own path, ConfigError if ``env`` names an impossible one.
    """
    from backstory.entrypoints.tools import manifest  # tools are slow to import, and uninstalling needs none

    if not sys.executable:
        raise InstallError("this Python does not know its own path, so OpenCode could not start it")
    return Sidecar(
        command=(sys.executable, "-m", "backstory", "bridge"),
        env=_named_folders(env),
        manifest=manifest(settings),
        deadlines_ms=_deadlines(settings),
    )


def renew_at_start(folder: Path, env: Mapping[str, str]) -> bool:
    """Let the sidecar in ``folder`` follow the user's own settings, for OpenCode's next start. Whether it was renewed.

    What the settings ask for is not known while one of them is wrong. A failure is logged, whatever the file holds.
    """
    try:
        resolved, faults = load_leniently(env=env, project_root=None)
        renewed = not faults and renew_sidecar(folder.resolve(strict=True), resolved.settings, env)
    except (BackstoryError, OSError, UnicodeEncodeError, RecursionError) as error:
        log.warning("event=sidecar_not_renewed folder=%s reason=%s", folder, error)
        return False
    if renewed:
        log.info("event=sidecar_renewed folder=%s", folder)
    return renewed


def renew_sidecar(folder: Path, settings: Settings, env: Mapping[str, str]) -> bool:
    """Bring tools and deadlines of the sidecar in ``folder`` up to the settings; returns whether they differed.

    Nothing is done where there is no sidecar, or one that is a link, was written by another version or under other
    folders than ``env`` names, or lies in a project, whose own settings counted when it was installed. Raises OSError
    for a file that cannot be read, InstallError for one that cannot be written, ConfigError as ``sidecar_for``.
    """
    path = folder / FILE
    fields = _own_fields(path)
    if fields is None or _is_in_project(folder, env) or fields.get("env") != _named_folders(env):
        return False
    from backstory.entrypoints.tools import manifest

    known = fields.get("deadlines_ms")
    deadlines = {**(known if isinstance(known, dict) else {}), **_deadlines(settings)}
    content = _written({**fields, "deadlines_ms": deadlines, "manifest": manifest(settings)})
    if json.loads(content) == fields:
        return False
    write_whole(path, content, mode=stat.S_IMODE(path.lstat().st_mode))
    return True


def _own_fields(path: Path) -> dict[str, object] | None:
    """What a sidecar says that this very version wrote; None for anything else."""
    if path.is_symlink():
        return None
    try:
        fields = json.loads(read_regular(path) or b"null")
    except (ValueError, RecursionError):
        return None
    is_ours = isinstance(fields, dict) and KEY in fields and bool(fields.get("command"))
    return fields if is_ours and fields.get("version") == __version__ else None


def _is_in_project(folder: Path, env: Mapping[str, str]) -> bool:
    config, home = folder.parent, env.get("HOME")
    return config.name == ".opencode" and not (home and Path(home).resolve() == config.parent)


def _deadlines(settings: Settings) -> dict[str, int]:
    return {"chat.message": settings.context.deadline_ms}


def _named_folders(env: Mapping[str, str]) -> dict[str, str]:
    """BACKSTORY_HOME and BACKSTORY_CONFIG where they are set: OpenCode may be started from where they are not."""
    folders = {}
    if home := home_folder(env):
        folders[HOME] = str(home)
    if env.get(CONFIG, "").strip():
        folders[CONFIG] = str(user_config_file(env))
    return folders


def is_short_lived(interpreter: str) -> bool:
    """Whether an interpreter lies where it may be cleaned away: a temporary folder, or a runner's cache."""
    path = Path(interpreter)
    return ".cache" in path.parts or path.is_relative_to(tempfile.gettempdir())
