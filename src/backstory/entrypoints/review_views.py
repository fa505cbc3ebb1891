"""What waits for review: as lines for people and as JSON values (``docs/reference/json-output.md``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from backstory.domain.provenance import Provenance
from backstory.entrypoints.render import Line, head_of
from backstory.entrypoints.shapes import Shape, memory_shape

if TYPE_CHECKING:
    from backstory.domain.ids import ProjectId
    from backstory.domain.memory import Memory
    from backstory.domain.project import Project


def waiting_lines(
    memories: Sequence[Memory], projects: Mapping[ProjectId, Project], here: ProjectId | None
) -> Iterator[Line]:
    """Each memory in full, with where it comes from; then what can be done."""
    if not memories:
        yield "No memory waits for review.", "faint"
        return
    for memory in memories:
        yield head_of(memory, projects, here), "strong"
        yield memory.content, "plain"
        yield f"  from {memory.origin.value}{_through(memory.provenance)}", "faint"
    yield "Vouch for one with: backstory review accept NUMBER; forget it with: backstory review reject NUMBER", "faint"


def waiting_shape(memories: Sequence[Memory], projects: Mapping[ProjectId, Project], *, total: int) -> Shape:
    """The queue, newest first; ``total`` counts those beyond the limit too."""
    return {"memories": [memory_shape(memory, projects) for memory in memories], "total": total}


def count_lines(waiting: int) -> Iterator[Line]:
    """The line of ``status``; none where nothing waits."""
    if waiting:
        subject = "1 memory waits" if waiting == 1 else f"{waiting} memories wait"
        yield f"  review    {subject} for review: `backstory review`", "plain"


def _through(source: Provenance) -> str:
    """By what it came, as far as that is known."""
    ways = (
        ("store", source.origin_system),
        ("tool", source.tool),
        ("agent", source.agent),
        ("session", source.session),
    )
    known = [f"{way} {name}" for way, name in ways if name]
    return f", {', '.join(known)}" if known else ""
