"""What of a request's messages a digest replaces, and which of them may be digested next.

All of it goes by the order of the request's list, never by ids or times. What is replaced is always the list's
beginning; the newest message a user typed, and whatever follows it, is never touched.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile

from backstory.domain.conversation import Message, Role
from backstory.domain.digest import Piece, SessionDigest, Strategy, messages_of
from backstory.domain.ids import MessageId, SessionId

_NEVER = datetime.fromtimestamp(0, tz=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One message of a request as the host lists it. ``synthetic``: a program's, with nothing that a person typed.
    ``summary``: the host itself has put it in the place of older messages."""

    id: MessageId
    role: str
    synthetic: bool = False
    summary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The first ``count`` messages of a list are replaced by ``pieces``, which stand for them and for what the host
    dropped before them."""

    count: int
    pieces: tuple[Piece, ...]


def current_turn(listed: Sequence[Listed]) -> int:
    """Where the current turn begins: at the newest user message that somebody typed, or where none was, as after a
    compaction, at the newest user message; at 0 when there is none either."""
    users = [at for at, item in enumerate(listed) if item.role == Role.USER]
    return max((at for at in users if not listed[at].synthetic), default=users[-1] if users else 0)


def replacement(listed: Sequence[Listed], pieces: Sequence[Piece], digest: SessionDigest) -> Replacement | None:
    """What ``pieces``, by place, replace in a list; None where they replace nothing.

    They replace the longest beginning of the list that they stand for as a whole. The older messages of a piece may be
    missing from the list, since a host that summarises a session drops its beginning; a piece of which newer ones are
    missing tells of something that was undone, and is not shown. Observations go on being shown when the host has
    summarised what they stand for: they are the record of it. A tree's nodes do so once the summary is digested itself.
    """
    summarised = any(item.summary for item in listed)
    place = {item.id: at for at, item in enumerate(listed[: current_turn(listed)])}
    counts = [0]  # how many messages the first n of ``used`` replace
    kept: list[Piece] = []
    older: list[Piece] = []
    used: list[Piece] = []
    for piece in pieces:
        at = [place.get(message) for message in messages_of([piece], digest)]
        known = [number for number in at if number is not None]
        if not known:
            if summarised and not used:
                (kept if piece.strategy is Strategy.OBSERVATIONS else older).append(piece)
            continue
        if at[-len(known) :] != known or sorted(known) != list(range(counts[-1], counts[-1] + len(known))):
            break
        counts.append(counts[-1] + len(known))
        used.append(piece)
    while used and _begins_with_result(listed[counts[-1] :]):
        counts.pop()
        used.pop()
    if any(item.summary for item in listed[: counts[-1]]):
        kept = [*older, *kept]  # the host's summary is itself replaced: what it was made of is shown again
    return Replacement(count=counts[-1], pieces=(*kept, *used)) if kept or used else None


def _begins_with_result(rest: Sequence[Listed]) -> bool:
    """Whether a tool's result would be parted from its call, where a host lists them apart."""
    return bool(rest) and rest[0].role == "tool"


def past_messages(
    listed: Sequence[Listed], known: Mapping[MessageId, Message], *, digested: Collection[MessageId] = ()
) -> list[Message]:
    """The messages before the current turn in the order of the list, up to the first that is neither ``known`` nor
    ``digested``: what the archive was not told cannot be digested, and must not be passed over.

    Of a digested message nothing is needed but its place; it comes without parts.
    """
    done = frozenset(digested)
    past = listed[: current_turn(listed)]
    like = next(iter(known.values()), None)
    told = takewhile(lambda item: item.id in known or item.id in done, past)
    return [known.get(item.id) or _without_parts(item, like) for item in told]


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


def _without_parts(item: Listed, like: Message | None) -> Message:
    moment = _NEVER if like is None else like.created_at
    session = SessionId("") if like is None else like.session
    role = Role(item.role) if item.role in set(Role) else Role.ASSISTANT
    return Message(id=item.id, session=session, role=role, created_at=moment, completed_at=moment)
