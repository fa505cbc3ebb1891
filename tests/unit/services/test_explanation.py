"""Why a memory scores as it does, and what else was near a prompt."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.memory import Sensitivity, Visibility
from backstory.domain.provenance import Origin
from backstory.domain.ranking import RankingPolicy
from backstory.domain.relevance import Relevance
from backstory.domain.scope import Audience
from backstory.domain.score_parts import evidence
from backstory.errors import NotFound
from backstory.services.explanation import Appraisal, Explanation
from backstory.services.inspection import Story
from backstory.services.recall import Recall
from backstory.testing.fakes import HashEmbedder

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

SESSION = SessionId("ses-1")
FACT = "The invoice service runs on port 8443"
PROMPT = "on which port does the invoice service run?"


def explanation(shop: Shop) -> Explanation:
    recall = Recall(shop.backend, shop.embedder, clock=shop.clock, policy=RankingPolicy(), no_embedder="none is set")
    return Explanation(recall, shop.inspection, shop.backend.conversations, relevance=Relevance.KEEN)


def ask(shop: Shop, prompt: str, name: str = "m1") -> None:
    """A prompt is typed, answered with a block, and kept."""
    at = shop.clock.now()
    told = Session(id=SESSION, project=shop.model.project, host="x", directory="/", created_at=at, updated_at=at)
    part = Part(id=PartId(name), kind="text", text=prompt)
    message = Message(id=MessageId(name), session=SESSION, role=Role.USER, created_at=at, parts=(part,))
    shop.do(shop.backend.conversations.put_session(told))
    shop.do(shop.backend.conversations.put_messages([message]))
    context = shop.do(shop.blocks.for_prompt(prompt, shop.model))
    shop.do(shop.blocks.freeze(context, notes=(), message=message.id, session=SESSION))


def story(shop: Shop, n: int = 1) -> Story:
    return shop.do(shop.inspection.why(f"#{n}", shop.person))


def appraised(shop: Shop, n: int = 1, query: str | None = None) -> Appraisal:
    told = shop.do(explanation(shop).appraise(story(shop, n), shop.person, query=query))
    assert told is not None
    return told


@pytest.mark.parametrize("by_meaning", [False, True])
def test_a_score_is_explained_at_its_last_showing_and_now(shop: Shop, by_meaning: bool) -> None:
    shop.embedder = HashEmbedder() if by_meaning else None
    shop.say(FACT)
    if by_meaning:
        shop.do(shop.maintenance.embed_missing())
    ask(shop, "invoice service")
    shop.clock.moment += timedelta(days=45)
    ask(shop, PROMPT, "m2")
    asked_at = shop.clock.now()
    last = story(shop).showings[0]
    told = appraised(shop)
    assert (told.prompt, told.asked_at, told.position, told.considered) == (PROMPT, asked_at, 1, 1)
    assert told.score is not None
    assert last.score == round(told.score.total, 4)
    assert dict(last.parts) == {part.name: round(part.value, 3) for part in told.parts}
    assert sum(part.value for part in told.parts) == pytest.approx(evidence(told.score), abs=0.03)
    shop.clock.moment += timedelta(days=450)
    later = {part.name: part.value for part in appraised(shop).parts}
    assert later.get("freshness", 0.0) < dict(last.parts)["freshness"]
    assert "sure, needed" in told.told


def test_any_text_can_be_tried_against_a_memory(shop: Shop) -> None:
    shop.say(FACT)
    assert shop.do(explanation(shop).appraise(story(shop), shop.person)) is None
    told = appraised(shop, query="invoice service port 8443")
    assert (told.asked_at, told.position) == (None, 1)
    away = appraised(shop, query="zebra")
    assert (away.score, away.position, away.parts) == (None, None, ())
    assert away.told == "not among the 0 that share a word or a meaning with this"


def test_a_prompt_that_is_not_kept_cannot_be_asked_again(shop: Shop) -> None:
    shop.say(FACT)
    context = shop.do(shop.blocks.for_prompt(PROMPT, shop.model))
    shop.do(shop.blocks.freeze(context, notes=(), message=MessageId("m1"), session=SESSION))
    assert shop.do(explanation(shop).appraise(story(shop), shop.person)) is None
    weighing = shop.do(explanation(shop).weighing(shop.person))
    assert (weighing.prompt, weighing.candidates) == (None, ())
    assert [item.n for item in weighing.block.shown] == [1]


def test_a_twin_is_named_that_stands_for_a_memory(shop: Shop) -> None:
    shop.say(FACT)
    shop.say(FACT + "!")
    told = {appraised(shop, n, query=PROMPT).told for n in (1, 2)}
    assert any(text.endswith("says the same, and stands for it") for text in told)


def test_what_was_near_a_prompt_is_told_with_the_reason_it_was_kept_back(shop: Shop) -> None:
    shop.say(FACT)
    shop.say("the invoice service port in the other office is 9000", origin=Origin.WEB)
    shop.say("the invoice service port of the spare is 9001", sensitivity=Sensitivity.PRIVATE)
    shop.say("the invoice service port at home is 9002", sensitivity=Sensitivity.LOCAL_ONLY)
    shop.say("the harbour has one port")
    ask(shop, PROMPT)
    weighing = shop.do(explanation(shop).weighing(shop.person))
    because = {item.memory.n: (item.shown, item.because) for item in weighing.candidates}
    assert weighing.prompt == PROMPT
    assert because[1][0] is True
    assert because[2] == (False, "from web: found by a search, never offered unasked")
    assert because[3] == (False, "private: found by a search, never offered unasked")
    assert because[4] == (False, "local-only: it reaches no model")
    assert because[5][1].startswith(("too weak: ", "far behind the best"))
    hidden = shop.do(explanation(shop).weighing(shop.model))
    assert 4 not in {item.memory.n for item in hidden.candidates}


def test_what_was_learned_since_would_be_shown_now(shop: Shop) -> None:
    shop.say("the kitchen is on the second floor")
    ask(shop, PROMPT)
    shop.say(FACT)
    weighing = shop.do(explanation(shop).weighing(shop.person, message=MessageId("m1")))
    (only,) = weighing.candidates
    assert (only.memory.n, only.shown) == (2, False)
    assert only.because.startswith("would be shown by what is known now")
    assert weighing.block.silent_because == "no memory shares a word or a meaning with this"


def test_there_may_be_nothing_to_explain(shop: Shop) -> None:
    for message in (None, MessageId("m7")):
        with pytest.raises(NotFound):
            shop.do(explanation(shop).weighing(shop.person, message=message))
    ask(shop, PROMPT)
    with pytest.raises(NotFound):
        shop.do(explanation(shop).weighing(replace(shop.elsewhere), message=MessageId("m1")))


def test_a_forgotten_memory_has_no_score_and_the_reason_is_told(shop: Shop) -> None:
    shop.say(FACT)
    ask(shop, PROMPT)
    shop.forget(1)
    assert appraised(shop).told == "it is deleted, so no search finds it"


def test_what_is_of_another_session_was_no_candidate(shop: Shop) -> None:
    elsewhere = replace(shop.person, session=SessionId("ses-2"))
    shop.say("the invoice service port is 9003 here", viewer=elsewhere, visibility=Visibility.SESSION)
    ask(shop, PROMPT)
    (only,) = shop.do(explanation(shop).weighing(shop.person)).candidates
    assert (only.shown, only.because) == (False, "of another session")


def test_a_prompt_is_weighed_in_the_project_it_was_typed_in(shop: Shop) -> None:
    shop.say(FACT)
    ask(shop, PROMPT)
    away = replace(shop.elsewhere, audience=Audience.PERSON)
    weighing = shop.do(explanation(shop).weighing(away, message=MessageId("m1")))
    assert [(item.memory.n, item.shown) for item in weighing.candidates] == [(1, True)]
