"""A language model over real HTTP that puts what was found in order, or fails to."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.to_thread

from backstory.adapters.text_models.openai import OpenAiTextModel
from backstory.domain.ids import SessionId
from backstory.domain.ranking import Score
from backstory.domain.scope import Viewer
from backstory.services.query import Result, Skipped
from backstory.services.reranking import Reranked, Reranker
from backstory.testing.fakes import ORCHARD, sample_memory
from backstory.testing.scripted_model import ScriptedModel

NOTES = ("Tea is at four.", "Bread is at five.", "Soup is at six.")
RESULTS = [
    Result(
        memory=sample_memory(note),
        score=Score(total=0.5, similarity=None, lexical=0.5, coverage=0.5, ties=0.0),
        reasons=(),
    )
    for note in NOTES
]


def rerank(reranker: Reranker, **options: Any) -> Reranked | Skipped | None:
    viewer = Viewer(project=ORCHARD, session=SessionId("ses-1"))
    return anyio.run(lambda: reranker.rerank("When is the soup?", RESULTS, viewer=viewer, **options))


def test_results_are_put_in_the_order_a_server_answers_and_asked_about_once() -> None:
    with ScriptedModel() as scripted:
        scripted.when(contains="When is the soup?").say('Sure:\n```json\n{"order": [3, 1]}\n```')
        reranker = Reranker(OpenAiTextModel(scripted.url, model="tiny", timeout_s=5.0), timeout_s=4.0)
        verdicts = [rerank(reranker) for _ in range(2)]
        assert len(scripted.requests()) == 1
    assert verdicts[0] == verdicts[1]
    assert isinstance(verdicts[0], Reranked)
    assert [result.memory.content for result in verdicts[0].chosen] == [NOTES[2], NOTES[0]]


def test_the_gate_decides_when_the_server_is_too_slow_or_talks_nonsense() -> None:
    with ScriptedModel() as scripted:
        scripted.when(times=1).say('{"order": [1]}', delay_s=10)
        scripted.when(times=1).say("I would take the third.")
        scripted.when(times=1).fail(401)
        scripted.when().say('{"order": []}')
        reranker = Reranker(OpenAiTextModel(scripted.url, model="tiny", timeout_s=5.0), timeout_s=4.0)
        slow = rerank(reranker, within_s=0.9)
        assert isinstance(slow, Skipped)
        assert "did not answer within 0.9 s" in slow.reason
        assert isinstance(rerank(reranker), Skipped)
        assert isinstance(rerank(reranker), Skipped)
        silent = rerank(reranker)
        assert isinstance(silent, Reranked)
        assert silent.chosen == ()
