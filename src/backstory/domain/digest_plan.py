"""What of a request's messages a digest replaces, and which of them may be digested next.

All of it goes by the order of the request's list, never by ids or times. What is replaced is always the list's
beginning; the newest message a user typed, and whatever follows it, is never touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backstory.domain.conversation import Message, Role
from backstory.domain.digest import Piece, SessionDigest, messages_of
from backstory.domain.ids import MessageId


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One message of a request as the host lists it. ``synthetic``: a program's, with nothing that a person typed."""

    id: MessageId
    role: str
    synthetic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The first ``count`` messages of a list are replaced by ``pieces``, which stand for them and for no others."""

    count: int
    pieces: tuple[Piece, ...]


def current_turn(listed: Sequence[Listed]) -> int:
    """Where the current turn begins: at the newest user message that somebody typed; the length of the list when there
    is none."""
    for at in range(len(listed) - 1, -1, -1):
        if listed[at].role == Role.USER and not listed[at].synthetic:
            return at
    return len(listed)


def replacement(listed: Sequence[Listed], pieces: Sequence[Piece], digest: SessionDigest) -> Replacement | None:
    """What ``pieces``, by place, replace in a list; None where they replace nothing.

    They replace the longest beginning of the list that they stand for as a whole. A piece whose messages are in part
    beyond that beginning is left out. A message that was told to be summarised by the host itself is beyond it, so that
    nothing older than a host's own summary is shown.
    """
    beyond = current_turn(listed)
    place = {item.id: at for at, item in enumerate(listed[:beyond])}
    count = 0
    used: list[Piece] = []
    for piece in pieces:
        at = [place.get(message) for message in messages_of([piece], digest)]
        known = [number for number in at if number is not None]
        if not known:
            continue  # the host has dropped what it stands for, as after a compaction
        if len(known) < len(at) and used:
            break
        if sorted(known) != list(range(count, count + len(known))):
            break
        count += len(known)
        used.append(piece)
    if not used or count >= len(listed):
        return None
    while count < len(listed) and listed[count].role == "tool":  # a result stays with its call
        count, used = _without_last(used, place, digest)
        if not used:
            return None
    return Replacement(count=count, pieces=tuple(used))


def _without_last(used: list[Piece], place: Mapping[MessageId, int], digest: SessionDigest) -> tuple[int, list[Piece]]:
    kept = used[:-1]
    return sum(message in place for message in messages_of(kept, digest)), kept


def past_messages(listed: Sequence[Listed], known: Mapping[MessageId, Message]) -> list[Message]:
    """The messages before the current turn in the order of the list, as far as the archive knows them.

    A message that it does not know, with one behind it that it knows, was never told and counts as empty.
    """
    past = listed[: current_turn(listed)]
    last_known = next((at for at in range(len(past) - 1, -1, -1) if past[at].id in known), -1)
    if last_known < 0:
        return []
    newest = known[past[last_known].id]
    return [known.get(item.id) or _untold(item, newest) for item in past[: last_known + 1]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Neighbouring messages that no piece stands for. ``start`` is the place of the first in the session; ``closed``:
    digested ones follow, so that the run will not grow."""

    start: int
    messages: tuple[Message, ...]
    closed: bool


def undigested(messages: Sequence[Message], digested: frozenset[MessageId]) -> Run | None:
    """The oldest run of messages that no piece stands for; None where there is none."""
    start = next((at for at, message in enumerate(messages) if message.id not in digested), None)
    if start is None:
        return None
    end = next((at for at in range(start, len(messages)) if messages[at].id in digested), len(messages))
    return Run(start=start, messages=tuple(messages[start:end]), closed=end < len(messages))


def _untold(item: Listed, like: Message) -> Message:
    role = Role(item.role) if item.role in set(Role) else Role.ASSISTANT
    return Message(
        id=item.id, session=like.session, role=role, created_at=like.created_at, completed_at=like.created_at
    )
