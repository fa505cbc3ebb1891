"""What has faded: as lines for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from backstory.entrypoints.render import Line, shortened
from backstory.entrypoints.shapes import Shape, memory_shape

if TYPE_CHECKING:
    from backstory.domain.ids import ProjectId
    from backstory.domain.project import Project
    from backstory.domain.pruning import Removal


def removal_lines(removals: Sequence[Removal]) -> Iterator[Line]:
    """Each memory that would go, and why."""
    for removal in removals:
        yield f"Would prune #{removal.memory.n}: {shortened(removal.memory.content)}", "plain"
        yield f"  {removal.reason}", "faint"


def removals_shape(removals: Sequence[Removal], projects: Mapping[ProjectId, Project]) -> Shape:
    """The plan of a pruning; ``memories`` as in every dry run, with the reason of each."""
    return {
        "dry_run": True,
        "memories": [
            memory_shape(removal.memory, projects) | {"pruned_because": removal.reason} for removal in removals
        ],
    }
