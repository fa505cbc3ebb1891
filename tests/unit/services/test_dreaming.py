"""Distilling a session: each stretch once, as one change, whatever dies on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from backstory.domain.admission import TextLimits
from backstory.domain.conversation import FrozenBlock, ShownMemory
from backstory.domain.dream_state import DreamState
from backstory.domain.history import Action, Author
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.memory import Conflicted, Source, Superseded
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.services.dreaming import MAX_STRETCHES
from backstory.services.dreaming_outcome import Outcome
from backstory.services.reference import Reference
from backstory.services.remember import Remember
from backstory.testing.fakes import ORCHARD, START, sample_memory
from tests.dreams import SESSION, Night, answer, fact, said, tool
from tests.unit.services.dreaming_talks import KETTLE, NOW, TALK, TRAY

pytestmark = pytest.mark.anyio


async def test_what_was_said_becomes_one_change_that_names_the_system_and_can_be_undone() -> None:
    night = Night([answer(fact(KETTLE, 1), fact(TRAY, 2))])
    await night.tell(*TALK)
    done = await night.dreaming.work(SESSION)
    (change,) = done.changes
    assert (done.outcome, change.action, change.author, change.session) == (
        Outcome.DONE, Action.DREAM, Author.SYSTEM, SESSION,
    )  # fmt: skip
    assert change.key == f"dream:{SESSION}:msg_002"
    assert await night.texts() == [KETTLE, TRAY]
    reference = Reference(night.backend.memories, night.backend.projects, clock=night.clock)
    remember = Remember(night.backend.memories, reference, clock=night.clock, ids=night.ids, limits=TextLimits())
    person = Viewer(project=ORCHARD, audience=Audience.PERSON)
    await remember.undo(change.id, viewer=person, author=Author.USER)
    assert await night.texts() == []


async def test_what_the_agent_made_of_a_memory_it_was_shown_is_questioned_when_that_is_forgotten() -> None:
    night = Night([answer(fact("The oak tray T-42 warps near the stove, so it needs oil.", 2))])
    (shown, *_) = await night.keep(sample_memory("the oak tray is T-42", project=ORCHARD))
    await night.tell(
        said(1, "Why does the tray bend?"),
        said(2, "The oak tray T-42 warps near the stove, so it needs oil.", user=False),
    )
    block = FrozenBlock(
        message=MessageId("msg_001"), session=SESSION, text="T-42", silent_because=None, created_at=START,
        shown=(ShownMemory(memory=shown.id, n=shown.n, score=0.9, reason="words"),),
    )  # fmt: skip
    await night.backend.conversations.freeze_block(block)
    await night.dreaming.work(SESSION)
    (made,) = [memory for memory in await night.kept() if memory.id != shown.id]
    assert made.provenance.derived_from == (shown.id,)
    reference = Reference(night.backend.memories, night.backend.projects, clock=night.clock)
    remember = Remember(night.backend.memories, reference, clock=night.clock, ids=night.ids, limits=TextLimits())
    person = Viewer(project=ORCHARD, audience=Audience.PERSON)
    await remember.forget([shown.id], viewer=person, author=Author.USER)
    (now,) = (await night.backend.memories.get([made.id])).values()
    assert isinstance(now.status, Conflicted)
    assert f"made from #{shown.n}" in now.status.evidence


async def test_nothing_is_distilled_twice() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*TALK)
    await night.dreaming.work(SESSION)
    again = await night.dreaming.work(SESSION)
    assert again.outcome is Outcome.NOTHING
    assert len(night.asked.requests) == 1
    assert not (await night.state()).due


async def test_only_what_was_said_since_is_shown_the_next_time() -> None:
    night = Night([answer(fact(KETTLE, 1)), answer()])
    await night.tell(*TALK)
    await night.dreaming.work(SESSION)
    await night.tell(said(3, "The silver spoons are in the drawer."), said(4, "Noted.", user=False))
    await night.dreaming.work(SESSION)
    asked = night.asked.requests[1]
    assert "silver spoons" in asked.prompt
    assert "oak tray" not in asked.prompt
    assert f"m1 (fact, this project, distilled): {KETTLE}" in asked.prompt
    assert (asked.feature, asked.session, asked.project) == ("dream", SESSION, ORCHARD)


async def test_a_long_session_is_distilled_in_stretches_each_a_change() -> None:
    night = Night([answer(fact(KETTLE, 1)), answer(), answer(fact(TRAY, 2)), '{"duplicates": []}'])
    night.policy = replace(night.policy, transcript_chars=1_000)
    filler = "Nothing of note happened today. " * 25
    await night.tell(*TALK, said(3, filler), said(4, "I see.", user=False), said(5, filler), said(6, TRAY, user=False))
    done = await night.dreaming.work(SESSION)
    assert [made.subject.stretch.target for made in done.distilled] == ["msg_002", "msg_004", "msg_006"]
    assert (await night.state()).through == "msg_006"


async def test_a_very_long_session_gives_others_their_turn() -> None:
    night = Night([answer()])
    night.policy = replace(night.policy, transcript_chars=100)
    await night.tell(*[said(number, f"Day {number} was quiet. " * 5) for number in range(1, 3 * MAX_STRETCHES)])
    first = await night.dreaming.work(SESSION)
    assert (first.outcome, len(first.distilled)) == (Outcome.UNFINISHED, MAX_STRETCHES)
    assert first.again_at is not None
    assert (await night.state()).due
    while (await night.dreaming.work(SESSION)).outcome is Outcome.UNFINISHED:
        pass
    assert not (await night.state()).due


async def test_a_stretch_without_words_asks_nobody() -> None:
    night = Night([answer()])
    await night.tell(said(1, "", parts=[tool(1, "oil the hinges")]))
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.DONE
    assert night.asked.requests == []


async def test_what_was_taken_back_is_not_distilled() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*TALK)
    await night.backend.conversations.mark_removed(MessageId("msg_001"), at=night.clock.now())
    await night.dreaming.work(SESSION)
    assert "copper" not in night.asked.requests[0].prompt
    assert await night.texts() == []


async def test_a_long_turn_that_was_taken_back_hides_nothing_that_was_said_after_it() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    taken_back = [said(number, f"Step {number} is done.", user=False) for number in range(1, 250)]
    await night.tell(*taken_back)
    for message in taken_back:
        await night.backend.conversations.mark_removed(message.id, at=night.clock.now())
    await night.tell(said(301, TALK[0].parts[0].text), said(302, "Noted.", user=False))
    assert await night.dreaming.left_undone(ORCHARD, limit=5, within=NOW, by_person=True)
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.DONE
    assert await night.texts() == [KETTLE]


async def test_where_the_last_message_distilled_is_not_kept_any_more_what_was_said_since_is_found() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*[said(number, f"Step {number} is done.", user=False) for number in range(1, 250)])
    through = said(250, "")
    await night.backend.dreams.apply(
        DreamState(
            session=SESSION,
            project=ORCHARD,
            through=MessageId("msg_erased"),
            through_at=through.created_at,
            updated_at=night.clock.now(),
        )
    )
    await night.tell(said(301, TALK[0].parts[0].text), said(302, "Noted.", user=False))
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.DONE
    assert await night.texts() == [KETTLE]


@pytest.mark.parametrize(
    ("fields", "because"),
    [
        ({"parent": SessionId("ses_other")}, "sub-agent"),
        ({"deleted_at": START}, "deleted"),
        ({"project": None}, "no project"),
        ({"host": "import:opencode"}, "came from a file"),
    ],
)
async def test_sessions_of_others_and_deleted_ones_are_left_out(fields: dict[str, Any], because: str) -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*TALK, **fields)
    assert await night.dreaming.note_idle(SESSION, delay=NOW) is None
    done = await night.dreaming.work(SESSION, at_once=True)
    assert done.outcome is Outcome.LEFT_OUT
    assert because in (done.because or "")
    assert (await night.dreaming.preview(SESSION)).outcome is Outcome.LEFT_OUT
    assert night.asked.requests == []


async def test_a_sub_agents_session_is_the_agents_word_where_it_is_distilled() -> None:
    night = Night([answer(fact(KETTLE, 1, scope="global"))])
    night.policy = replace(night.policy, subagents=True)
    await night.tell(*TALK, parent=SessionId("ses_other"))
    await night.dreaming.work(SESSION)
    (memory,) = await night.kept()
    assert memory.visibility.value == "project", "no user said it"


async def test_nothing_is_distilled_while_it_is_switched_off() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    night.policy = replace(night.policy, enabled=False)
    await night.tell(*TALK)
    assert await night.dreaming.note_idle(SESSION, delay=NOW) is None
    assert (await night.dreaming.work(SESSION, at_once=True)).outcome is Outcome.LEFT_OUT
    assert await night.dreaming.left_undone(ORCHARD, limit=8, within=NOW) == []


async def test_nothing_local_private_or_foreign_is_shown_to_the_model() -> None:
    from backstory.domain.ids import ProjectId
    from backstory.domain.memory import Sensitivity, Visibility

    night = Night([answer()])
    await night.keep(
        sample_memory("copper kettle alpha", sensitivity=Sensitivity.LOCAL_ONLY),
        sample_memory("copper kettle beta", sensitivity=Sensitivity.PRIVATE),
        sample_memory("copper kettle gamma", project=ProjectId("elsewhere")),
        sample_memory("copper kettle delta", origin=Origin.FILE),
        sample_memory("copper kettle epsilon", visibility=Visibility.SESSION, session=SessionId("ses_other")),
        sample_memory("copper kettle zeta"),
    )
    await night.tell(*TALK)
    await night.dreaming.work(SESSION)
    prompt = night.asked.requests[0].prompt
    assert [name for name in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta") if name in prompt] == ["zeta"]


async def test_a_preview_decides_the_same_and_writes_nothing() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*TALK)
    shown = await night.dreaming.preview(SESSION)
    assert [edit.after.content for edit in shown.plans[0].edits] == [KETTLE]
    assert await night.kept() == []
    assert await night.backend.dreams.state(SESSION) is None
    await night.dreaming.work(SESSION)
    assert await night.texts() == [KETTLE]


async def test_what_a_new_fact_contradicts_is_disputed_though_the_model_did_not_notice() -> None:
    night = Night([answer(fact("The brewery listens on port 9090.", 1)), '{"duplicates": []}'])
    (old,) = await night.keep(sample_memory("The brewery listens on port 8080."))
    await night.tell(said(1, "The brewery listens on port 9090."), said(2, "I see.", user=False))
    await night.dreaming.work(SESSION)
    stated, new = await night.kept()
    assert (stated.id, stated.content) == (old.id, old.content)
    assert isinstance(stated.status, Conflicted)
    assert isinstance(new.status, Conflicted)
    assert (stated.status.against, new.status.against) == (new.id, old.id)


async def test_after_a_dream_no_more_distilled_facts_are_kept_than_may_be() -> None:
    night = Night([answer(fact(KETTLE, 1)), '{"duplicates": []}'])
    night.at_most = 2
    earlier = [
        sample_memory(f"Jar {n} is full.", source=Source.DREAMED, origin=Origin.AGENT, weight=0.2) for n in range(4)
    ]
    await night.keep(*earlier, sample_memory("The gate is green."))
    await night.tell(*TALK)
    done = await night.dreaming.work(SESSION)
    kept = await night.texts()
    assert {KETTLE, "The gate is green."} < set(kept)
    assert len(kept) == 3
    assert [change.action for change in done.changes] == [Action.DREAM], "what faded goes as a change of its own"


async def test_a_replaced_memory_is_kept_and_hidden() -> None:
    night = Night([answer(update=[{"id": "m1", "text": KETTLE, "sources": [1]}])])
    await night.keep(sample_memory("The iron kettle is for green tea.", source=Source.DREAMED, origin=Origin.AGENT))
    await night.tell(*TALK)
    await night.dreaming.work(SESSION)
    old, new = await night.kept()
    assert old.status == Superseded(by=new.id, since=night.clock.now())
    viewer = Viewer(project=ORCHARD, session=SESSION)
    found = await night.backend.memories.select(Selection(viewer=viewer, now=night.clock.now()), limit=9)
    assert [memory.content for memory in found] == [KETTLE]
