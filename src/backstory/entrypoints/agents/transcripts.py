"""The transcript that an agent writes while it works, read for the archive: what is new in it, however long it is."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from backstory.adapters.formats.outside_files import Unfit, is_id, json_of, lines
from backstory.codecs.claude_code import Transcript
from backstory.domain.conversation import Message, Role
from backstory.domain.ids import SessionId
from backstory.errors import InputError
from backstory.ports.formats import ReadLimits

TAILS = (4 << 20, 64 << 20)
"""Bytes from the end of a file, in which what is new is looked for; the whole is read where it goes back further."""
_LOOKED_AT = 50  # lines at the beginning of a tail, of which one must be known


def read_transcript(path: Path, *, session: SessionId, known: Collection[str]) -> Iterator[Message]:
    """What was said in a session itself, oldest first, its sub-agents left out, and what was copied from another
    session. ``known`` are ids of messages; those at the beginning may be passed over.

    Lines that cannot be read are passed over too: the last may not be complete yet. Raises InputError where the file is
    none that can be read.
    """
    limits = ReadLimits()
    try:
        start = _start(path, session, known, limits) if known else 0
        transcript = Transcript(session, child=False, began=datetime.now(UTC))
        for line in _own_lines(path, start, session, limits):
            yield from (message for message in transcript.take(line) if start == 0 or not _is_torn(message))
        yield from transcript.finish()
    except (Unfit, RecursionError, OSError) as problem:
        raise InputError(f"{path.name}: {problem}", field="transcript") from problem


def _start(path: Path, session: SessionId, known: Collection[str], limits: ReadLimits) -> int:
    """The byte from which on to read: something known must come before all that is new."""
    size = path.lstat().st_size
    for tail in TAILS:
        if size > tail:
            found = _own_lines(path, size - tail, session, limits)
            if any(line["uuid"] in known for line, _ in zip(found, range(_LOOKED_AT), strict=False)):
                return size - tail
    return 0


def _own_lines(path: Path, start: int, session: SessionId, limits: ReadLimits) -> Iterator[Mapping[str, Any]]:
    for _, line in lines(path, at_most=None, line_bytes=limits.record_bytes, start=start):
        value = _value(line)
        if (
            isinstance(value, dict)
            and value.get("sessionId") == session
            and value.get("isSidechain") is not True
            and is_id(value.get("uuid"))
        ):
            yield value


def _is_torn(message: Message) -> bool:
    """Whether it is a tool's result without its call, which may stand before what is read."""
    return message.role is Role.USER and all(part.kind == "tool" for part in message.parts)


def _value(line: bytes | None) -> object:
    try:
        return json_of(line) if line else None
    except Unfit:
        return None
