"""Look at the digests of sessions, as a person does: how far each is, what it is made of, what failed; forget one.

Asks no model. What an agent looks up is ``tree_lookup.py`` and ``observation_lookup.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from backstory.domain.digest import DigestState, Piece, SessionDigest, Strategy, messages_of
from backstory.domain.ids import MessageId, SessionId
from backstory.errors import StoreDamaged
from backstory.ports.conversation import Archive
from backstory.ports.digests import DigestStore
from backstory.ports.system import Clock

MOST_WAITING = 200
"""Sessions with work left that are told of at once."""
_PAGE = 500
_FOR_EVER = timedelta(days=3_650)  # no lease and no pause is as long


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestCard:
    """How a session's digest stands. ``pieces`` are those of its strategy, ``shown`` those in its requests.

    Where it cannot be read, ``damage`` says why, and nothing else is known.
    """

    session: SessionId
    state: DigestState | None = None
    pieces: int = 0
    shown: int = 0
    damage: str | None = None

    @property
    def strategy(self) -> Strategy | None:
        """How it was digested."""
        return None if self.state is None else self.state.strategy

    def worked_on_until(self, now: datetime) -> datetime | None:
        """Until when a process has taken its work; None while none has."""
        lease = None if self.state is None else self.state.lease
        return lease.expires_at if lease is not None and lease.expires_at > now else None

    def resting_until(self, now: datetime) -> datetime | None:
        """When its work is tried again after a failure; None where it may be tried now."""
        rest = None if self.state is None else self.state.not_before
        return rest if rest is not None and rest > now else None

    @property
    def problem(self) -> str | None:
        """What went wrong last and is not made up for."""
        return self.damage or (None if self.state is None else self.state.problem)


class DigestInspection:
    """Reads digests, and removes them."""

    def __init__(self, digests: DigestStore, *, clock: Clock) -> None:
        self._digests = digests
        self._clock = clock

    def now(self) -> datetime:
        """The moment that leases and pauses are measured by."""
        return self._clock.now()

    async def exists(self, session: SessionId) -> bool:
        """Whether a session has a digest, readable or not."""
        return await self._digests.revision(session) > 0

    async def digest(self, session: SessionId) -> SessionDigest | None:
        """The whole of it, pieces of former strategies included. Raises StoreDamaged where it cannot be read."""
        return await self._digests.digest(session)

    async def card(self, session: SessionId) -> DigestCard | None:
        """How a session's digest stands; None where it has none."""
        if not await self.exists(session):
            return None
        try:
            digest = await self._digests.digest(session)
        except StoreDamaged as error:
            return DigestCard(session=session, damage=str(error))
        if digest is None:
            return None
        shown = len(digest.shown())
        return DigestCard(session=session, state=digest.state, pieces=len(_in_force(digest)), shown=shown)

    async def cards(self, sessions: Iterable[SessionId]) -> list[DigestCard]:
        """The cards of those sessions that have a digest, in their order. Cost: reads each digest."""
        found = [await self.card(session) for session in sessions]
        return [card for card in found if card is not None]

    async def waiting(self) -> list[DigestCard]:
        """Sessions with work left, the latest first, at most ``MOST_WAITING``: those too whose work another process
        has taken, or that rest after a failure."""
        return await self.cards(await self._digests.due(now=self._clock.now() + _FOR_EVER, limit=MOST_WAITING))

    async def undigested(self, archive: Archive, session: SessionId) -> tuple[int, int]:
        """How many messages of a session are kept and were not taken back, and how many of them no piece stands for.
        Cost: reads the session. Raises StoreDamaged where its digest cannot be read."""
        digest = await self._digests.digest(session)
        done = frozenset[MessageId]() if digest is None else frozenset(messages_of(_in_force(digest), digest))
        ids = await archive.message_ids(session)
        kept = 0
        left = 0
        for start in range(0, len(ids), _PAGE):
            found = await archive.find_messages(ids[start : start + _PAGE])
            standing = [message.id for message in found if message.removed_at is None]
            kept += len(standing)
            left += sum(name not in done for name in standing)
        return kept, left

    async def forget(self, session: SessionId) -> bool:
        """Remove a session's digest, readable or not; it is made anew from the messages when work is next due. False
        where there was none."""
        return await self._digests.forget(session)


def _in_force(digest: SessionDigest) -> list[Piece]:
    """The pieces of the strategy by which a session is digested now."""
    return [piece for piece in digest.pieces if piece.strategy is digest.state.strategy]
