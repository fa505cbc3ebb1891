"""Recall with a language model that judges the best matches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backstory.domain.memory import Sensitivity
from backstory.domain.ranking import RankingPolicy
from backstory.domain.relevance import UNASKED, Relevance
from backstory.errors import ModelError, ModelUnavailable
from backstory.services.query import Query, Recalled
from backstory.services.recall import Recall
from backstory.services.reranking import Reranker
from backstory.testing.text_model import ScriptedTextModel
from tests.unit.services.conftest import MODEL, PERSON

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

FIRST, SECOND, OTHER = "Deploys go through staging first.", "Deploys are frozen on Fridays.", "Bread is at five."


@pytest.fixture
def told(shop: Shop) -> Shop:
    for content in (FIRST, SECOND, OTHER):
        shop.say(content)
    return shop


def ask(shop: Shop, answer: str | ModelError, **fields: Any) -> Recalled:  # Any: the fields of Query
    reranker = Reranker(ScriptedTextModel([answer]), timeout_s=2.0)
    recall = Recall(
        shop.backend, None, clock=shop.clock, policy=RankingPolicy(), no_embedder="words will do", reranker=reranker
    )
    query: dict[str, Any] = {"text": "When do deploys go out, and how?", "viewer": MODEL, "lexical_only": True}
    return shop.do(recall.recall(Query(**(query | fields))))


def contents(recalled: Recalled) -> list[str]:
    return [result.memory.content for result in recalled.results]


@pytest.mark.parametrize("limit", [1, 10])
def test_what_the_model_chose_comes_first_and_what_else_passed_the_gate_follows(told: Shop, limit: int) -> None:
    by_the_gate = contents(ask(told, ModelUnavailable("off")))
    assert sorted(by_the_gate) == sorted([FIRST, SECOND])
    assert contents(ask(told, '{"order": [2]}', limit=limit)) == by_the_gate[::-1][:limit]


def test_unasked_only_what_the_model_chose_is_offered(told: Shop) -> None:
    offered = ask(told, '{"order": [2]}', threshold=UNASKED[Relevance.KEEN], offerable=True)
    assert len(offered.results) == 1


def test_the_model_may_keep_silent_and_says_so(told: Shop) -> None:
    recalled = ask(told, '{"order": []}')
    assert recalled.results == ()
    assert recalled.silent_because == "scripted:1 finds no answer among the 2 best matches"


@pytest.mark.parametrize("answer", ["junk", ModelUnavailable("off")])
def test_the_gate_decides_when_the_model_fails(told: Shop, answer: str | ModelError) -> None:
    recalled = ask(told, answer)
    assert len(recalled.results) == 2
    assert recalled.skipped[-1].part == "rerank"


def test_a_person_still_finds_what_no_model_may_see(told: Shop) -> None:
    told.say("Deploys need the key in the blue box.", viewer=PERSON, sensitivity=Sensitivity.LOCAL_ONLY)
    assert contents(ask(told, '{"order": []}', viewer=PERSON)) == ["Deploys need the key in the blue box."]
    assert contents(ask(told, '{"order": []}')) == []


def test_time_that_is_gone_is_not_waited_for_again(told: Shop) -> None:
    recalled = ask(told, '{"order": []}', embed_within_s=0.01)
    assert recalled.skipped[-1].reason == "no time was left to ask the model"
