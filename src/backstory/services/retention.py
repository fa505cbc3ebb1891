"""Evidence no longer than it may be kept: removed on a person's word, or once a day where the settings say how long."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta

from backstory.domain.ids import MessageId, SessionId
from backstory.errors import StoreDamaged
from backstory.ports.conversation import Archive, Pruned
from backstory.ports.digests import DigestStore
from backstory.ports.system import Clock

BATCH = 200
"""Messages in one transaction: about 50 ms, which another writer waits without noticing."""

_DAY = timedelta(days=1)
_LEAST_GAP = timedelta(days=30)  # that is believed of a clock, however short messages are kept
_TRIES = 5  # of a change of a digest that others may overtake

log = logging.getLogger(__name__)

GiveWay = Callable[[], Awaitable[None]]


class Retention:
    """Removes messages that are too old, with all that hangs on them, and what digests made of them. Memories are
    never touched."""

    def __init__(self, archive: Archive, digests: DigestStore, *, clock: Clock, days: int | None) -> None:
        """``days`` is how long the settings let messages be kept; None: for ever."""
        self._archive = archive
        self._digests = digests
        self._clock = clock
        self._days = days
        self._looked_at: datetime | None = None
        self._kept_up_at: datetime | None = None

    async def preview(self, older_than: timedelta) -> Pruned:
        """What ``prune`` would remove now. Changes nothing."""
        return await self._archive.expired(self._clock.now() - older_than)

    async def prune(self, older_than: timedelta, *, give_way: GiveWay | None = None) -> Pruned:
        """Remove what was said longer ago than that; what it removed.

        Safe to stop at any moment and to run in several processes; what was not reached stays for the next time.
        ``give_way`` is awaited before each transaction.
        """
        before = self._clock.now() - older_than
        digested = await self._digested_before(before)
        # First, since nobody could tell afterwards what had been made of what was removed; and once more, for what a
        # process that works on a digest made of it meanwhile.
        await self._leave_digests(digested)
        removed = Pruned()
        while True:
            if give_way is not None:
                await give_way()
            some = await self._archive.prune(before, limit=BATCH)
            if some == Pruned():
                break
            removed += some
        await self._leave_digests(digested)
        return removed

    async def keep_up(self, *, give_way: GiveWay | None = None) -> Pruned | None:
        """What the settings ask for, at most once a day in this process. None where they ask for nothing, it is not a
        day ago, or the clock cannot be believed; cheap then, so it may be called whenever there is time."""
        now = self._clock.now()
        if self._days is None or (self._looked_at is not None and timedelta() <= now - self._looked_at < _DAY):
            return None
        kept_for = timedelta(days=self._days)
        if not await self._is_believed(now, gap=max(kept_for, _LEAST_GAP)):
            log.warning("event=retention_refused now=%s reason=clock_far_beyond_messages", now.isoformat())
            self._looked_at = now
            return None
        removed = await self.prune(kept_for, give_way=give_way)
        self._looked_at = self._kept_up_at = now
        return removed

    async def _is_believed(self, now: datetime, *, gap: timedelta) -> bool:
        """Whether the clock goes on from where it was: something was said, or kept up with, no longer ago than ``gap``.

        What was said in the last day does not count: where the clock has jumped, so have the times of new messages.
        """
        if self._kept_up_at is not None and timedelta() <= now - self._kept_up_at <= gap:
            return True
        counts = await self._archive.message_counts()
        earlier = now - _DAY
        known = [at for count in counts.values() for at in (count.first_at, count.last_at) if at <= earlier]
        if not known or now - max(known) <= gap:
            return True
        for session, count in counts.items():
            if count.first_at <= earlier < count.last_at:
                latest = await self._latest(session, count.messages, no_later_than=earlier)
                if latest is not None and now - latest <= gap:
                    return True
        return False

    async def _latest(self, session: SessionId, messages: int, *, no_later_than: datetime) -> datetime | None:
        """When the last such message was made; found by halves, since a session may be long."""
        found = None
        low, high = 0, messages
        while low < high:
            middle = (low + high) // 2
            page = await self._archive.messages(session, limit=1, offset=middle)
            if page and page[0].created_at <= no_later_than:
                found, low = page[0].created_at, middle + 1
            else:
                high = middle
        return found

    async def _digested_before(self, before: datetime) -> Mapping[SessionId, frozenset[MessageId]]:
        """The messages that are to go, by session, of those sessions that have a digest."""
        counts = await self._archive.message_counts()
        doomed: dict[SessionId, frozenset[MessageId]] = {}
        for session in (name for name, count in counts.items() if count.first_at < before):
            if await self._digests.revision(session):
                doomed[session] = await self._older(session, before)
        return doomed

    async def _older(self, session: SessionId, before: datetime) -> frozenset[MessageId]:
        found: list[MessageId] = []
        while page := await self._archive.messages(session, limit=BATCH, offset=len(found)):
            found += [message.id for message in page if message.created_at < before]
            if page[-1].created_at >= before:
                break
        return frozenset(found)

    async def _leave_digests(self, doomed: Mapping[SessionId, frozenset[MessageId]]) -> None:
        for session, messages in doomed.items():
            try:
                await self._leave_digest(session, messages)
            except StoreDamaged as error:
                log.warning("event=digest_forgotten session=%s reason=%s", session, error)
                await self._digests.forget(session)  # what cannot be read might quote them

    async def _leave_digest(self, session: SessionId, messages: frozenset[MessageId]) -> None:
        """Take what was made of the messages out; a digest of which nothing is left goes as a whole."""
        from backstory.domain.digest import without_messages

        for _ in range(_TRIES):
            digest = await self._digests.digest(session)
            update = None if digest is None else without_messages(digest, messages)
            if digest is None or update is None:
                return
            if len(update.dropped) == len(digest.pieces):
                await self._digests.forget(session)
                return
            if await self._digests.apply(update):
                return
        log.warning("event=digest_overtaken session=%s", session)
