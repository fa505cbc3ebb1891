"""Evidence no longer than it may be kept: removed on a person's word, or once a day where the settings say how long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

from backstory.ports.conversation import Archive, Pruned
from backstory.ports.system import Clock

BATCH = 200
"""Messages in one transaction: about 50 ms, which another writer waits without noticing."""

_DAY = timedelta(days=1)

GiveWay = Callable[[], Awaitable[None]]


class Retention:
    """Removes messages that are too old, with all that hangs on them. Memories are never touched."""

    def __init__(self, archive: Archive, *, clock: Clock, days: int | None) -> None:
        """``days`` is how long the settings let messages be kept; None: for ever."""
        self._archive = archive
        self._clock = clock
        self._days = days
        self._kept_up_at: float | None = None

    async def preview(self, older_than: timedelta) -> Pruned:
        """What ``prune`` would remove now. Changes nothing."""
        return await self._archive.expired(self._clock.now() - older_than)

    async def prune(self, older_than: timedelta, *, give_way: GiveWay | None = None) -> Pruned:
        """Remove what was said longer ago than that; what it removed.

        Safe to stop at any moment and to run in several processes; what was not reached stays for the next time.
        ``give_way`` is awaited before each transaction.
        """
        before = self._clock.now() - older_than
        removed = Pruned()
        while True:
            if give_way is not None:
                await give_way()
            some = await self._archive.prune(before, limit=BATCH)
            if some == Pruned():
                return removed
            removed += some

    async def keep_up(self, *, give_way: GiveWay | None = None) -> Pruned | None:
        """What the settings ask for, at most once a day in this process. None where they ask for nothing, or it is not
        a day ago; cheap then, so it may be called whenever there is time."""
        now = self._clock.now().timestamp()
        if self._days is None or (self._kept_up_at is not None and 0 <= now - self._kept_up_at < _DAY.total_seconds()):
            return None
        removed = await self.prune(timedelta(days=self._days), give_way=give_way)
        self._kept_up_at = now
        return removed
