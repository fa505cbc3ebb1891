"""The file beside the installed plugin: how to start the Python half, and what to offer before it has started."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backstory.__about__ import __version__
from backstory.config import Settings
from backstory.config.locations import CONFIG, HOME, home_folder, user_config_file
from backstory.errors import InstallError

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
            return (json.dumps(fields, ensure_ascii=False, indent=2) + "\n").encode()
        except UnicodeEncodeError as error:
            raise InstallError(f"OpenCode could not start {self.command[0]!r}: the path is not UTF-8") from error


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
        deadlines_ms={"chat.message": settings.context.deadline_ms},
    )


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
