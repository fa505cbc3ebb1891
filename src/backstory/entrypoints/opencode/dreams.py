"""When sessions are distilled: some time after each turn, and at a start what the process before left.

No hook waits for it. That a session is due is written down at once; the work is done beside everything else.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import anyio

from backstory.domain.ids import SessionId
from backstory.entrypoints.places import Place
from backstory.errors import BackstoryError, StoreError

log = logging.getLogger(__name__)

MAX_SCHEDULED = 500
"""Sessions that wait for their turn in this process; those beyond are found at a later start."""

GiveWay = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    place: Place
    since: datetime  # when it was planned
    at: float  # on the event loop's clock


class DreamHooks:
    """The sessions of all folders that are to be distilled, and when. ``changed`` is told when there may be something
    to embed; ``give_way`` lets requests go first."""

    def __init__(self, *, changed: Callable[[], None], give_way: GiveWay) -> None:
        self._changed = changed
        self._give_way = give_way
        self._planned: dict[SessionId, _Planned] = {}
        self._unswept: list[Place] = []
        self._arrived = anyio.Event()

    async def idle(self, place: Place, session: SessionId) -> None:
        """A turn has ended. Raises what the store raises; the session is found at the next start then."""
        if place.app.settings.dream.enabled:
            due = await place.app.truth.dreaming.note_idle(session, delay=_delay(place))
            self._plan(place, session, due)

    def spoken(self, session: SessionId, *, at: datetime) -> None:
        """A message of the user's: where they go on, the session waits until that turn has ended too. The host tells
        older messages again, which restart nothing."""
        planned = self._planned.get(session)
        if planned is not None and at > planned.since:
            del self._planned[session]

    def sweep(self, place: Place) -> None:
        """Have sessions looked for, soon, that were left undone in this folder's project."""
        self._unswept.append(place)
        self._arrived.set()

    async def keep_working(self) -> None:
        """Distil what is due, one session after another, for as long as the process lives."""
        while True:
            self._arrived = anyio.Event()
            while self._unswept or self._next_in_s() == 0:
                await self._give_way()
                await self._next()
            wait_s = self._next_in_s()
            with anyio.move_on_after(wait_s):
                await self._arrived.wait()

    async def _next(self) -> None:
        """The outer loop of a job: whatever goes wrong, the session stays due."""
        subject = "start"
        try:
            if self._unswept:
                await self._find_left(self._unswept.pop(0))
                return
            subject = min(self._planned, key=lambda session: self._planned[session].at)
            place = self._planned.pop(SessionId(subject)).place
            dreamt = await place.app.truth.dreaming.work(SessionId(subject))
            if dreamt.changes:
                self._changed()
            if subject not in self._planned:  # a turn that ended meanwhile knows better
                self._plan(place, SessionId(subject), dreamt.again_at)
        except StoreError as error:
            log.warning("event=dream_not_kept subject=%s reason=%s", subject, error)
        except BackstoryError as error:
            log.error("event=dream_refused subject=%s reason=%s", subject, error)
        except Exception:
            log.exception("event=dream_broke subject=%s", subject)

    async def _find_left(self, place: Place) -> None:
        dream = place.app.settings.dream
        if not dream.enabled:
            return
        left = await place.app.truth.dreaming.left_undone(place.project, limit=dream.sweep_batch, within=_delay(place))
        for session, due in left:
            if session not in self._planned:
                self._plan(place, session, due)

    def _plan(self, place: Place, session: SessionId, due: datetime | None) -> None:
        if due is None or (session not in self._planned and len(self._planned) >= MAX_SCHEDULED):
            return
        now = place.app.clock.now()
        wait_s = max(0.0, (due - now).total_seconds())
        self._planned[session] = _Planned(place=place, since=now, at=anyio.current_time() + wait_s)
        self._arrived.set()

    def _next_in_s(self) -> float:
        """How long until the next session is due; infinite while none is planned."""
        moments = [planned.at for planned in self._planned.values()]
        return max(0.0, min(moments) - anyio.current_time()) if moments else float("inf")


def _delay(place: Place) -> timedelta:
    return timedelta(milliseconds=place.app.settings.dream.delay_ms)
