"""The work behind a session's digest: done in the background, by one process at a time, and never in part.

A lease is taken first, so that two processes do not pay for the same work; a process that dies leaves it to expire. The
pieces of one step and the state that knows of them are one write. Failure leaves the messages raw and the next try to a
later turn, or to the next start.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from backstory.domain.digest import DigestState, DigestUpdate, Lease, SessionDigest, messages_of, without_messages
from backstory.domain.digest_plan import Listed
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.domain.interchange import is_unvouched
from backstory.errors import ModelError, StoreError
from backstory.ports.conversation import ConversationStore
from backstory.ports.digests import DigestStore
from backstory.ports.system import Clock, IdSource
from backstory.services.digest_strategy import DigestStrategy, Made, SessionView
from backstory.services.session_views import SessionViews

log = logging.getLogger(__name__)

LEASE = timedelta(minutes=3)
"""After a crash the work waits so long. It must be longer than any one step."""
MAX_STEPS = 12
"""Of one round: what a long history takes is spread over several, so that other sessions get their turn."""
PAUSES = (timedelta(seconds=2), timedelta(seconds=4), timedelta(minutes=5))
"""After the first, the second and every later failure in a row: as the memory-tree plugin paused."""
GIVE_UP_AFTER = 10
"""Failures in a row, after which a start no longer tries what an earlier process left undone."""
_GIVE_BACK_WITHIN_S = 0.5
_TRIES = 5  # of a small write that others may overtake
_SWEPT = 20  # sessions of one look for work that was left undone

_Told = tuple[MessageId, PartId]


class Digesting:
    """Digests sessions under one strategy."""

    def __init__(
        self,
        digests: DigestStore,
        conversations: ConversationStore,
        views: SessionViews,
        strategy: DigestStrategy,
        *,
        clock: Clock,
        ids: IdSource,
        lease: timedelta = LEASE,
    ) -> None:
        self._digests = digests
        self._conversations = conversations
        self._views = views
        self._strategy = strategy
        self._clock = clock
        self._ids = ids
        self._lease = lease

    async def work(
        self, session: SessionId, *, listed: Sequence[Listed] | None = None, project: ProjectId | None = None
    ) -> int:
        """Do what is due in a session; returns how many steps were done, 0 too when a model failed on the way.

        ``listed`` are the messages of its last request, or those of the archive. Does nothing while another process is
        at it or after failures that are too fresh. A failing model is noted in the session's state and in the log.
        Raises what the store raises.
        """
        listed = await self._views.archived(session) if listed is None else listed
        lease = Lease(token=self._ids.new_id(), expires_at=self._clock.now() + self._lease)
        view = await self._taken(session, lease, listed, project)
        if view is None:
            return 0
        ended = False
        try:
            steps, unfinished = await self._steps(view, lease, listed)
            await self._change(session, lease, lambda state: _released(state, due=unfinished))
            ended = True
        except ModelError as error:
            await self._failed(session, lease, error)
            return 0
        finally:
            if not ended:
                await self._given_back(session, lease)
        return steps

    async def force(self, session: SessionId) -> None:
        """The host is about to compact a session: what is not digested yet is to be, whatever its size."""
        digest = await self._views.digest(session)
        await self._digests.apply(
            DigestUpdate(state=replace(digest.state, forced=True, due=True, updated_at=self._clock.now()))
        )

    async def note_system(self, session: SessionId, text: str) -> None:
        """Keep what stands before a session's messages: the tree's own format has it. ``text`` is cleaned."""
        digest = await self._views.digest(session)
        if digest.state.system_prompt != text:
            await self._digests.apply(
                DigestUpdate(state=replace(digest.state, system_prompt=text, updated_at=self._clock.now()))
            )

    async def undone(self, session: SessionId, messages: Sequence[MessageId]) -> bool:
        """The host took messages back: what was made from them goes. Whether anything was."""
        for _ in range(_TRIES):
            digest = await self._digests.digest(session)
            update = None if digest is None else without_messages(digest, frozenset(messages))
            if update is None:
                return False
            if await self._digests.apply(update):
                return True
        log.warning("event=undo_overtaken session=%s", session)
        return False

    async def is_resting(self, session: SessionId) -> bool:
        """Whether the last try failed, and it is too early for another."""
        digest = await self._digests.digest(session)
        not_before = None if digest is None else digest.state.not_before
        return not_before is not None and not_before > self._clock.now()

    async def left_undone(self) -> Sequence[SessionId]:
        """Sessions of this strategy whose work was found and not finished, the newest first; those that failed too
        often wait for their next user message."""
        found = await self._digests.due(now=self._clock.now(), limit=_SWEPT)
        return [session for session in found if await self._is_worth_a_try(session)]

    async def _is_worth_a_try(self, session: SessionId) -> bool:
        digest = await self._digests.digest(session)
        if digest is None or is_unvouched(digest) or digest.state.strategy is not self._strategy.strategy:
            return False
        return digest.state.attempts < GIVE_UP_AFTER

    async def _steps(self, view: SessionView, lease: Lease, listed: Sequence[Listed]) -> tuple[int, bool]:
        """How many steps were done, and whether there is more to do."""
        session, project = view.digest.state.session, view.project
        for done in range(MAX_STEPS):
            if not self._strategy.due(view):
                return done, False
            made = await self._strategy.work(view)
            told = frozenset((message.id, part.id) for message in view.messages for part in message.parts)
            if not made.added or not await self._kept(made, session, lease, told):
                return done, False
            view = await self._view(session, listed, project)
        return MAX_STEPS, self._strategy.due(view)

    async def _given_back(self, session: SessionId, lease: Lease) -> None:
        """The work was stopped, perhaps with this process: the next start need not wait for the lease to expire."""
        import anyio

        with anyio.move_on_after(_GIVE_BACK_WITHIN_S, shield=True), contextlib.suppress(StoreError):
            await self._change(session, lease, lambda state: replace(state, lease=None, due=True))

    async def _view(self, session: SessionId, listed: Sequence[Listed], project: ProjectId | None) -> SessionView:
        return await self._views.view(await self._views.current(session), listed, project=project)

    async def _taken(
        self, session: SessionId, lease: Lease, listed: Sequence[Listed], project: ProjectId | None
    ) -> SessionView | None:
        """The session, leased to us; None when there is nothing to do or it is not our turn."""
        view = await self._view(session, listed, project)
        state, now = view.digest.state, self._clock.now()
        if is_unvouched(view.digest) or (state.lease is not None and state.lease.expires_at > now):
            return None
        if state.not_before is not None and state.not_before > now:
            return None
        if not self._strategy.due(view):
            if state.due or state.forced:
                await self._digests.apply(DigestUpdate(state=_released(state, due=False)))
            return None
        if not await self._digests.apply(DigestUpdate(state=replace(state, lease=lease, due=True, updated_at=now))):
            return None
        return await self._view(session, listed, project)

    async def _kept(self, made: Made, session: SessionId, lease: Lease, told: frozenset[_Told]) -> bool:
        """Write one step's pieces. False when the lease is lost; nothing is written of what was undone meanwhile, or
        removed from the archive that had ``told`` of it."""
        sources = [message for piece in made.added for message in piece.sources]
        made_from = frozenset(sources)
        for _ in range(_TRIES):
            digest = await self._views.digest(session)
            if digest.state.lease is None or digest.state.lease.token != lease.token:
                return False
            found = await self._conversations.find_messages(sources)
            undone = any(item.removed_at is not None for item in found)
            kept = frozenset((item.id, part.id) for item in found for part in item.parts)
            gone = any(message in made_from for message, _ in told - kept)
            if undone or gone or not _fits(made, digest):
                return True  # the next look at the session finds what is due now
            renewed = replace(lease, expires_at=self._clock.now() + self._lease)
            state = _advanced(replace(digest.state, lease=renewed, updated_at=self._clock.now()), made)
            if await self._digests.apply(DigestUpdate(state=state, added=made.added, changed=made.changed)):
                return True
        return False

    async def _failed(self, session: SessionId, lease: Lease, error: ModelError) -> None:
        log.warning("event=digest_failed session=%s reason=%s", session, error)
        now = self._clock.now()

        def noted(state: DigestState) -> DigestState:
            pause = PAUSES[min(state.attempts, len(PAUSES) - 1)]
            return replace(
                state, lease=None, due=True, attempts=state.attempts + 1, not_before=now + pause, problem=str(error)
            )

        await self._change(session, lease, noted)

    async def _change(self, session: SessionId, lease: Lease, change: Callable[[DigestState], DigestState]) -> None:
        """Change the state of a session that is leased to us; nothing happens when it no longer is."""
        for _ in range(_TRIES):
            digest = await self._views.digest(session)
            if digest.state.lease is None or digest.state.lease.token != lease.token:
                return
            state = replace(change(digest.state), updated_at=self._clock.now())
            if await self._digests.apply(DigestUpdate(state=state)):
                return


def _released(state: DigestState, *, due: bool) -> DigestState:
    return replace(state, lease=None, due=due, forced=False, attempts=0, not_before=None, problem=None)


def _advanced(state: DigestState, made: Made) -> DigestState:
    return replace(
        state,
        current_task=state.current_task if made.current_task is None else made.current_task,
        suggested_response=state.suggested_response if made.suggested_response is None else made.suggested_response,
        last_cycle=made.cycle,
        last_cycle_at=state.updated_at,
        attempts=0,
        problem=None,
    )


def _fits(made: Made, digest: SessionDigest) -> bool:
    """Whether what was made still belongs to the digest, which others may have written meanwhile."""
    done = frozenset(messages_of(digest.pieces, digest))
    active = {piece.id for piece in digest.active()}
    known = {piece.id for piece in digest.pieces}
    return all(
        piece.id not in known and done.isdisjoint(piece.sources) and active.issuperset(piece.children)
        for piece in made.added
    )
