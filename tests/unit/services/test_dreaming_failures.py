"""Distilling where the model fails, answers uselessly, may not be asked or is looked over once more."""

from __future__ import annotations

import pytest

from backstory.domain.memory import Source
from backstory.domain.provenance import Origin
from backstory.errors import CapReached, ModelError, ModelTimeout, ModelUnavailable
from backstory.services.dreaming import GIVE_UP_AFTER
from backstory.services.dreaming_journal import PAUSES
from backstory.services.dreaming_outcome import Outcome
from backstory.services.dreaming_questions import PATIENCE, RULES
from backstory.testing.fakes import ORCHARD, sample_memory
from tests.dreams import SESSION, Night, answer, fact, said
from tests.unit.services.dreaming_talks import KETTLE, NOW, TALK, TRAY

pytestmark = pytest.mark.anyio


DECISION = "We decided to use the copper kettle for the green tea, because the iron one rusts."


async def test_a_failing_model_is_asked_again_after_pauses_and_nothing_is_lost() -> None:
    night = Night([ModelTimeout("too slow"), ModelUnavailable("away"), answer(fact(KETTLE, 1))])
    await night.tell(*TALK)
    for attempt, pause in enumerate(PAUSES[:2], 1):
        failed = await night.dreaming.work(SESSION)
        assert (failed.outcome, failed.again_at) == (Outcome.FAILED, night.clock.now() + pause)
        state = await night.state()
        assert (state.attempts, state.due, state.lease) == (attempt, True, None)
        assert (await night.dreaming.work(SESSION)).outcome is Outcome.RESTING
        night.clock.advance(pause)
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.DONE
    state = await night.state()
    assert (state.attempts, state.problem) == (0, None)
    assert await night.texts() == [KETTLE]


async def test_a_model_that_fails_for_ever_is_left_alone_until_the_next_turn() -> None:
    night = Night([ModelUnavailable("away")])
    await night.tell(*TALK)
    for _ in range(GIVE_UP_AFTER):
        last = await night.dreaming.work(SESSION, at_once=True)
    assert last.again_at is None
    night.clock.advance(PAUSES[-1])
    assert await night.dreaming.left_undone(ORCHARD, limit=8, within=NOW) == []
    assert [
        session for session, _ in await night.dreaming.left_undone(ORCHARD, limit=8, within=NOW, by_person=True)
    ] == [SESSION]
    assert await night.dreaming.note_idle(SESSION, delay=NOW) is not None
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.FAILED


async def test_without_a_model_rules_keep_what_was_plainly_stated() -> None:
    night = Night(None)
    await night.tell(
        said(1, DECISION),
        said(2, "Good, the copper kettle it is.", user=False),
    )
    done = await night.dreaming.work(SESSION)
    assert done.distilled[0].made_by == RULES
    (memory,) = await night.kept()
    assert "copper kettle" in memory.content
    assert (memory.source, memory.origin, memory.provenance.agent) == (Source.DREAMED, Origin.AGENT, RULES)


@pytest.mark.parametrize("answers", [[CapReached("enough for today")], ["no JSON at all"]])
async def test_at_a_cap_and_after_useless_answers_the_rules_take_over(answers: list[str | ModelError]) -> None:
    night = Night(answers)
    await night.tell(said(1, DECISION), said(2, "Good.", user=False))
    for _ in range(PATIENCE + 1):
        done = await night.dreaming.work(SESSION, at_once=True)
        if done.outcome is Outcome.DONE:
            break
    assert done.distilled[0].made_by == RULES
    assert "copper kettle" in (await night.texts())[0]


async def test_a_useless_answer_is_asked_for_again_first() -> None:
    night = Night(["no JSON at all", answer(fact(KETTLE, 1))])
    await night.tell(*TALK)
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.FAILED
    assert (await night.dreaming.work(SESSION, at_once=True)).distilled[0].made_by == "scripted:1"
    assert await night.texts() == [KETTLE]


async def test_a_second_look_drops_what_is_known_in_other_words() -> None:
    night = Night([answer(fact(KETTLE, 1), fact(TRAY, 2)), '{"duplicates": [1]}'])
    await night.keep(sample_memory("Grüner Tee kommt aus dem Kupferkessel."))
    await night.tell(*TALK)
    done = await night.dreaming.work(SESSION)
    assert await night.texts() == ["Grüner Tee kommt aus dem Kupferkessel.", TRAY]
    assert {reason.value: count for reason, count in done.plans[0].refused.items()} == {"known already": 1}
    assert KETTLE in night.asked.requests[1].prompt


@pytest.mark.parametrize("second", [ModelUnavailable("away"), "what?", '{"duplicates": [7]}'])
async def test_a_second_look_that_fails_drops_nothing(second: str | ModelError) -> None:
    night = Night([answer(fact(KETTLE, 1)), second])
    await night.keep(sample_memory("The gate is green."))
    await night.tell(*TALK)
    await night.dreaming.work(SESSION)
    assert KETTLE in await night.texts()
