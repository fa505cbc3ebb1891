"""A record of opencode-plugin-git-memory as a memory, and back: as it was, as far as nothing of it was changed here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType

from backstory.adapters.formats.js_json import stringify
from backstory.adapters.stores.gitbranch.tree import format_ts, parse_ts
from backstory.adapters.stores.gitbranch.tree import record_of as plain_record
from backstory.codecs.logfmt import Deletion, Record
from backstory.domain.admission import MAX_TAG_CHARS, MAX_TAGS, admit_evidence, admit_label
from backstory.domain.ids import CROCKFORD, MemoryId, make_ulid
from backstory.domain.interchange import foreign_id
from backstory.domain.labels import canonical_area, canonical_tag
from backstory.domain.memory import (
    Deleted,
    Kind,
    Memory,
    Source,
    Superseded,
    Times,
    Visibility,
    starting_weight,
)
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.truncation import truncate_chars
from backstory.errors import InputError

FORMAT = "git-memory"
_LABEL_CHARS = 200
_DIGITS = str.maketrans(CROCKFORD, "0123456789ABCDEFGHIJKLMNOPQRSTUV")


def memory_of(record: Record, *, namespace: str) -> Memory:
    """The memory of a record, the same one wherever that stands. Raises InputError where its time cannot be read."""
    learned = parse_ts(record.ts)
    return Memory(
        id=id_of(record, learned),
        content=record.content,
        kind=Kind(record.type),
        visibility=Visibility.PROJECT,
        project=None,
        area=_area(record.scope),
        tags=_tags(record.tags),
        issue=None if record.issue is None else _label(record.issue, _LABEL_CHARS),
        origin=Origin.AGENT,
        source=Source.IMPORTED,
        weight=starting_weight(Source.IMPORTED),
        namespace=namespace,
        provenance=Provenance(
            origin_system=FORMAT, origin_id=f"{record.ts} {record.type}/{record.scope}"[:_LABEL_CHARS], raw=_raw(record)
        ),
        times=Times(learned=learned, updated=learned, confirmed=learned),
    )


def id_of(record: Record, learned: datetime) -> MemoryId:
    """The id of a record's memory: by what of it never changes."""
    return foreign_id(FORMAT, (record.ts, record.type, record.scope, record.content), learned=learned)


def id_number(memory: MemoryId) -> int:
    """An id as the number that it stands for: as a text, one among many thousands looks like somebody's password, and
    would be masked."""
    return int(memory.translate(_DIGITS), 32)


def id_of_number(number: object) -> MemoryId | None:
    """The id that a number stands for; None for what is no such number."""
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 1 << 128:
        return None
    return MemoryId(make_ulid(time_ms=number >> 80, randomness=(number & ((1 << 80) - 1)).to_bytes(10, "big")))


def record_of(memory: Memory) -> Record:
    """The record of a memory. What was said otherwise in the record that it came from is said so again."""
    ours, raw = plain_record(memory), memory.provenance.raw
    if memory.provenance.origin_system != FORMAT or "ts" not in raw:
        return ours
    scope, type_, tags, issue = raw.get("scope", ""), raw.get("type", ""), _told_tags(raw), raw.get("issue")
    return Record(
        ts=raw["ts"],
        type=type_ if type_ == memory.kind.value else ours.type,
        scope=scope if scope and _area(scope) == memory.area else ours.scope,
        content=ours.content,
        issue=issue if issue is not None and _label(issue, _LABEL_CHARS) == memory.issue else ours.issue,
        tags=tags if _tags(tags) == memory.tags else ours.tags,
    )


def deletion_of(memory: Memory) -> Deletion | None:
    """The line of the audit for a memory that is gone; None for one that is not."""
    match memory.status:
        case Deleted(since=since, reason=reason):
            return Deletion(ts=format_ts(since), record=record_of(memory), reason=reason or "forgotten")
        case Superseded(since=since):
            return Deletion(ts=format_ts(since), record=record_of(memory), reason="Superseded")
        case _:
            return None


def has_more_to_say(memory: Memory) -> bool:
    """Whether a memory has something that a record has no place for."""
    plain = Memory(id=memory.id, content="", project=None, times=memory.times)
    names = ("tier", "pinned", "expires_at", "sensitivity")
    return any(getattr(memory, name) != getattr(plain, name) for name in names)


def _raw(record: Record) -> Mapping[str, str]:
    told = {"ts": record.ts, "type": record.type, "scope": record.scope}
    if record.issue is not None:
        told["issue"] = record.issue
    if record.tags:
        told["tags"] = stringify(list(record.tags))
    return MappingProxyType(told)


def _told_tags(raw: Mapping[str, str]) -> tuple[str, ...]:
    try:
        tags = json.loads(raw.get("tags", "[]"))
    except ValueError:
        return ()
    return tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()


def _area(scope: str) -> str | None:
    area = canonical_area(" ".join(scope.split()))
    return None if not area or area == Visibility.PROJECT.value else _label(area, _LABEL_CHARS)


def _tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    """The tags that a memory can have: fit ones, each once, the first ten."""
    known = (_label(canonical_tag(" ".join(tag.split())), MAX_TAG_CHARS) for tag in tags)
    return tuple(dict.fromkeys(tag for tag in known if tag))[:MAX_TAGS]


@lru_cache(maxsize=10_000)  # the same few labels stand on most records
def _label(text: str, max_chars: int) -> str | None:
    """A label fit to be kept; None where nothing of it is."""
    try:
        return admit_label(truncate_chars(admit_evidence(text), max_chars), field="label", max_chars=max_chars)
    except InputError:
        return None
