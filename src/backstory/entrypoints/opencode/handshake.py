"""The note that the bridge leaves when OpenCode has loaded the plugin and said hello: the only proof of a load.

OpenCode drops a plugin that fails to load without a word, an exit code or a line in its log.
"""

from __future__ import annotations

import json
import logging
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from backstory.codecs.record import format_time
from backstory.config import Settings
from backstory.entrypoints.opencode.files import read_regular
from backstory.errors import BackstoryError

log = logging.getLogger(__name__)

FILE = "opencode-handshake.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """One hello: when (UTC), from which folder, and the versions on both sides; ``plugin_version`` may be empty.

    ``is_outdated``: that OpenCode was told of other tools, or deadlines, than the settings ask for by now.
    """

    time: datetime
    plugin_version: str
    backstory_version: str
    directory: str
    is_outdated: bool = False


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
            is_outdated=fields.get("outdated") is True,
        )
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def note_handshake(handshake: Handshake, settings: Settings, *, pid: int | None, api: int | None) -> None:
    """Write the note, which only its owner may read: it names the person's folders. A failure is logged."""
    note = {
        "time": format_time(handshake.time),
        "pid": pid,
        "api": api,
        "plugin_version": handshake.plugin_version or None,
        "backstory_version": handshake.backstory_version,
        "directory": handshake.directory,
        "outdated": handshake.is_outdated,
    }
    try:
        data_dir = settings.data_dir
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=data_dir, prefix=f"{FILE}.", encoding="utf-8", delete=False
        ) as temporary:
            json.dump(note, temporary)
        Path(temporary.name).replace(data_dir / FILE)
    except (OSError, BackstoryError) as error:
        log.warning("event=handshake_not_noted reason=%s", error)
