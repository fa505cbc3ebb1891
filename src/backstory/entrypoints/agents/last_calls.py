"""A note of each agent's latest hook: the proof that it calls at all. It names the person's folders, so only its owner
may read it."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from backstory.entrypoints.agents.calls import HookCall
from backstory.entrypoints.opencode.files import read_regular

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCall:
    """When an agent called last (UTC), for what, and from which folder."""

    time: datetime
    event: str
    directory: str


def note_call(call: HookCall, data_dir: Path, *, now: datetime) -> None:
    """Write the note. A failure is logged."""
    note = {"time": now.isoformat(), "event": call.event.value, "directory": str(call.directory)}
    path = _file(data_dir, call.agent)
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=data_dir, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(note, stream)
        Path(name).replace(path)
    except OSError as error:
        log.warning("event=hook_not_noted reason=%s", error)


def last_call(agent: str, data_dir: Path) -> LastCall | None:
    """The latest note of an agent; None if there is none, or none that can be read."""
    try:
        fields = json.loads(read_regular(_file(data_dir, agent)) or b"null")
        time = datetime.fromisoformat(fields["time"])
        return LastCall(
            time=time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC),
            event=str(fields["event"]),
            directory=str(fields["directory"]),
        )
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def _file(data_dir: Path, agent: str) -> Path:
    return data_dir / f"hook-{agent}.json"
