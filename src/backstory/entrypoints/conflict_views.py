"""Conflicts between memories, as lines for people and as JSON values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from backstory.codecs.record import format_time
from backstory.domain.memory import Superseded
from backstory.entrypoints.local_time import shown_time
from backstory.entrypoints.render import Line, head_of, shortened
from backstory.entrypoints.shapes import Shape, memory_shape

if TYPE_CHECKING:
    from backstory.domain.history import Edit
    from backstory.domain.ids import ProjectId
    from backstory.domain.project import Project
    from backstory.services.conflicts import OpenConflict, Side


def conflict_lines(
    found: Sequence[OpenConflict], projects: Mapping[ProjectId, Project], here: ProjectId | None
) -> Iterator[Line]:
    """Each conflict: both memories with what each comes from, and in what they differ."""
    if not found:
        yield "No memories here are in conflict.", "faint"
    for position, conflict in enumerate(found):
        if position:
            yield "", "plain"
        yield from _side_lines(conflict.one, projects, here)
        if conflict.other is not None:
            yield "against", "faint"
            yield from _side_lines(conflict.other, projects, here)
        yield f"  {conflict.evidence or 'no evidence was given'} (since {shown_time(conflict.since)})", "bad"
    if found:
        n = found[0].one.memory.n
        yield "", "plain"
        yield f"Settle one with: backstory resolve {n} --keep, --both or --with TEXT", "faint"


def _side_lines(side: Side, projects: Mapping[ProjectId, Project], here: ProjectId | None) -> Iterator[Line]:
    yield head_of(side.memory, projects, here), "strong"
    yield side.memory.content, "plain"
    by = side.memory.origin.value
    if side.sentence is not None and side.at is not None:
        yield f"  {by}, {shown_time(side.at)}, session {side.session}: “{side.sentence}”", "faint"
    else:
        session = f", session {side.session}" if side.session else ""
        yield f"  {by}, {shown_time(side.memory.times.learned)}{session}", "faint"


def settled_lines(edits: Sequence[Edit], *, done: bool) -> Iterator[Line]:
    """What settling a conflict did to each memory, or would do."""
    for edit in edits:
        memory = edit.after
        said = shortened(memory.content)
        if edit.before is None:
            yield f"{'Remembered' if done else 'Would remember'} {f'#{memory.n}: ' if done else ''}{said}", "good"
        elif isinstance(memory.status, Superseded):
            yield f"{'Replaced' if done else 'Would replace'} #{memory.n}: {said}", "plain"
        else:
            yield f"{'Kept' if done else 'Would keep'} #{memory.n}: {said}", "plain"


def conflicts_shape(found: Sequence[OpenConflict], projects: Mapping[ProjectId, Project]) -> Shape:
    """All conflicts; ``sides`` has two memories, or one that its evidence speaks against."""
    return {
        "conflicts": [
            {
                "evidence": conflict.evidence,
                "since": format_time(conflict.since),
                "sides": [
                    {
                        "memory": memory_shape(side.memory, projects),
                        "sentence": side.sentence,
                        "session": side.session,
                        "at": None if side.at is None else format_time(side.at),
                    }
                    for side in (conflict.one, conflict.other)
                    if side is not None
                ],
            }
            for conflict in found
        ]
    }
