"""Requests of long sessions: which of their first messages a digest replaces, and the work behind it.

A request never waits for that work. It is found while a request is answered, done beside it, and shown from a later
user message on.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread

from backstory.bootstrap.sessions import LongSessions
from backstory.domain.admission import admit_evidence
from backstory.domain.digest import Strategy
from backstory.domain.digest_plan import Listed, current_turn
from backstory.domain.ids import MessageId, ProjectId, SessionId
from backstory.entrypoints.opencode import protocol
from backstory.entrypoints.opencode.places import Place, Places
from backstory.entrypoints.opencode.waits import HISTORY_WAIT, within
from backstory.errors import BackstoryError, StoreError

log = logging.getLogger(__name__)

GiveWay = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """Work in a session: of its last request's messages, or of those in the archive; if ``forced``, however few."""

    sessions: LongSessions
    session: SessionId
    project: ProjectId | None
    listed: Sequence[Listed] | None
    forced: bool = False


class HistoryHooks:
    """Histories of the sessions in all folders."""

    def __init__(self, places: Places, *, give_way: GiveWay) -> None:
        self._places = places
        self._give_way = give_way
        self._wanted: OrderedDict[SessionId, _Wanted] = OrderedDict()
        self._systems: dict[SessionId, tuple[LongSessions, str]] = {}
        self._compacting: dict[SessionId, MessageId | None] = {}  # whose next list the host summarises; its turn
        self._arrived = anyio.Event()

    async def history(self, params: protocol.History) -> dict[str, Any]:
        """What stands in the place of a request's first messages: ``replace`` is None where nothing does."""
        with self._places.waiting(HISTORY_WAIT):
            place = await self._places.place(params.directory)
            sessions = place.app.long_sessions
            if sessions is None or not sessions.serves(params.agent, place.app.settings):
                return {"replace": None}
            session = SessionId(params.session)
            listed: Sequence[Listed] = _listed(params.messages)
            work = sessions.requests.outlook(listed, session=session, project=place.project)
            dropped = self._is_dropped(session, listed)
            outlook = await within(HISTORY_WAIT.total_seconds(), work)
        if dropped:
            listed = sessions.requests.about_to_drop(session, listed)
        if outlook.due or dropped:
            self._want(
                _Wanted(sessions=sessions, session=session, project=place.project, listed=listed, forced=dropped)
            )
        found = outlook.replaced
        return {"replace": None if found is None else {"count": found.count, "text": found.text}}

    def _is_dropped(self, session: SessionId, listed: Sequence[Listed]) -> bool:
        """Whether this is the list that the host, as it has said, is about to summarise."""
        if session not in self._compacting:
            return False
        known, at = self._compacting.pop(session), current_turn(listed)
        return known is None or (at < len(listed) and listed[at].id == known)

    async def compacting(self, place: Place, session: SessionId) -> list[str]:
        """The host is about to summarise a session itself: what it is told, and what we digest beside it."""
        sessions = place.app.long_sessions
        if sessions is None:
            return []
        note, seen = await sessions.requests.compaction_note(session), sessions.requests.last_request(session)
        self._compacting[session] = None if seen is None else seen.turn
        if seen is None:
            return [] if note is None else [note]
        await sessions.work.force(session)
        self._want(_Wanted(sessions=sessions, session=session, project=place.project, listed=seen.listed))
        return [] if note is None else [note]

    async def removed(self, place: Place, session: SessionId, messages: Sequence[MessageId]) -> None:
        """The host took messages back."""
        if place.app.long_sessions is not None and messages:
            await place.app.long_sessions.work.undone(session, messages)

    def idle(self, place: Place, session: SessionId) -> None:
        """A turn has ended: what could not be seen or done at its first request can be now."""
        sessions = place.app.long_sessions
        seen = None if sessions is None else sessions.requests.last_request(session)
        if sessions is not None and seen is not None:
            forced = sessions.requests.is_dropping(session)
            wanted = _Wanted(
                sessions=sessions, session=session, project=place.project, listed=seen.listed, forced=forced
            )
            self._want(wanted)

    def note_system(self, place: Place, session: SessionId, text: str | None) -> None:
        """Keep what stands before a session's messages beside its tree, in the background."""
        sessions = place.app.long_sessions
        if sessions is not None and text and sessions.strategy is Strategy.TREE:
            self._systems[session] = (sessions, text)
            self._arrived.set()

    async def sweep(self, place: Place) -> None:
        """Look for work that the last process in this folder left undone."""
        sessions = place.app.long_sessions
        if sessions is None:
            return
        for session in await sessions.work.left_undone():
            self._want(_Wanted(sessions=sessions, session=session, project=place.project, listed=None))

    def _want(self, wanted: _Wanted) -> None:
        self._wanted[wanted.session] = wanted
        self._arrived.set()

    async def keep_working(self) -> None:
        """Do what is wanted, one session after another, for as long as the process lives."""
        while True:
            self._arrived = anyio.Event()
            while self._systems or self._wanted:
                await self._give_way()
                await self._next()
            await self._arrived.wait()

    async def _next(self) -> None:
        """The outer loop of a job: whatever goes wrong leaves the session's messages as they are."""
        session = next(iter(self._systems or self._wanted))
        try:
            if session in self._systems:
                sessions, text = self._systems.pop(session)
                await sessions.work.note_system(session, await anyio.to_thread.run_sync(admit_evidence, text))
            else:
                wanted = self._wanted.pop(session)
                if wanted.forced:
                    await wanted.sessions.work.force(session)
                await wanted.sessions.work.work(session, listed=wanted.listed, project=wanted.project)
        except StoreError as error:
            log.warning("event=digest_not_kept session=%s reason=%s", session, error)
        except BackstoryError as error:
            log.error("event=digest_refused session=%s reason=%s", session, error)
        except Exception:
            log.exception("event=digest_broke session=%s", session)


def _listed(messages: Sequence[protocol.ListedMessage]) -> list[Listed]:
    return [
        Listed(id=MessageId(item.id), role=item.role, synthetic=item.synthetic, summary=item.summary)
        for item in messages
    ]
