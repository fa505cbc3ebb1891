"""What a dream did, or would do, and which sessions wait for one: as lines for people and as JSON values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from backstory.codecs.record import format_time
from backstory.domain.memory import Conflicted, Deleted, Superseded, Visibility
from backstory.domain.provenance import is_injectable
from backstory.entrypoints.local_time import shown_time
from backstory.entrypoints.render import Line, shortened

if TYPE_CHECKING:
    from backstory.domain.history import Edit
    from backstory.domain.ids import ProjectId
    from backstory.domain.project import Project
    from backstory.entrypoints.shapes import Shape
    from backstory.services.dreaming_inspection import Waiting
    from backstory.services.dreaming_outcome import Dreamt

_SIGNS = {"new": "+", "reworded": "~", "superseded": "×", "forgotten": "-", "disputed": "!", "confirmed": "="}
_TOLD = 5  # sessions that ``status`` names


def deed(edit: Edit) -> str:
    """What an edit of a dream does, in a word."""
    if edit.before is None:
        return "new"
    match edit.after.status:
        case Superseded():
            return "superseded"
        case Deleted():
            return "forgotten"
        case Conflicted():
            return "disputed"
        case _:
            return "confirmed" if edit.before.content == edit.after.content else "reworded"


def dreamt_lines(done: Sequence[Dreamt], *, dry_run: bool) -> Iterator[Line]:
    """What came of each session, edit by edit, and why proposals were not carried out."""
    if not done:
        yield "No session has anything new to distil.", "plain"
    for one in done:
        edits = _edits(one)
        by = ", ".join(dict.fromkeys(made.made_by for made in one.distilled))
        said = f"{len(edits)} {'change' if len(edits) == 1 else 'changes'} by {by}" if by else one.outcome.value
        yield f"{one.session}  {'would be ' if dry_run and by else ''}{said}", "strong"
        if one.because:
            yield f"  {one.because}", "faint"
        yield from map(_edit_line, edits)
        refused = _refused(one)
        if refused:
            told = ", ".join(f"{count} {reason}" for reason, count in sorted(refused.items()))
            yield f"  not kept: {told}", "faint"
        for change in one.changes:
            yield f"  take it back with `backstory undo {change.id}`", "faint"


def _edit_line(edit: Edit) -> Line:
    memory, done = edit.after, deed(edit)
    name = f"#{memory.n} " if memory.n else ""
    place = "everywhere, " if memory.visibility is Visibility.GLOBAL else ""
    review = "for review, " if not is_injectable(memory.origin) else ""
    against = f" (against it: {memory.status.evidence})" if isinstance(memory.status, Conflicted) else ""
    text = f"  {_SIGNS[done]} {name}{done} ({review}{place}{memory.kind.value}): {memory.content}{against}"
    return text, "good" if done == "new" else "plain"


def _edits(one: Dreamt) -> list[Edit]:
    """As they were stored; as they were planned where nothing was written."""
    if one.changes:
        return [edit for change in one.changes for edit in change.edits]
    return [edit for plan in one.plans for edit in plan.edits]


def _refused(one: Dreamt) -> Mapping[str, int]:
    refused: Counter[str] = Counter()
    for plan in one.plans:
        refused.update({reason.value: count for reason, count in plan.refused.items()})
    return refused


def dreamt_shape(done: Sequence[Dreamt], projects: Mapping[ProjectId, Project], *, dry_run: bool) -> Shape:
    """The same as JSON."""
    return {"dry_run": dry_run, "sessions": [_session_shape(one, projects) for one in done]}


def _session_shape(one: Dreamt, projects: Mapping[ProjectId, Project]) -> Shape:
    from backstory.entrypoints.shapes import memory_shape

    return {
        "session": one.session,
        "outcome": one.outcome.value,
        "because": one.because,
        "stretches": len(one.distilled),
        "made_by": sorted({made.made_by for made in one.distilled}),
        "changes": [change.id for change in one.changes],
        "edits": [{"done": deed(edit), "memory": memory_shape(edit.after, projects)} for edit in _edits(one)],
        "not_kept": dict(_refused(one)),
        "for_review": sum(plan.review for plan in one.plans),
    }


def waiting_lines(waiting: Waiting, *, enabled: bool) -> Iterator[Line]:
    """The sessions that are to be distilled, and what failed; nothing where none waits."""
    if not waiting.states:
        return
    count = len(waiting.states)
    when = "" if enabled else "; dream.enabled is off"
    yield "Distilling", "strong"
    yield f"  {count} {'session waits' if count == 1 else 'sessions wait'} to be distilled{when}", "plain"
    for state in waiting.states[:_TOLD]:
        if state.problem is None:
            continue
        often = "" if state.attempts < 2 else f" {state.attempts} times in a row"
        until = state.not_before if state.not_before is not None and state.not_before > waiting.now else None
        again = f"; tried again after {shown_time(until)}" if until else ""
        yield f"  {state.session}  failed{often}: {shortened(state.problem, 200)}{again}", "bad"


def waiting_shape(waiting: Waiting) -> Shape:
    """What ``status`` tells of it."""
    return {
        "waiting": [
            {
                "session": state.session,
                "attempts": state.attempts,
                "problem": state.problem,
                "not_before": None if state.not_before is None else format_time(state.not_before),
                "leased_until": None if state.lease is None else format_time(state.lease.expires_at),
            }
            for state in waiting.states
        ]
    }
