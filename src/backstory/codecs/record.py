"""A memory as a JSON object and back. The same shape stands in the history, in exports and on the command line.

Reading is strict about what is there and lenient about what is missing: an absent field takes its default, a wrong one
is an InputError that names it. Unknown fields are refused, so that a misspelt one is noticed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TypeVar, assert_never

from backstory.codecs.fields import Fields, Json, as_object
from backstory.domain.ids import MemoryId, MessageId, ProjectId, SessionId, is_ulid
from backstory.domain.memory import (
    Active,
    Conflicted,
    Counters,
    Deleted,
    Expired,
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
from backstory.domain.provenance import Origin, Provenance
from backstory.errors import InputError

_T = TypeVar("_T")
_MEMORY_FIELDS, _TIME_FIELDS = frozenset(Memory.__slots__), frozenset(Times.__slots__)
_COUNTER_FIELDS, _PROVENANCE_FIELDS = frozenset(Counters.__slots__), frozenset(Provenance.__slots__)
_STATUS_FIELDS = frozenset({"state", "since", "by", "evidence", "against", "reason"})


def format_time(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds only where there are some: ``2026-03-02T12:00:00Z``."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def encode_memory(memory: Memory) -> dict[str, object]:
    """Every field under its own name; times as RFC 3339; the status as an object with a ``state``."""
    return {
        "id": memory.id,
        "n": memory.n,
        "revision": memory.revision,
        "content": memory.content,
        "kind": memory.kind.value,
        "visibility": memory.visibility.value,
        "project": memory.project,
        "session": memory.session,
        "area": memory.area,
        "tags": list(memory.tags),
        "issue": memory.issue,
        "tier": memory.tier.value,
        "pinned": memory.pinned,
        "expires_at": time_or_none(memory.expires_at),
        "sensitivity": memory.sensitivity.value,
        "status": encode_status(memory.status),
        "origin": memory.origin.value,
        "source": memory.source.value,
        "confidence": memory.confidence,
        "weight": memory.weight,
        "namespace": memory.namespace,
        "provenance": encode_provenance(memory.provenance),
        "times": {name: time_or_none(getattr(memory.times, name)) for name in Times.__slots__},
        "counters": {name: getattr(memory.counters, name) for name in Counters.__slots__},
    }


def encode_status(status: Status) -> dict[str, object]:
    """A status variant with just its own fields."""
    encoded: dict[str, object] = {"state": status_name(status)}
    match status:
        case Active():
            pass
        case Conflicted():
            encoded |= {"evidence": status.evidence, "since": format_time(status.since), "against": status.against}
        case Superseded():
            encoded |= {"by": status.by, "since": format_time(status.since)}
        case Expired():
            encoded |= {"since": format_time(status.since)}
        case Deleted():
            encoded |= {"since": format_time(status.since), "reason": status.reason}
        case _:
            assert_never(status)
    return encoded


def encode_provenance(provenance: Provenance) -> dict[str, object]:
    """Only what is known; an empty object where nothing is."""
    full: dict[str, object] = {
        "session": provenance.session,
        "messages": list(provenance.messages),
        "derived_from": list(provenance.derived_from),
        "tool": provenance.tool,
        "agent": provenance.agent,
        "extracted_at": time_or_none(provenance.extracted_at),
        "origin_system": provenance.origin_system,
        "origin_id": provenance.origin_id,
        "raw": dict(provenance.raw),
    }
    return {name: value for name, value in full.items() if value not in (None, [], {})}


def decode_memory(record: Json) -> Memory:
    """Read what ``encode_memory`` wrote. Raises InputError naming the field, e.g. ``times.learned``."""
    fields = Fields(record, known=_MEMORY_FIELDS, path="")
    times = fields.nested("times", known=_TIME_FIELDS)
    learned = times.time("learned")
    if learned is None:
        raise InputError("times.learned is missing; every memory has a date", field="times.learned")
    return Memory(
        id=_memory_id(fields),
        n=fields.integer("n"),
        revision=fields.integer("revision"),
        content=fields.required_text("content"),
        kind=fields.choice("kind", Kind, Kind.FACT),
        visibility=fields.choice("visibility", Visibility, Visibility.PROJECT),
        project=_typed(fields.text("project"), ProjectId),
        session=_typed(fields.text("session"), SessionId),
        area=fields.text("area"),
        tags=fields.texts("tags"),
        issue=fields.text("issue"),
        tier=fields.choice("tier", Tier, Tier.ARCHIVAL),
        pinned=fields.boolean("pinned"),
        expires_at=fields.time("expires_at"),
        sensitivity=fields.choice("sensitivity", Sensitivity, Sensitivity.NORMAL),
        status=decode_status(fields.raw("status")),
        origin=fields.choice("origin", Origin, Origin.IMPORTED),
        source=fields.choice("source", Source, Source.IMPORTED),
        confidence=fields.fraction("confidence"),
        weight=fields.fraction("weight"),
        namespace=fields.text("namespace") or "agent",
        provenance=decode_provenance(fields.raw("provenance")),
        times=Times(
            learned=learned,
            updated=times.time("updated") or learned,
            confirmed=times.time("confirmed") or learned,
            surfaced=times.time("surfaced"),
            used=times.time("used"),
        ),
        counters=_decode_counters(fields),
    )


def _decode_counters(fields: Fields) -> Counters:
    if not fields.raw("counters"):
        return Counters()
    counters = fields.nested("counters", known=_COUNTER_FIELDS)
    return Counters(**{name: counters.integer(name) for name in Counters.__slots__})


def decode_status(value: object) -> Status:
    """Read a status object; None is Active."""
    if value is None:
        return Active()
    fields = Fields(as_object(value, "status"), known=_STATUS_FIELDS, path="status.")
    since = fields.time("since")
    match fields.text("state"):
        case "active":
            return Active()
        case "conflicted":
            against = _typed(fields.text("against"), MemoryId)
            return Conflicted(evidence=fields.text("evidence") or "", since=_needed(since, "status"), against=against)
        case "superseded":
            return Superseded(by=MemoryId(fields.required_text("by")), since=_needed(since, "status"))
        case "expired":
            return Expired(since=_needed(since, "status"))
        case "deleted":
            return Deleted(since=_needed(since, "status"), reason=fields.text("reason"))
        case other:
            raise InputError(f"status.state is {other!r}; known are active, conflicted, superseded, expired, deleted",
                             field="status.state")  # fmt: skip


def decode_provenance(value: object) -> Provenance:
    """Read a provenance object; None is "nothing known"."""
    if value is None:
        return Provenance()
    fields = Fields(as_object(value, "provenance"), known=_PROVENANCE_FIELDS, path="provenance.")
    raw = fields.raw("raw")
    return Provenance(
        session=_typed(fields.text("session"), SessionId),
        messages=tuple(MessageId(text) for text in fields.texts("messages")),
        derived_from=tuple(MemoryId(text) for text in fields.texts("derived_from")),
        tool=fields.text("tool"),
        agent=fields.text("agent"),
        extracted_at=fields.time("extracted_at"),
        origin_system=fields.text("origin_system"),
        origin_id=fields.text("origin_id"),
        raw=MappingProxyType({key: str(item) for key, item in as_object(raw or {}, "provenance.raw").items()}),
    )


def _memory_id(fields: Fields) -> MemoryId:
    text = fields.required_text("id")
    if not is_ulid(text):
        raise InputError(f"id is {text[:60]!r}; it must be a ULID of 26 characters", field="id")
    return MemoryId(text)


def _typed(value: str | None, kind: Callable[[str], _T]) -> _T | None:
    return None if value is None else kind(value)


def _needed(moment: datetime | None, path: str) -> datetime:
    if moment is None:
        raise InputError(f"{path}.since is missing", field=f"{path}.since")
    return moment


def time_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else format_time(moment)
