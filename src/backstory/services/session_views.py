"""A session as a strategy for digests sees it: put together from the archive and from what is digested already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from backstory.domain.conversation import Message
from backstory.domain.digest import DigestState, SessionDigest, Strategy, messages_of, without_messages
from backstory.domain.digest_plan import Listed, current_turn, past_messages
from backstory.domain.ids import MessageId, ProjectId, SessionId
from backstory.ports.conversation import ConversationStore
from backstory.ports.digests import DigestStore
from backstory.ports.system import Clock
from backstory.services.digest_strategy import SessionView

_PAGE = 500
_TRIES = 5  # of a small write that others may overtake


class SessionViews:
    """Reads sessions for one strategy."""

    def __init__(
        self, digests: DigestStore, conversations: ConversationStore, *, strategy: Strategy, clock: Clock
    ) -> None:
        self._digests = digests
        self._conversations = conversations
        self._strategy = strategy
        self._clock = clock

    async def digest(self, session: SessionId) -> SessionDigest:
        """The digest of a session; an empty one, not stored yet, where it has none or was digested in another way."""
        known = await self._digests.digest(session)
        if known is None:
            return SessionDigest(
                state=DigestState(session=session, strategy=self._strategy, updated_at=self._clock.now())
            )
        if known.state.strategy is self._strategy:
            return known
        return SessionDigest(
            state=replace(known.state, strategy=self._strategy, shown=(), shown_for=None),
            pieces=tuple(piece for piece in known.pieces if piece.strategy is self._strategy),
        )

    async def current(self, session: SessionId) -> SessionDigest:
        """The digest without what was made of messages that the host took back.

        An undo is told to the archive first; where a crash, another process or a change of settings came between, the
        digest learns of it here.
        """
        for _ in range(_TRIES):
            digest = await self.digest(session)
            if not digest.pieces:
                return digest
            update = without_messages(digest, frozenset(await self._conversations.removed_ids(session)))
            if update is None:
                return digest
            await self._digests.apply(update)
        return await self.digest(session)

    @staticmethod
    def raw(listed: Sequence[Listed], digest: SessionDigest) -> list[MessageId]:
        """The messages before the current turn that no piece stands for."""
        digested = frozenset(messages_of(digest.pieces, digest))
        return [item.id for item in listed[: current_turn(listed)] if item.id not in digested]

    async def view(self, digest: SessionDigest, listed: Sequence[Listed], *, project: ProjectId | None) -> SessionView:
        """The session with the messages of a request. Reads those that are not digested. Raises what the store
        raises."""
        found = await self._conversations.find_messages(self.raw(listed, digest))
        undone = {message.id for message in found if message.removed_at is not None}
        kept = {message.id: message for message in found if message.id not in undone}
        listed = [item for item in listed if item.id not in undone]
        turn, digested = current_turn(listed), frozenset(messages_of(digest.pieces, digest))
        known = _told(kept, listed[:turn], digested)
        return SessionView(
            digest=digest,
            messages=tuple(past_messages(listed, known, digested=digested)),
            project=project,
            now=self._clock.now(),
            current=len(listed) - turn,
            forced=digest.state.forced,
            first_number=_first_number(listed[:turn], digest),
        )

    async def archived(self, session: SessionId) -> list[Listed]:
        """A session's messages as the archive has them, for work that was left undone when its host ended."""
        found: list[Message] = []
        while page := await self._conversations.messages(session, limit=_PAGE, offset=len(found)):
            found += page
        return [_listed(message) for message in found if message.removed_at is None]


def _told(
    known: Mapping[MessageId, Message], past: Sequence[Listed], digested: frozenset[MessageId]
) -> Mapping[MessageId, Message]:
    """Without the newest message while it may be half told: a copied session comes message by message, each before its
    parts."""
    newest = next((at for at in range(len(past) - 1, -1, -1) if past[at].id in known or past[at].id in digested), None)
    if newest is None or past[newest].id in digested:
        return known
    message = known[past[newest].id]
    if newest == len(past) - 1 and message.parts:
        return known
    return {key: other for key, other in known.items() if key != message.id}


def _listed(message: Message) -> Listed:
    typed = any(part.text and not part.synthetic for part in message.parts)
    return Listed(id=message.id, role=message.role.value, synthetic=not typed)


def _first_number(past: Sequence[Listed], digest: SessionDigest) -> int:
    """The number of the first listed message: as the first digested one tells, or behind all that are digested."""
    leaves = [piece for piece in digest.pieces if piece.level == 0]
    numbers = {message: piece.start + at for piece in leaves for at, message in enumerate(piece.sources)}
    for place, item in enumerate(past):
        if item.id in numbers:
            return max(numbers[item.id] - place, 0)
    return max((piece.end + 1 for piece in leaves), default=0)
