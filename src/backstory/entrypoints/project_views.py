"""Projects as tables, as lines for people, and as JSON values (``docs/reference/json-output.md``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from backstory.codecs.record import format_time
from backstory.entrypoints.local_time import shown_day, shown_time
from backstory.entrypoints.render import Line, shortened
from backstory.entrypoints.tables import Column, Table

if TYPE_CHECKING:
    from backstory.domain.history import Change
    from backstory.domain.project import Alias, Project
    from backstory.entrypoints.shapes import Shape
    from backstory.services.projects import Plan, ProjectCard

_LISTED = 10


def project_table(cards: Sequence[ProjectCard]) -> Table:
    """Projects, one a row."""
    return Table(
        columns=(
            Column("project"),
            Column("id"),
            Column("folder", is_wide=True),
            Column("aliases", is_number=True),
            Column("memories", is_number=True),
            Column("candidates", is_number=True),
            Column("last seen"),
        ),
        rows=[
            (
                card.project.name,
                card.project.id,
                card.project.root,
                f"{len(card.aliases)}",
                f"{card.memories}",
                f"{len(card.candidates)}",
                shown_day(card.last_seen) if card.last_seen else "",
            )
            for card in cards
        ],
        empty="There is no project yet.",
    )


def card_lines(card: ProjectCard) -> Iterator[Line]:
    """A project in full."""
    yield f"{_name(card.project)}  {card.project.id}", "strong"
    yield f"Last seen in {card.project.root}", "plain"
    yield _counts(card.memories, card.sessions), "plain"
    yield "", "plain"
    yield "Known by", "strong"
    for alias in card.aliases:
        yield f"  {_shown(alias)}", "plain"
        yield from ((f"    {trait}", "faint") for trait in alias.traits)
    if card.candidates:
        yield "", "plain"
        yield "May be the same as", "strong"
    for candidate, other in card.candidates:
        yield f"  {_name(other)}  {other.id}  {other.root}", "plain"
        yield f"    {candidate.reason} ({candidate.here}, {candidate.there})", "faint"
        yield f"    backstory projects merge {other.id} {card.project.id}", "faint"


def plan_lines(plan: Plan) -> Iterator[Line]:
    """What a merge or a split moves."""
    source, target = _name(plan.source), _name(plan.target)
    yield f"{source} into {target}" if plan.is_merge else f"A part of {source} becomes {target}", "strong"
    yield f"  {_counts(len(plan.memories), len(plan.sessions))} to move, with", "plain"
    yield from ((f"  {alias.name}", "plain") for alias in plan.aliases)
    if not plan.is_merge:
        yield "  The other memories stay: only those of sessions that ran in this folder go with it.", "faint"
    if plan.doubles:
        yield f"  In both, and kept once ({len(plan.doubles)}):", "plain"
    for moved, kept in plan.doubles[:_LISTED]:
        yield f"    #{moved.n} by #{kept.n}: {shortened(moved.content)}", "faint"
    for other in plan.namesakes:
        yield f"  Another project has that name: {other.id}  {other.root}", "plain"


def done_lines(plan: Plan, change: Change | None) -> Iterator[Line]:
    """What was moved, and the way back."""
    words = "Merged" if plan.is_merge else "Split"
    yield f"{words} {_name(plan.source)} into {_name(plan.target)} ({plan.target.id})", "good"
    if change is not None:
        yield f"Undo with: backstory undo {change.id} --project {_quoted(_folder_of(plan))}", "faint"
    elif not plan.is_merge:
        yield f"Undo with: backstory projects merge {plan.target.id} {plan.source.id}", "faint"


def card_shape(card: ProjectCard) -> Shape:
    """A project with its aliases and candidates."""
    return {
        **_project_shape(card.project),
        "memories": card.memories,
        "sessions": card.sessions,
        "last_seen": format_time(card.last_seen) if card.last_seen else None,
        "aliases": [_alias_shape(alias) for alias in card.aliases],
        "candidates": [
            {"project": _project_shape(other), "reason": item.reason, "here": item.here, "there": item.there}
            for item, other in card.candidates
        ],
    }


def plan_shape(plan: Plan, change: Change | None, *, dry_run: bool) -> Shape:
    """What a merge or a split moves, or has moved."""
    return {
        "dry_run": dry_run,
        "source": _project_shape(plan.source),
        "target": _project_shape(plan.target),
        "aliases": [alias.name for alias in plan.aliases],
        "memories": [memory.n for memory in plan.memories],
        "sessions": list(plan.sessions),
        "doubles": [{"moved": moved.n, "kept": kept.n} for moved, kept in plan.doubles],
        "namesakes": [_project_shape(other) for other in plan.namesakes],
        "change": None if change is None else change.id,
    }


def renamed_shape(before: Project, after: Project) -> Shape:
    """A project after it was renamed, and its former name."""
    return {**_project_shape(after), "former_name": before.name}


def _project_shape(project: Project) -> Shape:
    return {"id": project.id, "name": project.name, "root": project.root}


def _alias_shape(alias: Alias) -> Shape:
    return {
        "alias": alias.name,
        "kind": alias.kind,
        "first_seen": format_time(alias.first_seen),
        "last_seen": format_time(alias.last_seen),
        "traits": list(alias.traits),
    }


def _shown(alias: Alias) -> str:
    return f"{alias.name}  (first seen {shown_time(alias.first_seen)}, last {shown_time(alias.last_seen)})"


def _counts(memories: int, sessions: int) -> str:
    one, other = "memory" if memories == 1 else "memories", "session" if sessions == 1 else "sessions"
    return f"{memories} {one}, {sessions} {other}"


def _name(project: Project) -> str:
    return " ".join(project.name.split())


def _folder_of(plan: Plan) -> str:
    return plan.target.root


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)
