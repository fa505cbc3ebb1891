"""Memories that say the same, as lines for people and as JSON values (``docs/reference/json-output.md``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from backstory.entrypoints.render import Line
from backstory.entrypoints.shapes import Shape, memory_shape

if TYPE_CHECKING:
    from backstory.domain.history import Change
    from backstory.domain.ids import ProjectId
    from backstory.domain.memory import Memory
    from backstory.domain.project import Project
    from backstory.services.consolidate import Plan


def plan_lines(plan: Plan, *, done: bool) -> Iterator[Line]:
    """Each group, with the texts that go in full, and each pair that a person has to look at."""
    for group in plan.groups:
        yield f"[{group.found_by.value}] {'Kept' if done else 'Would keep'} #{group.kept.n}:", "strong"
        yield from _indented(group.kept)
        for memory in group.removed:
            yield f"  {'removed' if done else 'would remove'} #{memory.n}:", "plain"
            yield from _indented(memory)
    for pair in plan.doubtful:
        yield f"[{pair.found_by.value}] #{pair.memory.n} and #{pair.other.n} both stay: {_why(pair.reasons)}", "strong"
        yield from _indented(pair.memory)
        yield from _indented(pair.other)
    yield from ((text, "plain") for text in summary(plan, done=done))


def summary(plan: Plan, *, done: bool) -> Iterator[str]:
    """What a run did or would do, in figures, and what it left."""
    removed, groups = len(plan.removed), len(plan.groups)
    if not groups and not plan.doubtful:
        yield f"No duplicates among {_counted(plan.compared, 'memory', 'memories')}."
    else:
        would = "Removed" if done else "Would remove"
        yield f"{would} {_counted(removed, 'memory', 'memories')} in {_counted(groups, 'group', 'groups')}."
    if plan.more_groups:
        yield f"{_counted(plan.more_groups, 'more group', 'more groups')}: run it again for them."
    if plan.doubtful:
        told = f" ({plan.more_doubtful} more are not shown)" if plan.more_doubtful else ""
        yield (
            f"{_counted(len(plan.doubtful), 'pair is', 'pairs are')} alike and not the same{told}. Where one is wrong,"
            " forget it, or replace both by one statement."
        )
    for skipped, reason in plan.skipped.items():
        yield f"Not compared by {skipped.value}: {reason}."


def plan_shape(plan: Plan, change: Change | None, projects: Mapping[ProjectId, Project], *, dry_run: bool) -> Shape:
    """The whole plan; ``change`` is null where nothing was written."""
    return {
        "dry_run": dry_run,
        "change": None if change is None else change.id,
        "compared": plan.compared,
        "groups": [
            {
                "found_by": group.found_by.value,
                "kept": memory_shape(group.kept, projects),
                "removed": [memory_shape(memory, projects) for memory in group.removed],
            }
            for group in plan.groups
        ],
        "uncertain": [
            {
                "found_by": pair.found_by.value,
                "memories": [memory_shape(pair.memory, projects), memory_shape(pair.other, projects)],
                "reasons": list(pair.reasons),
            }
            for pair in plan.doubtful
        ],
        "more_groups": plan.more_groups,
        "more_uncertain": plan.more_doubtful,
        "skipped": {skipped.value: reason for skipped, reason in plan.skipped.items()},
    }


def _indented(memory: Memory) -> Iterator[Line]:
    yield from ((f"    {line}", "plain") for line in memory.content.splitlines())


def _why(reasons: tuple[str, ...]) -> str:
    return "; ".join(reasons)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
