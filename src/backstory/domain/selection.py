"""Which memories a caller means: one value that every store understands the same way.

``selects`` is the meaning; stores translate it into their own filters and are tested against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from backstory.domain.ids import MemoryId
from backstory.domain.labels import canonical_area, canonical_tag
from backstory.domain.memory import (
    Conflicted,
    Kind,
    Memory,
    Sensitivity,
    Superseded,
    Tier,
    Visibility,
    is_offerable,
    status_at,
    status_name,
)
from backstory.domain.scope import Viewer, visible
from backstory.domain.statement_form import statement_form
from backstory.domain.text import normalise
from backstory.domain.time_range import TimeRange

CURRENT = frozenset({"active", "conflicted"})
WITH_SUPERSEDED = CURRENT | {"superseded"}
EVERY_STATE = frozenset({"active", "conflicted", "superseded", "expired", "deleted"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Conditions that must all hold. None and empty mean "any".

    ``states`` are status names as of ``now``. ``tags`` must all be present. ``area`` selects that path and everything
    below it. ``learned`` bounds the learned date, both ends included. ``same_text`` is any text whose
    ``statement_form`` is the memory's. ``contains`` is a normalised substring of the content. ``derived_from`` asks for
    those that were made from that memory, ``against`` for those in conflict with it. ``offerable`` asks for those that
    may reach a model unasked, or for the others.
    """

    viewer: Viewer
    now: datetime
    states: frozenset[str] = CURRENT
    kinds: frozenset[Kind] = frozenset()
    tags: tuple[str, ...] = ()
    area: str | None = None
    learned: TimeRange | None = None
    visibility: Visibility | None = None
    sensitivity: Sensitivity | None = None
    tier: Tier | None = None
    pinned: bool | None = None
    same_text: str | None = None
    contains: str | None = None
    superseded_by: MemoryId | None = None
    derived_from: MemoryId | None = None
    against: MemoryId | None = None
    offerable: bool | None = None

    def __post_init__(self) -> None:
        """Look for labels in the form in which they are kept."""
        object.__setattr__(self, "tags", tuple(map(canonical_tag, self.tags)))
        object.__setattr__(self, "area", canonical_area(self.area or "") or None)


def selects(selection: Selection, memory: Memory) -> bool:
    """Whether one memory is meant."""
    return (
        visible(memory, selection.viewer)
        and status_name(status_at(memory, selection.now)) in selection.states
        and (not selection.kinds or memory.kind in selection.kinds)
        and all(tag in memory.tags for tag in selection.tags)
        and _in_area(memory.area, selection.area)
        and (selection.learned is None or selection.learned.contains(memory.times.learned))
        and (selection.visibility is None or memory.visibility is selection.visibility)
        and (selection.sensitivity is None or memory.sensitivity is selection.sensitivity)
        and (selection.tier is None or memory.tier is selection.tier)
        and (selection.pinned is None or memory.pinned is selection.pinned)
        and (selection.same_text is None or statement_form(memory.content) == statement_form(selection.same_text))
        and (selection.contains is None or normalise(selection.contains) in normalise(memory.content))
        and (selection.superseded_by is None or _is_superseded_by(memory, selection.superseded_by))
        and (selection.derived_from is None or selection.derived_from in memory.provenance.derived_from)
        and (selection.against is None or _is_against(memory, selection.against))
        and (selection.offerable is None or is_offerable(memory) is selection.offerable)
    )


def _in_area(area: str | None, wanted: str | None) -> bool:
    if wanted is None:
        return True
    return area is not None and (area == wanted or area.startswith(wanted + "/"))


def _is_superseded_by(memory: Memory, newer: MemoryId) -> bool:
    return isinstance(memory.status, Superseded) and memory.status.by == newer


def _is_against(memory: Memory, other: MemoryId) -> bool:
    return isinstance(memory.status, Conflicted) and memory.status.against == other
