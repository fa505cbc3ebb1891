"""Memories as entries of opencode-memory: those that came from it as they were, but for what changed here since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from backstory.adapters.formats.opencode_memory.entries import (
    FULL_WEIGHT,
    KINDS,
    entry_kept,
    memory_of,
    milliseconds,
    status_word,
)
from backstory.adapters.formats.opencode_memory.json_text import Json
from backstory.domain.memory import Conflicted, Deleted, Kind, Memory, Source, Superseded, Tier, Visibility
from backstory.domain.project import Project
from backstory.domain.provenance import Origin, is_injectable, trust

_CATEGORIES = {kind: category for category, kind in KINDS.items()} | {Kind.BLOCKER: "status"}
_OF_VERSION_2 = ("tier", "pinned", "expiresAt", "sensitivity", "status", "conflictEvidence", "conflictAt",
                 "supersededAt", "confidence", "createdBy")  # fmt: skip
_COUNTS = {"useCount": "recalled", "helpfulCount": "helpful", "irrelevantCount": "irrelevant",
           "surfacedCount": "surfaced"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Exportable:
    """An entry to be written. ``changed`` is when the memory was changed here, None where it is as it came."""

    entry: dict[str, Json]
    changed: datetime | None
    needs_version_2: bool


def exportable(memory: Memory, projects: Mapping[str, Project]) -> Exportable | str:
    """The entry that a memory becomes, or why it has no place there."""
    was = entry_kept(memory)
    if isinstance(memory.status, Deleted):
        return "it is forgotten"
    if memory.visibility is Visibility.SESSION:
        return "it is for one session only, which opencode-memory does not know"
    if was is None and trust(memory.origin) < trust(Origin.IMPORTED):
        return f"opencode-memory would offer it unasked, which text of origin {memory.origin.value} never is"
    if was is None:
        return _new(memory, projects)
    before = memory_of(was, text=memory.content)
    entry = dict(was)
    _patch(entry, before, memory, projects)
    changed = entry != was or memory.times.updated > before.times.updated
    needs = any(name in entry and name not in was for name in _OF_VERSION_2)
    times = memory.times
    return Exportable(
        entry=entry, changed=max(times.updated, times.confirmed) if changed else None, needs_version_2=needs
    )


def in_version_2(entry: dict[str, Json]) -> dict[str, Json]:
    """An entry of version 1 with what version 2 takes it to say."""
    memory = memory_of(entry, text=str(entry.get("text")))
    told = {"tier": memory.tier.value, "sensitivity": memory.sensitivity.value, "status": status_word(memory.status)}
    return entry | {name: value for name, value in told.items() if name not in entry}


def _patch(entry: dict[str, Json], before: Memory, memory: Memory, projects: Mapping[str, Project]) -> None:
    """Set the fields that say something else now."""
    if memory.kind is not before.kind:
        entry["category"] = _category(memory)
    if memory.visibility is not before.visibility:
        _set_scope(entry, memory, projects)
    if abs(memory.weight - before.weight) > 1e-9:
        entry["weight"] = memory.weight * FULL_WEIGHT
    if memory.confidence != before.confidence:
        entry["confidence"] = memory.confidence
    if memory.times.confirmed > before.times.confirmed:
        entry["lastSeen"] = milliseconds(memory.times.confirmed)
    if memory.tier is not before.tier and not _is_held_back(before, memory):
        entry["tier"] = memory.tier.value
    if memory.pinned is not before.pinned:
        entry["pinned"] = memory.pinned
    if memory.expires_at != before.expires_at:
        _set_or_remove(entry, "expiresAt", memory.expires_at)
    if memory.sensitivity is not before.sensitivity:
        entry["sensitivity"] = memory.sensitivity.value
    if status_word(memory.status) != status_word(before.status):
        _set_status(entry, memory)
    _set_counters(entry, before, memory)


def _is_held_back(before: Memory, memory: Memory) -> bool:
    """Whether a tier is lower only because nothing from a file is put before a model unasked."""
    return before.tier is Tier.CORE and memory.tier is Tier.ARCHIVAL and not is_injectable(memory.origin)


def _set_scope(entry: dict[str, Json], memory: Memory, projects: Mapping[str, Project]) -> None:
    entry["scope"] = "global" if memory.visibility is Visibility.GLOBAL else "project"
    if memory.visibility is Visibility.GLOBAL:
        entry.pop("projectID", None)
    else:
        entry["projectID"] = _folder(memory, projects) or entry.get("projectID")


def _set_status(entry: dict[str, Json], memory: Memory) -> None:
    for name in ("conflictEvidence", "conflictAt", "supersededAt"):
        entry.pop(name, None)
    entry["status"] = status_word(memory.status)
    if isinstance(memory.status, Conflicted):
        entry["conflictEvidence"] = memory.status.evidence
        entry["conflictAt"] = milliseconds(memory.status.since)
    elif isinstance(memory.status, Superseded):
        entry["supersededAt"] = milliseconds(memory.status.since)


def _set_counters(entry: dict[str, Json], before: Memory, memory: Memory) -> None:
    for name, ours in _COUNTS.items():
        now = getattr(memory.counters, ours)
        if now > getattr(before.counters, ours):
            entry[name] = now
    for name, here, there in (
        ("lastUsed", memory.times.used, before.times.used),
        ("lastSurfaced", memory.times.surfaced, before.times.surfaced),
    ):
        if here is not None and (there is None or here > there):
            entry[name] = milliseconds(here)


def _set_or_remove(entry: dict[str, Json], name: str, time: datetime | None) -> None:
    if time is None:
        entry.pop(name, None)
    else:
        entry[name] = milliseconds(time)


def _new(memory: Memory, projects: Mapping[str, Project]) -> Exportable | str:
    """The entry of a memory that never was there, its fields in the order in which the plugin writes them."""
    folder = _folder(memory, projects)
    if memory.visibility is Visibility.PROJECT and folder is None:
        return "its project has no folder, by which opencode-memory goes"
    is_dreamed = memory.source in (Source.DREAMED, Source.OBSERVED)
    source, times = memory.provenance, memory.times
    entry: dict[str, Json] = {
        "text": memory.content,
        "category": _category(memory),
        "scope": "global" if memory.visibility is Visibility.GLOBAL else "project",
        "projectID": folder if memory.visibility is Visibility.PROJECT else None,
        "weight": memory.weight * FULL_WEIGHT,
        "lastSeen": milliseconds(times.confirmed),
        "source": "dreamed" if is_dreamed else "explicit",
        "created": milliseconds(times.learned),
        "createdBy": "consolidation" if is_dreamed else "memory_write",
        "sourceSessionID": source.session,
        "sourceMessageIDs": [*source.messages] or None,
        "extractedAt": None if source.extracted_at is None else milliseconds(source.extracted_at),
        "confidence": memory.confidence,
        "tier": memory.tier.value,
        "pinned": memory.pinned or None,
        "expiresAt": None if memory.expires_at is None else milliseconds(memory.expires_at),
        "sensitivity": memory.sensitivity.value,
        "id": memory.id,
        "status": status_word(memory.status),
    }
    written = {name: value for name, value in entry.items() if value is not None}
    if not isinstance(memory.status, Conflicted | Superseded):
        written["status"] = "ACTIVE"
    else:
        _set_status(written, memory)
    for name, ours in _COUNTS.items():
        if getattr(memory.counters, ours):
            written[name] = getattr(memory.counters, ours)
    for name, time in (("lastUsed", times.used), ("lastSurfaced", times.surfaced)):
        if time is not None:
            written[name] = milliseconds(time)
    return Exportable(entry=written, changed=max(times.updated, times.confirmed), needs_version_2=True)


def _category(memory: Memory) -> str:
    if memory.kind in _CATEGORIES and memory.kind is not Kind.FACT:
        return _CATEGORIES[memory.kind]
    return "project" if memory.visibility is Visibility.PROJECT else "other"


def _folder(memory: Memory, projects: Mapping[str, Project]) -> str | None:
    project = projects.get(memory.project) if memory.project is not None else None
    return project.root or None if project is not None else None
