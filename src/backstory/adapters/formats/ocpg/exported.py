"""Memories as rows of ocpg: those that came from it as they were, but for what changed here since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from backstory.adapters.formats.ocpg.keeping import Kept, Layout
from backstory.adapters.formats.ocpg.rows import (
    EVERYWHERE,
    PROJECT,
    SYSTEM,
    OcpgRow,
    microseconds,
    moment,
    place_of,
    tags_of,
    type_of,
    unfit_for,
)
from backstory.adapters.formats.ocpg.values import array_of, array_text, time_of, time_text
from backstory.domain.admission import MAX_TAGS
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory, Superseded, Visibility
from backstory.domain.project import Project
from backstory.domain.provenance import Origin, trust

_MOST_RECALLS = (1 << 31) - 1
_MOST_ID = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Exportable:
    """The rows of a store in the order in which they stand, with their ids, and why memories have none."""

    rows: Sequence[tuple[int, Mapping[str, str | None]]]
    left_out: Sequence[str]
    last: int | None


@dataclass(slots=True)
class _Chosen:
    """Memories that get a row, by their ids there."""

    memories: dict[int, Memory] = field(default_factory=dict)
    rows: dict[MemoryId, int] = field(default_factory=dict)

    def add(self, row: int, memory: Memory) -> None:
        self.memories[row] = memory
        self.rows[memory.id] = row


def exportable(memories: Sequence[Memory], projects: Mapping[str, Project], kept: Kept) -> Exportable:
    """The rows that memories become. Those that came from there keep their ids; others get the next ones."""
    left_out: list[str] = []
    fit = _without_orphans([memory for memory in memories if _has_place(memory, projects, kept.layout, left_out)],
                           kept.layout, left_out)  # fmt: skip
    chosen = _numbered(fit, kept, left_out)
    place = {row: at for at, row in enumerate(kept.order)}
    order = sorted(chosen.memories, key=lambda row: (place.get(row, len(place)), row))
    rows = [(row, _values(row, chosen.memories[row], chosen, projects, kept)) for row in order]
    highest = max([kept.layout.last or 0, *chosen.memories], default=0)
    return Exportable(rows=rows, left_out=left_out, last=highest or None)


def is_own(memory: Memory) -> bool:
    """Whether a memory came from ocpg."""
    return memory.provenance.origin_system == SYSTEM and _id_of(memory) is not None


def _has_place(memory: Memory, projects: Mapping[str, Project], layout: Layout, left_out: list[str]) -> bool:
    reason = unfit_for(memory)
    if reason is None and not is_own(memory) and trust(memory.origin) < trust(Origin.IMPORTED):
        reason = f"ocpg would offer it unasked, which text of origin {memory.origin.value} never is"
    if reason is None and memory.visibility is Visibility.PROJECT and not (is_own(memory) or _folder(memory, projects)):
        reason = "its project has no folder, by which ocpg goes"
    if reason is not None:
        left_out.append(f"{_name(memory)} is left out: {reason}")
    return reason is None


def _without_orphans(memories: Sequence[Memory], layout: Layout, left_out: list[str]) -> list[Memory]:
    """Those whose successor is there too, where they have one: all others would count as current."""
    there = {memory.id for memory in memories}
    while True:
        orphans = [memory for memory in memories if memory.id in there and isinstance(memory.status, Superseded)
                   and (memory.status.by not in there or not layout.has("superseded_by"))]  # fmt: skip
        if not orphans:
            return [memory for memory in memories if memory.id in there]
        there -= {memory.id for memory in orphans}
        left_out += [f"{_name(memory)} is left out: what took its place cannot be named there" for memory in orphans]


def _numbered(memories: Iterable[Memory], kept: Kept, left_out: list[str]) -> _Chosen:
    chosen, new = _Chosen(), list[Memory]()
    for memory in memories:
        row = _id_of(memory) if is_own(memory) else None
        if row is None or row in chosen.memories:
            new.append(memory)
        else:
            chosen.add(row, memory)
    following = max([kept.layout.last or 0, *chosen.memories], default=0) + 1
    for row, memory in enumerate(new, start=following):
        if row > _MOST_ID:
            left_out.append(f"{_name(memory)} is left out: ocpg has no ids left")
            continue
        chosen.add(row, memory)
    return chosen


def _values(
    row: int, memory: Memory, chosen: _Chosen, projects: Mapping[str, Project], kept: Kept
) -> Mapping[str, str | None]:
    raw = memory.provenance.raw if is_own(memory) and row == _id_of(memory) else {}
    type_, project = _place(memory, raw, projects, kept.layout)
    by = chosen.rows.get(memory.status.by) if isinstance(memory.status, Superseded) else None
    values = {
        "id": str(row),
        "content": memory.content,
        "tags": _tags(memory, raw),
        "session_id": raw.get("session_id") or memory.provenance.session or memory.session,
        "project": project,
        "source_host": raw.get("source_host"),
        "created_at": _time(raw, "created_at") or time_text(memory.times.learned),
        "memory_type": type_,
        "access_count": _count(memory, raw),
        "last_accessed_at": _later(memory.times.used, _time(raw, "last_accessed_at")),
        "updated_at": _updated(memory, raw),
        "embedding": None if _is_changed(memory, raw) else kept.vectors.get(row) if raw else None,
        "superseded_by": None if by is None else str(by),
    }
    return {name: values[name] for name in kept.layout.columns if name in values}


def _place(
    memory: Memory, raw: Mapping[str, str], projects: Mapping[str, Project], layout: Layout
) -> tuple[str | None, str | None]:
    """The type and the project of a row: as they were, where they still say the same."""
    as_it_was = _row(raw)
    if raw and place_of(as_it_was) == (memory.kind, memory.visibility):
        return as_it_was.type, as_it_was.project
    folder = raw.get("project") if as_it_was.path else _folder(memory, projects)
    if not layout.has("memory_type"):
        return None, None if memory.visibility is Visibility.GLOBAL else folder
    return type_of(memory, layout.types) or PROJECT, folder or EVERYWHERE


def _row(raw: Mapping[str, str]) -> OcpgRow:
    return OcpgRow(
        id=0, content="", tags=(), session=None, project=raw.get("project"), type=raw.get("memory_type"), created=None,
        updated=None, accessed=None, access_count=0, by=None, by_created=None, host=None,
    )  # fmt: skip


def _folder(memory: Memory, projects: Mapping[str, Project]) -> str | None:
    if memory.provenance.origin_system == SYSTEM and (path := _row(memory.provenance.raw).path):
        return path
    project = projects.get(memory.project) if memory.project is not None else None
    return project.root or None if project is not None else None


def _tags(memory: Memory, raw: Mapping[str, str]) -> str:
    if "tags" in raw:
        try:
            was = tags_of([tag for tag in array_of(raw["tags"]) if tag is not None])
        except ValueError:
            was = ()
        if was[:MAX_TAGS] == memory.tags:
            return raw["tags"]
    return array_text(memory.tags)


def _count(memory: Memory, raw: Mapping[str, str]) -> str:
    count, told = min(memory.counters.recalled, _MOST_RECALLS), raw.get("access_count", "")
    fits = told.isascii() and told.removeprefix("-").isdecimal() and len(told) < 11 and int(told) <= _MOST_RECALLS
    return told if count == 0 and fits else str(count)


def _time(raw: Mapping[str, str], name: str) -> str | None:
    """A time as it was written there; None for what the server would not take."""
    told = raw.get(name)
    return told if time_of(told) is not None else None


def _later(here: datetime | None, there: str | None) -> str | None:
    """The later of two times, as it was written there if it is that one."""
    known = time_of(there)
    if here is None or (known is not None and microseconds(here) <= known):
        return there
    return time_text(here)


def _updated(memory: Memory, raw: Mapping[str, str]) -> str | None:
    if not _is_changed(memory, raw):
        return _time(raw, "updated_at")
    return time_text(memory.times.updated)


def _is_changed(memory: Memory, raw: Mapping[str, str]) -> bool:
    """Whether a memory was changed here, or, if it never was there, after it was learned."""
    known = time_of(raw.get("updated_at"))
    return memory.times.updated > (memory.times.learned if known is None else moment(known))


def _id_of(memory: Memory) -> int | None:
    text = memory.provenance.origin_id or ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 11 and int(text) <= _MOST_ID else None


def _name(memory: Memory) -> str:
    return f"#{memory.n}" if memory.n else f"memory {memory.id}"
