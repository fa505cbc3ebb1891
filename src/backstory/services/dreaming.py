"""Distil what was said in a session into memories, in the background: each stretch once, and as one change.

A stretch has two phases. First its end is noted with a lease, then the model is asked; what it proposes and the rules
allow is one change, whose key is the stretch; last it is noted that the stretch is done. Whatever dies on the way, the
stretch is done again, and a change that was written already is recognised by its key.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from backstory.domain.digest import Lease
from backstory.domain.dream_state import DreamState
from backstory.domain.dreaming import Stretch
from backstory.domain.history import Action, Author, Change
from backstory.domain.ids import ChangeId, ProjectId, SessionId
from backstory.domain.interchange import is_history, is_imported
from backstory.domain.scope import Audience, Viewer
from backstory.errors import Conflict, ModelError
from backstory.ports.conversation import Archive
from backstory.ports.dreams import DreamStore
from backstory.ports.store import MemoryStore
from backstory.ports.system import Clock, IdSource
from backstory.services.dreaming_journal import PAUSES, TRIES, DreamJournal, DreamPolicy, Held
from backstory.services.dreaming_outcome import Dreamt, Outcome, Told
from backstory.services.dreaming_summary import SummaryWriter
from backstory.services.dreaming_work import Distilled, Distilling
from backstory.services.pruning import Pruning
from backstory.services.taken_back import TakenBack

log = logging.getLogger(__name__)

LEASE = timedelta(minutes=3)
"""After a crash the work waits so long. It must be longer than one stretch takes."""
MAX_STRETCHES = 6
"""Of one round: a long history is spread over several, so that other sessions get their turn."""
GIVE_UP_AFTER = 10
"""Failures in a row, after which only a new turn or a person makes another try."""
_LOOKED_AT = 50  # latest sessions of a project, among which a start looks for what is due and for what nobody noted
MISSED_AFTER = timedelta(minutes=1)
"""How long a session must be still that nobody noted: whoever is in the middle of a turn will note it at its end."""
_GLANCE = 20  # messages that tell whether there is anything
LOOKS_BACK = timedelta(days=7)
"""How far a start looks for what nobody noted; what is older is distilled when a person asks for it."""


@dataclass(slots=True)
class _Work:
    """What one round has done so far; it is done, whatever fails after it."""

    distilled: list[Distilled] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)


def _nobody(made: Distilled) -> None:
    """Nobody looks on."""


class Dreaming:
    """Distils sessions of a project's conversations. ``lease`` is longer than one stretch may take.

    After a dream that changed something, what has faded goes (``pruning``), and ``summaries`` are written anew.
    """

    def __init__(
        self,
        dreams: DreamStore,
        memories: MemoryStore,
        archive: Archive,
        distilling: Distilling,
        summaries: SummaryWriter | None,
        pruning: Pruning | None,
        *,
        policy: DreamPolicy,
        clock: Clock,
        ids: IdSource,
        lease: timedelta = LEASE,
    ) -> None:
        self._dreams = dreams
        self._memories = memories
        self._archive = archive
        self._distilling = distilling
        self._summaries = summaries
        self._pruning = pruning
        self._policy = policy
        self._clock = clock
        self._ids = ids
        self._lease = lease
        self._journal = DreamJournal(dreams, archive, policy=policy, clock=clock)
        self._taken_back = TakenBack(memories, archive, clock=clock, ids=ids)

    async def note_idle(self, session: SessionId, *, delay: timedelta) -> datetime | None:
        """A turn has ended: the session is due after ``delay``, durably. When that is; None where it is left out."""
        project = None if await self._journal.why_not(session) else await self._journal.project(session)
        if project is None:
            return None
        moment = self._clock.now() + delay
        await self._journal.note_due(session, project, at=moment)
        return moment

    async def work(self, session: SessionId, *, at_once: bool = False, told: Told = _nobody) -> Dreamt:
        """Distil what was said in a session since the last time, stretch by stretch, at most ``MAX_STRETCHES``.

        Does nothing while another process is at it, nor, unless ``at_once``, before the session is due or while it
        rests after a failure. ``told`` hears of each stretch. A failing model is noted in the state and in the log; a
        summary that cannot be written is left as it is. Raises what the store raises.
        """
        if (reason := await self._journal.why_not(session)) is not None:
            await self._journal.settle(session)
            return Dreamt(session=session, outcome=Outcome.LEFT_OUT, because=reason)
        lease = Lease(token=self._ids.new_id(), expires_at=self._clock.now() + self._lease)
        taken = await self._journal.take(session, lease, at_once=at_once)
        if isinstance(taken, Held):
            outcome = Outcome.RESTING if taken.rests else Outcome.BUSY
            return Dreamt(session=session, outcome=outcome, again_at=taken.again_at)
        ended = False
        work = _Work()
        try:
            if taken.project is not None:
                work.changes += await self._taken_back.question(session, taken.project)
            done = await self._stretches(taken, lease, work, told)
            ended = True
        except (ModelError, Conflict) as error:
            done = await self._failed(session, lease, error)
            ended = True
        finally:
            if not ended:
                await self._journal.give_back(session, lease)
        if work.distilled and taken.project is not None:
            await self._tidy(taken.project, session, changed=bool(work.changes))
        return replace(done, distilled=tuple(work.distilled), changes=tuple(work.changes))

    async def preview(self, session: SessionId, *, told: Told = _nobody) -> Dreamt:
        """What ``work`` would do now. The model is asked as it would be, and nothing is written."""
        if (reason := await self._journal.why_not(session)) is not None:
            return Dreamt(session=session, outcome=Outcome.LEFT_OUT, because=reason)
        state = await self._journal.state(session, await self._journal.project(session))
        distilled: list[Distilled] = []
        for _ in range(MAX_STRETCHES):
            stretch = await self._journal.next_stretch(state)
            if stretch is None or state.project is None:
                break
            already = [edit.after for made in distilled for edit in made.plan.edits if edit.before is None]
            made = await self._distilling.distil(stretch, session, state.project, attempts=0, beside=already)
            distilled.append(made)
            told(made)
            state = replace(state, through=stretch.target, through_at=stretch.at, target=None)
        outcome = Outcome.DONE if distilled else Outcome.NOTHING
        return Dreamt(session=session, outcome=outcome, distilled=tuple(distilled))

    async def left_undone(
        self, project: ProjectId, *, limit: int, within: timedelta, by_person: bool = False
    ) -> Sequence[tuple[SessionId, datetime]]:
        """Sessions of a project with something to distil, and when their turn is, at most ``within`` from now, or as
        long as the lease of a process that died may last, or a pause, or ``MISSED_AFTER``: those that are due first,
        then those that nobody noted, the latest first, at most ``limit``.

        Unless a person asks, sessions that failed too often are left out, and so are those that nobody noted for longer
        than ``LOOKS_BACK``, and those that were brought in from a history.
        """
        if not self._policy.enabled:
            return []
        now = self._clock.now()
        found: dict[SessionId, datetime] = {}
        horizon = now + max(within, self._lease, PAUSES[-1])
        for session in await self._dreams.due(now=horizon, limit=max(limit, _LOOKED_AT), project=project):
            state = await self._dreams.state(session)
            if len(found) < limit and state is not None and (by_person or state.attempts < GIVE_UP_AFTER):
                found[session] = _free_at(state, now)
        for known in await self._archive.sessions(limit=limit if by_person else _LOOKED_AT, project=project):
            if len(found) >= limit:
                break
            is_meant = known.id not in found and not is_imported(known)
            is_recent = known.updated_at > now - LOOKS_BACK and not is_history(known)
            is_meant = is_meant and (by_person or is_recent)
            if is_meant and await self._was_missed(known.id):
                found[known.id] = max(now, min(known.updated_at, now) + max(within, MISSED_AFTER))
        return list(found.items())[:limit]

    # --- one session --------------------------------------------------------------------------------------------------

    async def _stretches(self, state: DreamState, lease: Lease, work: _Work, told: Told) -> Dreamt:
        session = state.session
        unfinished = False
        for _ in range(MAX_STRETCHES):
            stretch = await self._journal.next_stretch(state)
            if stretch is None:
                break
            begun = await self._journal.change(session, lease, partial(self._begun, stretch=stretch, lease=lease))
            if begun is None:
                return Dreamt(session=session, outcome=Outcome.BUSY)
            made, change = await self._one(stretch, begun)
            if made is None:
                unfinished = True  # it was overtaken; the next look finds what is there now
                break
            work.distilled.append(made)
            work.changes += [change] if change is not None else []
            told(made)
            ended = await self._journal.change(session, lease, partial(_through, stretch=stretch))
            if ended is None:
                return Dreamt(session=session, outcome=Outcome.BUSY)
            state = ended
        else:
            unfinished = await self._journal.next_stretch(state) is not None
        released = await self._journal.change(session, lease, partial(_released, due=unfinished))
        return Dreamt(
            session=session,
            outcome=Outcome.UNFINISHED if unfinished else Outcome.DONE if work.distilled else Outcome.NOTHING,
            again_at=None if released is None or not released.due else released.not_before or self._clock.now(),
        )

    async def _tidy(self, project: ProjectId, session: SessionId, *, changed: bool) -> None:
        if changed and self._pruning is not None:
            try:
                await self._pruning.prune(Viewer(project=project, audience=Audience.PERSON), author=Author.SYSTEM)
            except Conflict as error:  # others write much; the next dream tries again
                log.info("event=pruning_skipped session=%s reason=%s", session, error)
        if self._summaries is not None:
            await self._summaries.renew(project, session=session, changed=changed)

    async def _one(self, stretch: Stretch, state: DreamState) -> tuple[Distilled | None, Change | None]:
        """Distil one stretch and write what came of it; None where messages were taken back or the lease was lost."""
        assert state.project is not None
        made = await self._distilling.distil(stretch, state.session, state.project, attempts=state.attempts)
        for attempt in range(TRIES):
            if attempt:
                made = await self._distilling.again(made)
            if not await self._stands(stretch, state):
                return None, None
            if not made.plan.edits:
                return made, None
            try:
                return made, await self._memories.commit(self._as_change(made, state.session))
            except Conflict:
                if attempt == TRIES - 1:
                    raise
        raise AssertionError("unreachable")

    def _as_change(self, made: Distilled, session: SessionId) -> Change:
        return Change(
            id=ChangeId(self._ids.new_id()),
            at=self._clock.now(),
            author=Author.SYSTEM,
            action=Action.DREAM,
            edits=made.plan.edits,
            reason=f"distilled by {made.made_by}",
            session=session,
            key=f"dream:{session}:{made.subject.stretch.target}",
        )

    async def _stands(self, stretch: Stretch, begun: DreamState) -> bool:
        """Whether the lease is still ours, and every message is still there."""
        if not await self._journal.still_ours(begun):
            return False
        found = await self._archive.find_messages([message.id for message in stretch.messages])
        there = [message for message in found if message.removed_at is None]
        return len(there) == len(stretch.messages) and await self._journal.why_not(begun.session) is None

    async def _failed(self, session: SessionId, lease: Lease, error: ModelError | Conflict) -> Dreamt:
        state = await self._journal.note_failure(session, lease, error)
        gives_up = state is None or state.attempts >= GIVE_UP_AFTER
        again_at = None if state is None or gives_up else state.not_before
        return Dreamt(session=session, outcome=Outcome.FAILED, again_at=again_at, because=str(error))

    def _begun(self, state: DreamState, *, stretch: Stretch, lease: Lease) -> DreamState:
        renewed = replace(lease, expires_at=self._clock.now() + self._lease)
        return replace(state, target=stretch.target, lease=renewed)

    async def _was_missed(self, session: SessionId) -> bool:
        """Whether anything was said in a session since it was distilled, if it ever was, that nobody noted."""
        if await self._journal.why_not(session) is not None:
            return False
        state = await self._dreams.state(session)
        if state is None:
            return bool(await self._archive.message_ids(session))
        if state.due:
            return False  # it is among those that are due, or its time has not come
        return await self._journal.next_stretch(state, page=_GLANCE) is not None


def _free_at(state: DreamState, now: datetime) -> datetime:
    """When nobody holds a session any more, and it is due."""
    held_until = None if state.lease is None else state.lease.expires_at
    return max(moment for moment in (now, state.not_before, held_until) if moment is not None)


def _through(state: DreamState, *, stretch: Stretch) -> DreamState:
    return replace(state, through=stretch.target, through_at=stretch.at, target=None, attempts=0, problem=None)


def _released(state: DreamState, *, due: bool) -> DreamState:
    """Without the lease; still due where a turn has ended meanwhile, which set ``not_before``."""
    still = due or state.not_before is not None
    return replace(state, lease=None, due=still, attempts=0, problem=None)
