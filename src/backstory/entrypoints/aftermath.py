"""What a change did beside what was asked for, in sentences: conflicts that it settled or opened, what came back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backstory.domain.history import Change, Edit
from backstory.domain.memory import Active, Conflicted, Memory, Superseded


def asked_for(change: Change) -> list[Memory]:
    """The memories that were meant, as they are now; the others merely follow from them."""
    return [edit.after for edit in change.edits if _sentence(edit) is None]


def aftermath(edits: Sequence[Edit]) -> list[str]:
    """A sentence for each memory that was merely touched by a change, without a full stop."""
    return [said for edit in edits if (said := _sentence(edit)) is not None]


def _sentence(edit: Edit) -> str | None:
    before, after = edit.before, edit.after
    if before is None or replace(before, status=after.status, revision=after.revision) != after:
        return None
    match before.status, after.status:
        case Superseded(), Active():
            return f"#{after.n} is current again"
        case Superseded(), Superseded():
            return f"#{after.n} counts as replaced by what replaced it"
        case Conflicted(), Active():
            return f"#{after.n} is no longer in conflict"
        case _, Conflicted(evidence=evidence):
            return f"#{after.n} is in conflict now: {' '.join(evidence.split())}"
        case _:
            return None
