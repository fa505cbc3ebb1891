"""Facts whose source the user took back are put in question, once, and only those."""

from __future__ import annotations

import pytest

from backstory.domain.admission import TextLimits
from backstory.domain.history import Action, Author, Change
from backstory.domain.ids import MessageId
from backstory.domain.memory import Active, Conflicted, Memory, Source
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.scope import Audience, Viewer
from backstory.services.conflicts import Conflicts
from backstory.services.reference import Reference
from backstory.services.remember import Draft, Remember
from backstory.services.taken_back import SOURCE_TAKEN_BACK
from backstory.testing.fakes import ORCHARD, sample_memory
from tests.dreams import SESSION, Night, answer, fact, said
from tests.unit.services.dreaming_talks import KETTLE, TALK, TRAY

pytestmark = pytest.mark.anyio
PERSON = Viewer(project=ORCHARD, audience=Audience.PERSON)


async def distilled() -> Night:
    """A night in which one fact was made of each of the two messages."""
    night = Night([answer(fact(KETTLE, 1), fact(TRAY, 2)), answer()])
    await night.tell(*TALK)
    await night.dreaming.work(SESSION)
    return night


async def take_back(night: Night, *numbers: int) -> list[Change]:
    """Take messages back, go on, and dream once more."""
    for number in numbers:
        await night.backend.conversations.mark_removed(MessageId(f"msg_{number:03}"), at=night.clock.now())
    await night.tell(*TALK, said(9, "Let us start over."))
    return list((await night.dreaming.work(SESSION, at_once=True)).changes)


async def named(night: Night, text: str) -> Memory:
    return next(memory for memory in await night.kept() if memory.content == text)


def reference(night: Night) -> Reference:
    return Reference(night.backend.memories, night.backend.projects, clock=night.clock)


def remember(night: Night) -> Remember:
    return Remember(night.backend.memories, reference(night), clock=night.clock, ids=night.ids, limits=TextLimits())


async def test_a_fact_made_only_of_what_was_taken_back_is_put_in_question() -> None:
    night = await distilled()
    (change,) = await take_back(night, 1)
    assert (change.action, change.author, change.reason) == (Action.CONFLICT, Author.SYSTEM, SOURCE_TAKEN_BACK)
    status = (await named(night, KETTLE)).status
    assert isinstance(status, Conflicted)
    assert (status.evidence, status.against) == (SOURCE_TAKEN_BACK, None)
    assert (await named(night, TRAY)).status == Active()
    conflicts = Conflicts(night.backend, reference(night), clock=night.clock, ids=night.ids, limits=TextLimits())
    (told,) = await conflicts.conflicts(PERSON)
    assert (told.one.memory.content, told.other) == (KETTLE, None)


async def test_a_fact_of_which_a_part_still_stands_stays_believed() -> None:
    night = Night([answer(), answer()])
    both = Provenance(session=SESSION, messages=(MessageId("msg_001"), MessageId("msg_002")))
    await night.keep(
        sample_memory(KETTLE, project=ORCHARD, source=Source.DREAMED, origin=Origin.AGENT, provenance=both)
    )
    assert await take_back(night, 1) == []
    assert (await named(night, KETTLE)).status == Active()
    assert len(await take_back(night, 1, 2)) == 1


async def test_what_was_said_again_since_or_stated_stays_believed() -> None:
    night = await distilled()
    night.clock.advance(night.clock.now() - TALK[0].created_at)
    draft = Draft(content=KETTLE, origin=Origin.AGENT)
    await remember(night).remember(draft, viewer=PERSON, author=Author.AGENT)
    (stated,) = await night.keep(sample_memory("Stated by hand.", project=ORCHARD))
    assert await take_back(night, 1) == []
    assert (await named(night, KETTLE)).status == Active()
    assert (await named(night, stated.content)).status == Active()


async def test_what_a_person_pinned_or_stands_for_stays_believed() -> None:
    night = await distilled()
    await remember(night).pin(f"#{(await named(night, KETTLE)).n}", pinned=True, viewer=PERSON, author=Author.USER)
    source = Provenance(session=SESSION, messages=(MessageId("msg_001"),))
    own = sample_memory("Theirs.", project=ORCHARD, source=Source.DREAMED, origin=Origin.USER, provenance=source)
    await night.keep(own)
    assert await take_back(night, 1) == []
    assert (await named(night, KETTLE)).status == Active()
    assert (await named(night, own.content)).status == Active()


async def test_once_undone_it_is_not_put_in_question_again() -> None:
    night = await distilled()
    (change,) = await take_back(night, 1)
    await remember(night).undo(change.id, viewer=PERSON, author=Author.USER)
    assert (await named(night, KETTLE)).status == Active()
    assert await take_back(night, 1) == []
    assert (await named(night, KETTLE)).status == Active()


async def test_where_nothing_was_taken_back_nothing_is_done() -> None:
    night = await distilled()
    assert await take_back(night) == []
