"""Where the distilling of a session stands: who works on it, what comes next, what a failure costs, what is left out.

The journal of ``dreaming.py``. Every write of it is small, and another process may be first.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from backstory.domain.digest import Lease
from backstory.domain.dream_state import DreamState
from backstory.domain.dreaming import Stretch, next_stretch
from backstory.domain.ids import ProjectId, SessionId
from backstory.domain.interchange import is_imported
from backstory.errors import Conflict, ModelError, StoreError
from backstory.ports.conversation import Archive
from backstory.ports.dreams import DreamStore
from backstory.ports.system import Clock

log = logging.getLogger(__name__)

PAUSES = (timedelta(seconds=2), timedelta(seconds=4), timedelta(minutes=5))
"""After the first, the second and every later failure in a row, as digests pause."""
TRIES = 5
"""Of a small write that others may overtake, and of a plan whose memories changed meanwhile."""
_GIVE_BACK_WITHIN_S = 0.5
_PAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamPolicy:
    """``enabled``: sessions are distilled, and kept to be. ``transcript_chars`` of a conversation are read at once."""

    enabled: bool
    subagents: bool
    transcript_chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A session that cannot be worked on before ``again_at``: another process is at it, or it ``rests``."""

    again_at: datetime
    rests: bool = False


class DreamJournal:
    """The states of sessions, and what may be done in them."""

    def __init__(self, dreams: DreamStore, archive: Archive, *, policy: DreamPolicy, clock: Clock) -> None:
        self._dreams = dreams
        self._archive = archive
        self._policy = policy
        self._clock = clock

    async def why_not(self, session: SessionId) -> str | None:
        """Why a session is not distilled; None for one that is."""
        if not self._policy.enabled:
            return "distilling is switched off"
        known = await self._archive.session(session)
        if known is None:
            return "nothing is kept of this session"
        if known.deleted_at is not None:
            return "the session was deleted"
        if is_imported(known):
            return "the session came from a file, and nobody heard it here"
        if known.parent is not None and not self._policy.subagents:
            return "it is a sub-agent's session"
        return "the session belongs to no project" if known.project is None else None

    async def project(self, session: SessionId) -> ProjectId | None:
        """The project of a session that is kept."""
        known = await self._archive.session(session)
        return None if known is None else known.project

    async def state(self, session: SessionId, project: ProjectId | None) -> DreamState:
        """Where a session stands, in the project that it belongs to now; a fresh state where nobody looked at it."""
        known = await self._dreams.state(session)
        fresh = DreamState(session=session, project=project, updated_at=self._clock.now())
        return fresh if known is None else replace(known, project=project)

    async def next_stretch(self, state: DreamState, *, page: int = _PAGE) -> Stretch | None:
        """What is to be distilled next, behind the last message that was. Pages with nothing to distil, of a long turn
        that was taken back for one, are passed over."""
        ids = await self._archive.message_ids(state.session)
        start = ids.index(state.through) + 1 if state.through in ids else 0
        for offset in range(start, len(ids), page):
            messages = await self._archive.messages(state.session, limit=page, offset=offset)
            if not start and state.through_at is not None:  # the last one distilled is not kept any more
                messages = [message for message in messages if message.created_at > state.through_at]
            more = offset + page < len(ids)
            found = next_stretch(messages, max_chars=self._policy.transcript_chars, target=state.target, more=more)
            if found is not None:
                return found
        return None

    async def note_due(self, session: SessionId, project: ProjectId, *, at: datetime) -> None:
        """A session is due at a moment, durably; where it cannot be noted, the log says so."""
        for _ in range(TRIES):
            state = await self.state(session, project)
            if await self._dreams.apply(replace(state, due=True, not_before=at, updated_at=self._clock.now())):
                return
        log.warning("event=dream_not_noted session=%s", session)

    async def settle(self, session: SessionId) -> None:
        """Nothing is due in a session that is left out."""
        state = await self._dreams.state(session)
        if state is not None and state.due:
            await self._dreams.apply(replace(state, due=False, lease=None, updated_at=self._clock.now()))

    async def take(self, session: SessionId, lease: Lease, *, at_once: bool) -> DreamState | Held:
        """The session, leased to us; or until when it is not. ``at_once``: also while it rests."""
        state, now = await self.state(session, await self.project(session)), self._clock.now()
        if state.lease is not None and state.lease.expires_at > now:
            return Held(again_at=state.lease.expires_at)
        if not at_once and state.not_before is not None and state.not_before > now:
            return Held(again_at=state.not_before, rests=True)
        taken = replace(state, lease=lease, due=True, not_before=None, updated_at=now)
        if not await self._dreams.apply(taken):
            return Held(again_at=now + PAUSES[0])
        return replace(taken, revision=state.revision + 1)

    async def still_ours(self, begun: DreamState) -> bool:
        """Whether the lease of a state is still the one under which it was begun."""
        state = await self._dreams.state(begun.session)
        if state is None or state.lease is None or begun.lease is None:
            return False
        return state.lease.token == begun.lease.token

    async def change(
        self, session: SessionId, lease: Lease, change: Callable[[DreamState], DreamState]
    ) -> DreamState | None:
        """Change the state of a session that is leased to us, and return it; None when it no longer is."""
        for _ in range(TRIES):
            state = await self._dreams.state(session)
            if state is None or state.lease is None or state.lease.token != lease.token:
                return None
            changed = replace(change(state), updated_at=self._clock.now())
            if await self._dreams.apply(changed):
                return replace(changed, revision=changed.revision + 1)
        log.warning("event=dream_overtaken session=%s", session)
        return None

    async def note_failure(self, session: SessionId, lease: Lease, error: ModelError | Conflict) -> DreamState | None:
        """A round failed: the lease ends, and the session rests. The state then; None where it was lost before."""
        log.warning("event=dream_failed session=%s reason=%s", session, error)
        now = self._clock.now()

        def noted(state: DreamState) -> DreamState:
            pause = PAUSES[min(state.attempts, len(PAUSES) - 1)]
            return replace(
                state, lease=None, due=True, attempts=state.attempts + 1, not_before=now + pause, problem=str(error)
            )

        return await self.change(session, lease, noted)

    async def give_back(self, session: SessionId, lease: Lease) -> None:
        """The work was stopped, perhaps with this process: the next start need not wait for the lease to expire."""
        import anyio

        with anyio.move_on_after(_GIVE_BACK_WITHIN_S, shield=True), contextlib.suppress(StoreError):
            await self.change(session, lease, lambda state: replace(state, lease=None, due=True))
