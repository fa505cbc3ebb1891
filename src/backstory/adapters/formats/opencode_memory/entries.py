"""What the fields of an entry mean here, and how a memory stands in a store of opencode-memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Literal

from backstory.adapters.formats.opencode_memory.json_text import Json, decoder, js_text
from backstory.adapters.formats.outside_files import is_id
from backstory.domain.admission import admit_evidence
from backstory.domain.ids import MemoryId, MessageId, SessionId
from backstory.domain.interchange import foreign_id
from backstory.domain.memory import (
    Active,
    Conflicted,
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
)
from backstory.domain.provenance import Origin, Provenance

NAME = "opencode-memory"
ENTRY = "entry"
"""The key in ``provenance.raw`` under which an entry's fields stand as JSON, in their order, its texts left out."""
EVIDENCE_MAX_CHARS = 500

Entry = Mapping[str, Json]

KINDS = {
    "user": Kind.USER,
    "project": Kind.FACT,
    "workflow": Kind.WORKFLOW,
    "preferences": Kind.PREFERENCE,
    "decisions": Kind.DECISION,
    "status": Kind.STATUS,
    "environment": Kind.ENVIRONMENT,
    "other": Kind.OTHER,
}
"""Its categories; whatever else stands there is ``other`` to it."""
CORE_CATEGORIES = frozenset({"preferences", "workflow", "decisions", "environment"})
"""The categories whose entries are core where no tier is named, as in version 1."""
FULL_WEIGHT = 4.0
"""Its weights go up to this; ours up to 1."""

_TEXTS = ("text", "conflictEvidence")  # they are the memory's own
_SOURCES = {"explicit": Source.EXPLICIT, "dreamed": Source.DREAMED}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = 253_000_000_000_000  # in the year 9987
_MOST = (1 << 53) - 1
_MESSAGES_MAX = 200


def memory_of(entry: Entry, *, text: str) -> Memory:
    """The memory that an entry becomes, with these words; of fields of wrong types and values no more is made than
    opencode-memory would. Where no sensitivity known here stands, it is private."""
    created = moment(entry.get("created")) or moment(entry.get("lastSeen")) or _EPOCH
    seen = moment(entry.get("lastSeen")) or created
    visibility = Visibility.GLOBAL if entry.get("scope") == "global" else Visibility.PROJECT
    weight = number(entry.get("weight"))
    confidence = number(entry.get("confidence"))
    return Memory(
        id=id_of(entry, text),
        content=text,
        kind=KINDS.get(category_of(entry), Kind.OTHER),
        visibility=visibility,
        project=None,
        tier=tier_of(entry),
        pinned=entry.get("pinned") is True,
        expires_at=moment(entry.get("expiresAt")),
        sensitivity=sensitivity_of(entry),
        status=_status_of(entry, text, seen=seen),
        origin=Origin.IMPORTED,
        source=_SOURCES.get(str(entry.get("source")), Source.IMPORTED),
        confidence=1.0 if confidence is None else min(max(confidence, 0.0), 1.0),
        weight=0.75 if weight is None else min(max(weight / FULL_WEIGHT, 0.0), 1.0),
        provenance=_provenance_of(entry, text),
        times=Times(
            learned=created,
            updated=max(seen, created),
            confirmed=max(seen, created),
            surfaced=moment(entry.get("lastSurfaced")),
            used=moment(entry.get("lastUsed")),
        ),
        counters=Counters(
            helpful=count(entry.get("helpfulCount")),
            irrelevant=count(entry.get("irrelevantCount")),
            surfaced=count(entry.get("surfacedCount")),
            recalled=count(entry.get("useCount")),
        ),
    )


def place_of(entry: Entry) -> str | None:
    """The folder of an entry's project; None where it belongs to none."""
    project = entry.get("projectID")
    return project if entry.get("scope") != "global" and isinstance(project, str) and project.strip() else None


def key_of(entry: Entry, text: str) -> tuple[str, ...]:
    """What never changes in an entry: its id; where it has none, all by which it can be told apart."""
    if is_id(entry.get("id")):
        return (str(entry["id"]),)
    told = [entry.get(name) for name in ("scope", "projectID", "created")]
    return ("", text, js_text(told))


def id_of(entry: Entry, text: str) -> MemoryId:
    """The id that an entry has here."""
    learned = moment(entry.get("created")) or moment(entry.get("lastSeen")) or _EPOCH
    return foreign_id(NAME, key_of(entry, text), learned=learned)


def raw_of(entry: Entry) -> str:
    """An entry's fields as ``provenance.raw`` keeps them, without its texts."""
    return json.dumps({key: None if key in _TEXTS else value for key, value in entry.items()})


def entry_kept(memory: Memory) -> dict[str, Json] | None:
    """The entry that a memory was made of, with the words that it has now; None for one that came from elsewhere."""
    text = memory.provenance.raw.get(ENTRY) if memory.provenance.origin_system == NAME else None
    if text is None:
        return None
    try:
        entry = decoder().decode(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or "text" not in entry:
        return None
    entry["text"] = memory.content
    if "conflictEvidence" in entry and isinstance(memory.status, Conflicted):
        entry["conflictEvidence"] = memory.status.evidence
    return entry


def category_of(entry: Entry) -> str:
    """An entry's category; empty where it is no text."""
    category = entry.get("category")
    return category if isinstance(category, str) else ""


def tier_of(entry: Entry) -> Tier:
    """An entry's tier; where none is named, or an unknown one, that of its category."""
    tier = entry.get("tier")
    if isinstance(tier, str) and tier in {*Tier}:
        return Tier(tier)
    return Tier.CORE if category_of(entry) in CORE_CATEGORIES else Tier.ARCHIVAL


def sensitivity_of(entry: Entry) -> Sensitivity:
    """An entry's sensitivity: normal where none is named, private for a word that is not known."""
    word = entry.get("sensitivity")
    if word is None:
        return Sensitivity.NORMAL
    return Sensitivity(word) if isinstance(word, str) and word in {*Sensitivity} else Sensitivity.PRIVATE


def status_word(status: Status) -> Literal["ACTIVE", "CONFLICTED", "SUPERSEDED"]:
    """The status in its words."""
    match status:
        case Conflicted():
            return "CONFLICTED"
        case Superseded():
            return "SUPERSEDED"
        case _:
            return "ACTIVE"


def moment(value: Json) -> datetime | None:
    """A time in milliseconds since 1970; None for what is none, or lies beyond every calendar."""
    ms = number(value)
    return _EPOCH + timedelta(milliseconds=ms) if ms is not None and 0 < ms < _LAST_MS else None


def milliseconds(time: datetime) -> int:
    """Milliseconds since 1970, rounded down."""
    return (time - _EPOCH) // timedelta(milliseconds=1)


def number(value: Json) -> float | None:
    """A number; None for anything else."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def count(value: Json) -> int:
    """A count; 0 for anything else."""
    found = number(value)
    return min(int(found), _MOST) if found is not None and found > 0 else 0


def _status_of(entry: Entry, text: str, *, seen: datetime) -> Status:
    match entry.get("status"):
        case "CONFLICTED":
            evidence = entry.get("conflictEvidence")
            told = admit_evidence(evidence)[:EVIDENCE_MAX_CHARS] if isinstance(evidence, str) else ""
            return Conflicted(evidence=told, since=moment(entry.get("conflictAt")) or seen)
        case "SUPERSEDED":
            since = moment(entry.get("supersededAt")) or seen
            # it does not say by what, so this names a memory that is nowhere
            return Superseded(by=foreign_id(NAME, ("successor", *key_of(entry, text)), learned=since), since=since)
        case _:
            return Active()


def _provenance_of(entry: Entry, text: str) -> Provenance:
    session, tool, messages = (entry.get(name) for name in ("sourceSessionID", "createdBy", "sourceMessageIDs"))
    named: Sequence[Any] = messages if isinstance(messages, list) else ()
    return Provenance(
        session=SessionId(str(session)) if is_id(session) else None,
        messages=tuple(MessageId(one) for one in named[:_MESSAGES_MAX] if is_id(one)),
        tool=str(tool) if is_id(tool) else None,
        extracted_at=moment(entry.get("extractedAt")),
        origin_system=NAME,
        origin_id=key_of(entry, text)[0] or None,
        raw=MappingProxyType({ENTRY: raw_of(entry)}),
    )
