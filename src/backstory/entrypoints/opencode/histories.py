"""Requests of long sessions: which of their first messages a digest replaces, and the work behind it.

A request never waits for that work. It is found while a request is answered, done beside it, and shown from a later
user message on.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio
import anyio.to_thread

from backstory.bootstrap.sessions import LongSessions
from backstory.domain.admission import admit_evidence
from backstory.domain.digest import Strategy
from backstory.domain.digest_plan import Listed, current_turn
from backstory.domain.ids import MessageId, ProjectId, SessionId
from backstory.entrypoints.opencode import protocol
from backstory.entrypoints.opencode.waits import HISTORY_WAIT, within
from backstory.entrypoints.places import Place, Places
from backstory.errors import BackstoryError, StoreError

log = logging.getLogger(__name__)

MAX_UNANSWERED = 200  # sessions whose last request is kept since the store did not answer it
MAX_TRIES = 5  # of what a compaction dropped: one try a turn
LAST_AGENTS = 20  # newest messages among which a session's agent is looked for

GiveWay = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """Work in a session: of a request's messages, or of those in the archive; if ``forced``, however few, since the
    host is about to drop them."""

    sessions: LongSessions
    session: SessionId
    project: ProjectId | None
    listed: Sequence[Listed] | None
    forced: bool = False
    tries: int = 0

    def supersedes(self, other: _Wanted) -> bool:
        """Whether the other need not be done when this is: what is dropped cannot be seen in a later list."""
        return not other.forced or (self.forced and _ids(other) <= _ids(self))


class HistoryHooks:
    """Histories of the sessions in all folders."""

    def __init__(self, places: Places, *, give_way: GiveWay) -> None:
        self._places = places
        self._give_way = give_way
        self._wanted: OrderedDict[SessionId, list[_Wanted]] = OrderedDict()  # each session's in their order
        self._unanswered: OrderedDict[SessionId, _Wanted] = OrderedDict()  # last requests that the store failed
        self._missed: OrderedDict[SessionId, _Wanted] = OrderedDict()  # forced work that a model failed
        self._unswept: list[Place] = []
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
            session, listed = SessionId(params.session), protocol.listed(params.messages)
            request = _Wanted(sessions=sessions, session=session, project=place.project, listed=listed)
            work = sessions.requests.outlook(listed, session=session, project=place.project)
            try:
                outlook = await within(HISTORY_WAIT.total_seconds(), work)
            except StoreError:
                self._note_unanswered(self._as_announced(request, listed))
                raise
        self._unanswered.pop(session, None)
        request = self._as_announced(request, listed)
        if outlook.due or request.forced:
            self._want(request)
        found = outlook.replaced
        return {"replace": None if found is None else {"count": found.count, "text": found.text}}

    def _note_unanswered(self, request: _Wanted) -> None:
        """The work needs no answer within a deadline, and may be why the next request is answered."""
        self._unanswered[request.session] = request
        self._unanswered.move_to_end(request.session)
        if len(self._unanswered) > MAX_UNANSWERED:
            self._unanswered.popitem(last=False)
        self._want(request)

    def _as_announced(self, request: _Wanted, listed: Sequence[Listed]) -> _Wanted:
        """The request, forced when its list is the one that the host, as it has said, is about to summarise."""
        if request.session not in self._compacting:
            return request
        known = self._compacting.pop(request.session)
        if known is not None and _turn(listed) != known:
            return request
        dropped = request.sessions.requests.about_to_drop(request.session, listed)
        return replace(request, listed=dropped, forced=True)

    async def compacting(self, place: Place, session: SessionId) -> list[str]:
        """The host is about to summarise a session itself: what it is told, and what we digest beside it."""
        sessions = place.app.long_sessions
        if sessions is None:
            return []
        note, last = await sessions.requests.compaction_note(session), self._last_request(place, session)
        self._compacting[session] = None if last is None else _turn(last[1])
        if last is not None:
            self._want(replace(last[0], forced=True))
            await sessions.work.force(session)  # for the next process, should this one end before
        return [] if note is None else [note]

    async def removed(self, place: Place, session: SessionId, messages: Sequence[MessageId]) -> None:
        """The host took messages back."""
        if place.app.long_sessions is not None and messages:
            await place.app.long_sessions.work.undone(session, messages)

    def idle(self, place: Place, session: SessionId) -> None:
        """A turn has ended: what could not be seen or done at its first request can be now."""
        if (missed := self._missed.pop(session, None)) is not None:
            self._want(missed)
        if (last := self._last_request(place, session)) is not None:
            self._want(last[0])

    def _last_request(self, place: Place, session: SessionId) -> tuple[_Wanted, Sequence[Listed]] | None:
        """The work of a session's newest request in this process, and the messages that the host listed in it."""
        sessions = place.app.long_sessions
        if sessions is None:
            return None
        if (missed := self._unanswered.get(session)) is not None:
            wanted, listed = replace(missed, sessions=sessions), missed.listed or ()
        elif (seen := sessions.requests.last_request(session)) is not None:
            forced, listed = sessions.requests.is_dropping(session), seen.listed
            wanted = _Wanted(sessions=sessions, session=session, project=place.project, listed=listed, forced=forced)
        else:
            return None
        return wanted, listed[:-1] if wanted.forced else listed  # the last is the request for a summary

    def note_system(self, place: Place, session: SessionId, text: str | None) -> None:
        """Keep what stands before a session's messages beside its tree, in the background."""
        sessions = place.app.long_sessions
        if sessions is not None and text and sessions.strategy is Strategy.TREE:
            self._systems[session] = (sessions, text)
            self._arrived.set()

    def sweep(self, place: Place) -> None:
        """Have work looked for, soon, that the last process in this folder left undone."""
        self._unswept.append(place)
        self._arrived.set()

    async def _find_left(self, place: Place) -> None:
        sessions = place.app.long_sessions
        if sessions is None:
            return
        await anyio.to_thread.run_sync(sessions.warm)
        for session in await sessions.work.left_undone():
            left = await _is_left(place, sessions, session)
            if left and session not in self._wanted:  # a request knows better
                self._want(_Wanted(sessions=sessions, session=session, project=place.project, listed=None))

    def _want(self, wanted: _Wanted) -> None:
        waiting = self._wanted.setdefault(wanted.session, [])
        waiting[:] = [*(other for other in waiting if not wanted.supersedes(other)), wanted]
        self._arrived.set()

    async def keep_working(self) -> None:
        """Do what is wanted, one session after another, for as long as the process lives."""
        while True:
            self._arrived = anyio.Event()
            while self._systems or self._unswept or self._wanted:
                await self._give_way()
                await self._next()
            await self._arrived.wait()

    async def _next(self) -> None:
        """The outer loop of a job: whatever goes wrong leaves the session's messages as they are."""
        subject, job = self._taken()
        try:
            await job
        except StoreError as error:
            log.warning("event=digest_not_kept subject=%s reason=%s", subject, error)
        except BackstoryError as error:
            log.error("event=digest_refused subject=%s reason=%s", subject, error)
        except Exception:
            log.exception("event=digest_broke subject=%s", subject)

    def _taken(self) -> tuple[str, Awaitable[None]]:
        """The next job, with the session or the folder that it is about."""
        if self._systems:
            session = next(iter(self._systems))
            return session, _keep_system(session, *self._systems.pop(session))
        if self._unswept:
            place = self._unswept.pop(0)
            return place.directory, self._find_left(place)
        session = next(iter(self._wanted))
        wanted = self._wanted[session].pop(0)
        if not self._wanted[session]:
            del self._wanted[session]
        return session, self._do(wanted)

    async def _do(self, wanted: _Wanted) -> None:
        """What a host has dropped is in no later list: when a model fails, it is tried again after later turns."""
        work, session = wanted.sessions.work, wanted.session
        if wanted.forced and not await work.is_resting(session):
            await work.force(session)
        await work.work(session, listed=wanted.listed, project=wanted.project)
        if wanted.forced and wanted.tries + 1 < MAX_TRIES and await work.is_resting(session):
            self._missed[session] = replace(wanted, tries=wanted.tries + 1)
            if len(self._missed) > MAX_UNANSWERED:
                self._missed.popitem(last=False)


async def _keep_system(session: SessionId, sessions: LongSessions, text: str) -> None:
    await sessions.work.note_system(session, await anyio.to_thread.run_sync(admit_evidence, text))


async def _is_left(place: Place, sessions: LongSessions, session: SessionId) -> bool:
    """Whether work in a session is to be taken up under a folder's settings: it is one of its project's own."""
    archive = place.app.backend.conversations
    known = await archive.session(session)
    if known is None or known.project != place.project or known.parent is not None or known.deleted_at is not None:
        return False
    newest = (await archive.message_ids(session))[-LAST_AGENTS:]
    said = reversed(await archive.find_messages(newest))
    agent = next((message.agent for message in said if message.agent is not None), None)
    return sessions.serves(agent, place.app.settings)


def _ids(wanted: _Wanted) -> set[MessageId]:
    return {item.id for item in wanted.listed or ()}


def _turn(listed: Sequence[Listed]) -> MessageId | None:
    at = current_turn(listed)
    return listed[at].id if at < len(listed) else None
