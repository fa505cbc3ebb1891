"""What happened to memories, by whom and why: the audit trail, from which every change can be undone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from backstory.domain.ids import ChangeId, MemoryId, SessionId
from backstory.domain.memory import Deleted, Memory, Status, Superseded, is_withheld
from backstory.domain.provenance import Provenance
from backstory.domain.scope import Viewer, circle, visible
from backstory.errors import Conflict, InputError


class Author(StrEnum):
    """Who decided."""

    USER = "user"
    AGENT = "agent"
    SYSTEM = "system"


class Action(StrEnum):
    """What was decided."""

    ADD = "add"
    UPDATE = "update"
    CONFIRM = "confirm"
    SUPERSEDE = "supersede"
    FORGET = "forget"
    PIN = "pin"
    UNPIN = "unpin"
    RETAG = "retag"
    IMPORT = "import"
    DREAM = "dream"
    CONFLICT = "conflict"
    RESOLVE = "resolve"
    CONSOLIDATE = "consolidate"
    FEEDBACK = "feedback"
    PRUNE = "prune"
    TRUST = "trust"
    MASK = "mask"
    UNDO = "undo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One memory before and after; ``before`` None means it was added. Forgetting is a status, not an absence."""

    before: Memory | None
    after: Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One decision and all that it did, committed as a whole or not at all.

    ``key`` makes a change idempotent: a second change with the same key is not committed, and the first is returned.
    """

    id: ChangeId
    at: datetime
    author: Author
    action: Action
    edits: tuple[Edit, ...]
    reason: str | None = None
    session: SessionId | None = None
    undoes: ChangeId | None = None
    key: str | None = None


def undo_edits(change: Change, current: dict[MemoryId, Memory], *, now: datetime) -> tuple[Edit, ...]:
    """The edits that put every memory of ``change`` back as it was before.

    An added memory becomes Deleted (its number is never given again). Raises Conflict where a later change stands on
    this one, naming the memory; nothing is undone then. A later change that was itself undone does not stand on it:
    what counts is that each memory is again as this change left it.
    """
    return tuple(_undo(edit, current, now) for edit in change.edits)


def _undo(edit: Edit, current: dict[MemoryId, Memory], now: datetime) -> Edit:
    present = current.get(edit.after.id)
    if present is None or not _is_as_left(present, edit.after):
        raise Conflict(f"memory #{edit.after.n} was changed again since; undo the later change first")
    if edit.before is None:
        status: Status = Deleted(since=now, reason="undone")
        return Edit(before=present, after=replace(present, status=status))
    return Edit(before=present, after=_with_bookkeeping(edit.before, of=present))


def _is_as_left(present: Memory, left: Memory) -> bool:
    return present == _with_bookkeeping(left, of=present)


def _with_bookkeeping(memory: Memory, *, of: Memory) -> Memory:
    """A memory with what is counted, not decided, taken from its present state."""
    return replace(with_counted(memory, of=of), n=of.n, revision=of.revision)


def with_counted(memory: Memory, *, of: Memory) -> Memory:
    """A memory as somebody decided it, with what only ``record_use`` moves as it is in ``of``: how often and when it
    was surfaced and recalled, in how many sessions. Helpful and irrelevant are decisions."""
    counted = of.counters
    return replace(
        memory,
        counters=replace(
            memory.counters, surfaced=counted.surfaced, recalled=counted.recalled, sessions=counted.sessions
        ),
        times=replace(memory.times, surfaced=of.times.surfaced, used=of.times.used),
    )


def touched(change: Change) -> Sequence[MemoryId]:
    """The ids of the memories a change wrote, in its order."""
    return [edit.after.id for edit in change.edits]


FORGOTTEN = "(forgotten)"
"""What a model reads in place of the words of a memory that was forgotten."""


def without_forgotten(change: Change, current: Mapping[MemoryId, Memory]) -> Change:
    """A change as a model may read it: without the words of memories that are forgotten by now."""
    gone = {name for name, memory in current.items() if isinstance(memory.status, Deleted)}
    if gone.isdisjoint(touched(change)):
        return change
    edits = tuple(_wordless(edit) if edit.after.id in gone else edit for edit in change.edits)
    return replace(change, edits=edits, reason=None)


def _wordless(edit: Edit) -> Edit:
    return Edit(before=None if edit.before is None else _without_words(edit.before), after=_without_words(edit.after))


def _without_words(memory: Memory) -> Memory:
    return replace(memory, content=FORGOTTEN, tags=(), area=None, issue=None, provenance=Provenance())


WITHHELD = "a memory in it was forgotten, or made private or local-only"
WITHDRAWN = "a memory in it was erased, or a secret in it was masked"
QUOTE_TAKEN_BACK = "what it quoted was taken back, forgotten or erased, or made private or local-only"
NO_LONGER_SHOWN = frozenset({WITHHELD, WITHDRAWN, QUOTE_TAKEN_BACK})
"""Why a frozen block is empty now that showed something before."""


def withheld(change: Change) -> list[MemoryId]:
    """The memories that a change forgot, or made private or local-only, in its order: no frozen text shows them on."""
    return [edit.after.id for edit in change.edits if edit.before is not None and is_withheld(edit.after)]


def sources_lost(change: Change) -> list[MemoryId]:
    """The memories, in the order of a change, that are no longer what somebody summed up: their text is another, they
    were superseded or are withheld, or others read them than before."""
    return [edit.after.id for edit in change.edits if no_longer_summed_up(edit)]


def no_longer_summed_up(edit: Edit) -> bool:
    """Whether a summary that was made from the memory before is one of the memory no more."""
    return edit.before is not None and (
        not may_be_summed_up(edit.after)
        or edit.before.content != edit.after.content
        or circle(edit.before) != circle(edit.after)
    )


def may_be_summed_up(memory: Memory) -> bool:
    """Whether a summary may be made from a memory: current, and neither private nor local-only."""
    return not is_withheld(memory) and not isinstance(memory.status, Superseded)


def doubts_settled(change: Change) -> list[MemoryId]:
    """The memories, in the order of a change, that no doubt is kept of any more: they say something else, or were
    forgotten."""
    return [edit.after.id for edit in change.edits if no_longer_doubted(edit)]


def no_longer_doubted(edit: Edit) -> bool:
    """Whether a doubt about the memory before is none about the memory after."""
    return edit.before is not None and (
        isinstance(edit.after.status, Deleted) or edit.before.content != edit.after.content
    )


def check_not_empty(change: Change) -> None:
    """Raise InputError for a change that changes nothing; stores call this before they write one."""
    if not change.edits:
        raise InputError("the change names no memory", field="edits")


def in_sight(change: Change, current: Mapping[MemoryId, Memory], viewer: Viewer) -> bool:
    """Whether the viewer may see a change: each of its memories is visible at each stage, and still is.

    ``current`` holds those memories as they are now: one that was made local-only takes its past with it.
    """
    return all(
        visible(image, viewer)
        for edit in change.edits
        for image in (edit.before, edit.after, current.get(edit.after.id))
        if image is not None
    )
