"""Turn one stretch of a session into a plan: read what is known, have a model or a rule propose, and decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from backstory.domain.admission import TextLimits
from backstory.domain.change_plan import ChangePlan
from backstory.domain.conversation import Message
from backstory.domain.dreaming import Stretch, Talk, talk_of
from backstory.domain.dreaming_facts import Found, Refusal, new_facts
from backstory.domain.dreaming_known import Known, keyed, most_fitting
from backstory.domain.dreaming_plan import Desk, Plan, planned
from backstory.domain.ids import ProjectId, SessionId
from backstory.domain.memory import Memory, Visibility
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.domain.utterance import utterances
from backstory.ports.conversation import ConversationStore
from backstory.ports.store import MemoryStore
from backstory.ports.system import Clock, IdSource
from backstory.services.conversation import Aside, at_once
from backstory.services.dreaming_questions import Proposed, Questions, Subject
from backstory.services.repercussions import Repercussions

BACKGROUND = 300
"""Messages before a stretch that are looked through for what the stretch repeats."""
MAX_KNOWN = 5_000
"""The newest memories of a place that proposals are held against; a project has far fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distilled:
    """What became of one stretch. ``repeated`` are facts that a second look found to be known in other words."""

    subject: Subject
    proposed: Proposed
    repeated: frozenset[str]
    plan: Plan

    @property
    def made_by(self) -> str:
        """The model that proposed it, or ``rules``."""
        return self.proposed.made_by


class Distilling:
    """Distils stretches; writes nothing. ``aside`` runs the reading and deciding, which takes up to a second."""

    def __init__(
        self,
        memories: MemoryStore,
        archive: ConversationStore,
        questions: Questions,
        repercussions: Repercussions,
        *,
        clock: Clock,
        ids: IdSource,
        limits: TextLimits,
        aside: Aside = at_once,
    ) -> None:
        self._memories = memories
        self._archive = archive
        self._questions = questions
        self._repercussions = repercussions
        self._clock = clock
        self._ids = ids
        self._limits = limits
        self._aside = aside

    async def distil(
        self,
        stretch: Stretch,
        session: SessionId,
        project: ProjectId,
        *,
        attempts: int,
        beside: Sequence[Memory] = (),
    ) -> Distilled:
        """Decide what is kept of a stretch. ``beside`` are memories that count as known too. Raises ModelError."""
        known = [*await self._known(session, project), *beside]
        typed_by = await self._typed_by(session)
        earlier = await self._before(stretch, session)
        talk, shown = await self._aside(lambda: _read(stretch, earlier, typed_by, known))
        subject = Subject(session=session, project=project, stretch=stretch, talk=talk, shown=shown, attempts=attempts)
        proposed = await self._questions.proposals(subject)
        first = await self._aside(lambda: self._found(proposed, subject, Known(known)))
        positions = await self._questions.duplicates(first.facts, subject, made_by=proposed.made_by)
        repeated = frozenset(first.facts[position].text for position in positions)
        return await self._planned(subject, proposed, repeated, beside)

    async def again(self, made: Distilled) -> Distilled:
        """Decide once more about the same proposals, since memories changed meanwhile."""
        return await self._planned(made.subject, made.proposed, made.repeated, ())

    async def _planned(
        self, subject: Subject, proposed: Proposed, repeated: frozenset[str], beside: Sequence[Memory]
    ) -> Distilled:
        memories = [*await self._known(subject.session, subject.project), *beside]
        offered = await self._offered(subject)
        desk = Desk(
            project=subject.project,
            session=subject.session,
            now=self._clock.now(),
            made_by=proposed.made_by,
            limits=self._limits,
            new_id=self._ids.new_id,
            offered=offered,
        )

        def decide() -> Plan:
            known = Known(memories)
            found = _without(self._found(proposed, subject, known), repeated)
            current = {memory.id: memory for memory in memories}
            shown = {key: current.get(memory.id, memory) for key, memory in keyed(subject.shown).items()}
            return planned(proposed.proposals, found, shown=shown, known=known, talk=subject.talk, desk=desk)

        plan = await self._followed(await self._aside(decide), desk)
        return Distilled(subject=subject, proposed=proposed, repeated=repeated, plan=plan)

    async def _followed(self, plan: Plan, desk: Desk) -> Plan:
        """With what follows for other memories: conflicts that end or begin, and what was made from what goes."""
        change = ChangePlan((edit.before, edit.after) for edit in plan.edits)
        viewer = Viewer(project=desk.project, session=desk.session)
        await self._repercussions.follow(change, viewer=viewer, now=desk.now)
        for edit in plan.edits:
            if edit.before is None:
                await self._repercussions.oppose(edit.after, change, viewer=viewer, now=desk.now)
        return replace(plan, edits=change.edits)

    def _found(self, proposed: Proposed, subject: Subject, known: Known) -> Found:
        return new_facts(proposed.proposals.new, subject.talk, known, limits=self._limits)

    async def _known(self, session: SessionId, project: ProjectId) -> list[Memory]:
        """All memories of the place, also those that no model is shown: what they say is not to be said anew. Those of
        other sessions are left out, since they are for nobody else."""
        selection = Selection(
            viewer=Viewer(project=project, session=session, audience=Audience.PERSON),
            now=self._clock.now(),
            states=EVERY_STATE - {"expired"},
        )
        found = await self._memories.select(selection, limit=MAX_KNOWN)
        return [one for one in found if one.visibility is not Visibility.SESSION or one.session == session]

    async def _offered(self, subject: Subject) -> tuple[Memory, ...]:
        """The memories that stood beside the messages of a stretch, or in the session's snapshot."""
        blocks = await self._archive.blocks([message.id for message in subject.stretch.messages])
        snapshot = await self._archive.snapshot(subject.session)
        ids = dict.fromkeys(item.memory for block in blocks.values() for item in block.shown)
        ids |= dict.fromkeys(() if snapshot is None else snapshot.shown)
        return tuple((await self._memories.get(list(ids))).values())

    async def _before(self, stretch: Stretch, session: SessionId) -> list[Message]:
        ids = await self._archive.message_ids(session)
        end = ids.index(stretch.messages[0].id) if stretch.messages[0].id in ids else 0
        start = max(0, end - BACKGROUND)
        return await self._archive.messages(session, limit=end - start, offset=start) if end else []

    async def _typed_by(self, session: SessionId) -> Origin:
        """Who speaks in the user's place: in a sub-agent's session, another agent."""
        known = await self._archive.session(session)
        return Origin.USER if known is not None and known.parent is None else Origin.AGENT


def _read(
    stretch: Stretch, earlier: Sequence[Message], typed_by: Origin, known: Sequence[Memory]
) -> tuple[Talk, list[Memory]]:
    said_in = frozenset(message.id for message in stretch.messages)
    whole = utterances([*earlier, *stretch.messages], typed_by=typed_by)  # at once: turns are counted through
    own = [utterance for utterance in whole if utterance.message in said_in]
    talk = talk_of(own, earlier=[utterance for utterance in whole if utterance.message not in said_in])
    said = "\n".join(utterance.text for utterance in talk.trusted())
    return talk, most_fitting(known, said)


def _without(found: Found, repeated: frozenset[str]) -> Found:
    kept = tuple(fact for fact in found.facts if fact.text not in repeated)
    known = (Refusal.KNOWN,) * (len(found.facts) - len(kept))
    return replace(found, facts=kept, refused=(*found.refused, *known))
