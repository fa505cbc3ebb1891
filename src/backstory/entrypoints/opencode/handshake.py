"""The note that the bridge leaves when OpenCode has loaded the plugin and said hello: the only proof of a load.

OpenCode drops a plugin that fails to load without a word, an exit code or a line in its log.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from backstory.entrypoints.opencode.files import read_regular

FILE = "opencode-handshake.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """One hello: when (UTC), from which folder, and the versions on both sides; ``plugin_version`` may be empty."""

    time: datetime
    plugin_version: str
    backstory_version: str
    directory: str


def read_handshake(data_dir: Path) -> Handshake | None:
    """The latest hello noted in the data folder; None if there is none, or none that can be read."""
    try:
        fields = json.loads(read_regular(data_dir / FILE) or b"null")
        time = datetime.fromisoformat(fields["time"])
        return Handshake(
            time=time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC),
            plugin_version=str(fields["plugin_version"] or ""),
            backstory_version=str(fields["backstory_version"]),
            directory=str(fields["directory"]),
        )
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
