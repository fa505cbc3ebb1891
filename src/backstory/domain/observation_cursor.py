"""Which of a session's messages are not observed yet, and how that is told from a list that may have lost some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from backstory.domain.conversation import Message, Role
from backstory.domain.digest import SessionDigest
from backstory.domain.digest_plan import undigested
from backstory.domain.ids import MessageId
from backstory.domain.transcript import is_settled

IMPORTED = "imported"
"""``Piece.made_by`` of notes taken over from another product: they stand for everything up to their last source, and
``created_at`` is when that was said, or the start of 1970 if nobody knows."""


class CursorMode(StrEnum):
    """By what the unobserved messages were told from the observed ones."""

    NONE = "none"
    ID = "id"
    TIMESTAMP = "timestamp"
    FALLBACK_LATEST = "fallback-latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The message that was observed last, and when it was said; None where that is not known."""

    message: MessageId | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unobserved:
    """The messages of a list from place ``start`` on are not observed yet."""

    mode: CursorMode
    start: int


def after_cursor(messages: Sequence[Message], cursor: Cursor) -> Unobserved:
    """What a list holds behind a cursor. Without one, all of it.

    A cursor whose message is not in the list goes by its time: the first later message and all after it, but nothing
    when the newest is not later. Without a time only the newest message is unobserved: never is a whole history
    observed twice.
    """
    if cursor.message is None and cursor.at is None:
        return Unobserved(mode=CursorMode.NONE, start=0)
    found = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].id == cursor.message), None)
    if found is not None:
        return Unobserved(mode=CursorMode.ID, start=found + 1)
    if cursor.at is None:
        return Unobserved(mode=CursorMode.FALLBACK_LATEST, start=max(len(messages) - 1, 0))
    start = len(messages)
    if messages and messages[-1].created_at > cursor.at:
        start = next(at for at, message in enumerate(messages) if message.created_at > cursor.at)
    return Unobserved(mode=CursorMode.TIMESTAMP, start=start)


def cursor_of(digest: SessionDigest) -> Cursor:
    """Where observation has come to. The time is that of the newest observation: nothing said later is in it."""
    last = max((piece for piece in digest.pieces if piece.level == 0), key=lambda piece: piece.end, default=None)
    if last is None:
        return Cursor()
    return Cursor(
        message=last.sources[-1] if last.sources else None,
        at=last.created_at if last.created_at.timestamp() > 0 else None,
    )


def observed_messages(digest: SessionDigest) -> frozenset[MessageId]:
    """The messages that pieces stand for. Asked at every request, so it goes by the lowest level alone."""
    return frozenset(source for piece in digest.pieces for source in piece.sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Messages that wait to be observed: the oldest run of them, as far as they will not change any more.

    ``start`` is the place of the first in the list. ``skipped`` go before them: as far as anybody can tell they were
    observed, under ids that are gone, so they are shown to no observer and stand under the next piece. ``closed``:
    observed ones follow, so that the run will not grow.
    """

    mode: CursorMode
    start: int
    messages: tuple[Message, ...]
    skipped: tuple[Message, ...] = ()
    closed: bool = False

    @property
    def place(self) -> int:
        """The place in the list of the first message that the next piece stands for."""
        return self.start - len(self.skipped)


def waiting(messages: Sequence[Message], digest: SessionDigest) -> Waiting | None:
    """What of a list waits to be observed; None when nothing does."""
    observed = observed_messages(digest)
    cursor = cursor_of(digest)
    if cursor == Cursor() or any(message.id in observed for message in messages):
        mode = CursorMode.NONE if cursor == Cursor() else CursorMode.ID
        return _oldest_run(messages, observed | _taken_over(messages, digest), mode)
    found = after_cursor(messages, cursor)
    settled = settled_beginning(messages[found.start :])
    if not settled:
        return None
    return Waiting(mode=found.mode, start=found.start, messages=settled, skipped=tuple(messages[: found.start]))


def _oldest_run(messages: Sequence[Message], observed: frozenset[MessageId], mode: CursorMode) -> Waiting | None:
    run = undigested(messages, observed)
    settled = () if run is None else run.messages if run.closed else settled_beginning(run.messages)
    if run is None or not settled:
        return None
    return Waiting(mode=mode, start=run.start, messages=settled, closed=run.closed)


def _taken_over(messages: Sequence[Message], digest: SessionDigest) -> frozenset[MessageId]:
    """What notes from another product stand for, which name their last message alone."""
    last = {source for piece in digest.pieces if piece.made_by == IMPORTED for source in piece.sources[-1:]}
    end = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].id in last), -1)
    return frozenset(message.id for message in messages[: end + 1])


def settled_beginning(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages before the first that may still change.

    One that was never completed, with a settled answer of the assistant behind it, is left over from a crash and
    changes no more: a session has one answer at a time.
    """
    answered = -1
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role is Role.ASSISTANT and is_settled(messages[at]):
            answered = at
            break
    end = next((at for at in range(answered + 1, len(messages)) if not is_settled(messages[at])), len(messages))
    return tuple(messages[:end])
