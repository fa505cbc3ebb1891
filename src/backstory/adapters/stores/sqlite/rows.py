"""Memories and changes as table rows and back. Values only: which statement runs when is in ``memories.py``."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from backstory.codecs.record import (
    decode_memory,
    decode_provenance,
    decode_status,
    encode_memory,
    encode_provenance,
    encode_status,
)
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, ProjectId, SessionId
from backstory.domain.memory import (
    Counters,
    Kind,
    Memory,
    Sensitivity,
    Source,
    Status,
    Superseded,
    Tier,
    Times,
    Visibility,
    status_name,
)
from backstory.domain.outline import Outline
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.statement_form import statement_form
from backstory.errors import InputError, StoreDamaged

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

# Columns of ``memories`` that a commit writes, in the order of ``memory_row``; n is first.
WRITTEN = (
    "n", "id", "revision", "content", "content_key", "kind", "visibility", "project", "session", "area", "issue",
    "tier", "pinned", "expires_us", "sensitivity", "state", "superseded_by", "status", "origin", "source",
    "confidence", "weight", "namespace", "provenance", "learned_us", "updated_us", "confirmed_us", "helpful",
    "irrelevant",
)  # fmt: skip
COUNTED = ("surfaced_us", "used_us", "surfaced", "recalled", "sessions")
_NAMES = (*WRITTEN, *COUNTED)
COLUMNS = ", ".join(f"m.{name}" for name in _NAMES)
OUTLINE = "m.updated_us, m.n, m.id, m.kind, m.visibility, m.area, m.content"
_KINDS = {kind.value: kind for kind in Kind}
_VISIBILITIES = {visibility.value: visibility for visibility in Visibility}
CIRCLE = "CASE m.visibility WHEN 'project' THEN coalesce(m.project, '') ELSE m.visibility END"
"""``domain.scope.circle`` of a memory, in SQL."""
_UNREADABLE = (ValueError, TypeError, OverflowError, RecursionError)
_REMEMBERED = 4096  # decoded JSON texts; thousands of memories share their status, and those of a session their source


def to_us(moment: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (moment - _EPOCH) // _MICROSECOND


def from_us(value: int) -> datetime:
    """The UTC instant of a microsecond count."""
    return _EPOCH + timedelta(microseconds=value)


def from_us_or_none(value: int | None) -> datetime | None:
    """Like ``from_us``, for a column that may be NULL."""
    return None if value is None else from_us(value)


def to_us_or_none(moment: datetime | None) -> int | None:
    """Like ``to_us``, for a value that may be missing."""
    return None if moment is None else to_us(moment)


def content_key(text: str) -> str:
    """Digest of the ``statement_form``: equal for texts that count as the same memory."""
    return hashlib.blake2b(statement_form(text).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def memory_row(memory: Memory) -> tuple[object, ...]:
    """Values for ``WRITTEN``. A memory without a number gets NULL there, so that SQLite gives one."""
    superseded_by = memory.status.by if isinstance(memory.status, Superseded) else None
    return (
        memory.n or None,
        memory.id,
        memory.revision,
        memory.content,
        content_key(memory.content),
        memory.kind.value,
        memory.visibility.value,
        memory.project,
        memory.session,
        memory.area,
        memory.issue,
        memory.tier.value,
        int(memory.pinned),
        to_us_or_none(memory.expires_at),
        memory.sensitivity.value,
        status_name(memory.status),
        superseded_by,
        dump(encode_status(memory.status)),
        memory.origin.value,
        memory.source.value,
        memory.confidence,
        memory.weight,
        memory.namespace,
        dump(encode_provenance(memory.provenance)),
        to_us(memory.times.learned),
        to_us(memory.times.updated),
        to_us(memory.times.confirmed),
        memory.counters.helpful,
        memory.counters.irrelevant,
    )


def counter_row(memory: Memory) -> tuple[object, ...]:
    """Values for ``COUNTED``, written once, when a memory is added; ``record_use`` moves them on."""
    counters = (getattr(memory.counters, name) for name in COUNTED[2:])
    return (to_us_or_none(memory.times.surfaced), to_us_or_none(memory.times.used), *counters)


def memory_from_row(row: Sequence[object], tags: tuple[str, ...]) -> Memory:
    """Read the columns of ``COLUMNS``. Raises StoreDamaged for values that no Backstory writes."""
    try:
        return _memory(row, tags)
    except (*_UNREADABLE, InputError) as error:
        raise StoreDamaged(f"memory #{row[0]} in the store cannot be read: {error}") from error


def _memory(row: Sequence[object], tags: tuple[str, ...]) -> Memory:
    value = dict(zip(_NAMES, row, strict=True))
    return Memory(
        id=MemoryId(_text(value["id"])),
        n=_int(value["n"]),
        revision=_int(value["revision"]),
        content=_text(value["content"]),
        kind=Kind(_text(value["kind"])),
        visibility=Visibility(_text(value["visibility"])),
        project=None if value["project"] is None else ProjectId(_text(value["project"])),
        session=None if value["session"] is None else SessionId(_text(value["session"])),
        area=_text_or_none(value["area"]),
        tags=tags,
        issue=_text_or_none(value["issue"]),
        tier=Tier(_text(value["tier"])),
        pinned=bool(value["pinned"]),
        expires_at=_time_or_none(value["expires_us"]),
        sensitivity=Sensitivity(_text(value["sensitivity"])),
        status=_status(_text(value["status"])),
        origin=Origin(_text(value["origin"])),
        source=Source(_text(value["source"])),
        confidence=_float(value["confidence"]),
        weight=_float(value["weight"]),
        namespace=_text(value["namespace"]),
        provenance=_provenance(_text(value["provenance"])),
        times=Times(
            learned=from_us(_int(value["learned_us"])),
            updated=from_us(_int(value["updated_us"])),
            confirmed=from_us(_int(value["confirmed_us"])),
            surfaced=_time_or_none(value["surfaced_us"]),
            used=_time_or_none(value["used_us"]),
        ),
        counters=Counters(
            helpful=_int(value["helpful"]),
            irrelevant=_int(value["irrelevant"]),
            surfaced=_int(value["surfaced"]),
            recalled=_int(value["recalled"]),
            sessions=_int(value["sessions"]),
        ),
    )


def outline_from_row(row: Sequence[Any], tags: tuple[str, ...]) -> Outline:  # Any: a driver's values
    """Read the columns of ``OUTLINE``, 10,000 in about 15 ms. Raises StoreDamaged as ``memory_from_row``."""
    updated_us, n, name, kind, visibility, area, content = row
    try:
        return Outline(
            name, n, _KINDS[kind], _VISIBILITIES[visibility], area, tags, content, _EPOCH + timedelta(0, 0, updated_us)
        )
    except (*_UNREADABLE, KeyError) as error:
        raise StoreDamaged(f"memory #{n} in the store cannot be read: {error}") from error


def image(memory: Memory) -> str:
    """A memory as it stands in the history."""
    return dump(encode_memory(memory))


def memory_from_image(text: str) -> Memory:
    """Read what ``image`` wrote. Raises StoreDamaged for anything else."""
    try:
        return decode_memory(json.loads(text))
    except (*_UNREADABLE, InputError) as error:
        raise StoreDamaged(f"an entry of the history in the store cannot be read: {error}") from error


def change_from_rows(row: sqlite3.Row | Sequence[object], edits: tuple[Edit, ...]) -> Change:
    """A change from (id, at_us, author, action, reason, session, undoes, key) and its edits."""
    change_id, at_us, author, action, reason, session, undoes, key = row
    return Change(
        id=ChangeId(_text(change_id)),
        at=from_us(_int(at_us)),
        author=Author(_text(author)),
        action=Action(_text(action)),
        edits=edits,
        reason=_text_or_none(reason),
        session=None if session is None else SessionId(_text(session)),
        undoes=None if undoes is None else ChangeId(_text(undoes)),
        key=_text_or_none(key),
    )


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def dump(value: object) -> str:
    """Compact JSON, characters as they are."""
    return _COMPACT(value)


@lru_cache(maxsize=_REMEMBERED)
def _status(text: str) -> Status:
    return decode_status(json.loads(text))


@lru_cache(maxsize=_REMEMBERED)
def _provenance(text: str) -> Provenance:
    return decode_provenance(json.loads(text))


def _text(value: object) -> str:
    return str(value)


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)


def _int(value: object) -> int:
    return value if isinstance(value, int) else int(str(value))


def _float(value: object) -> float:
    return value if isinstance(value, float) else float(str(value))


def _time_or_none(value: object) -> datetime | None:
    return None if value is None else from_us(_int(value))
