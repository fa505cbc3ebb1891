"""The reranker over a model that says what it is told to."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from backstory.domain.answers import Finish
from backstory.domain.ids import ProjectId, SessionId
from backstory.domain.memory import Memory, Sensitivity, Visibility
from backstory.domain.ranking import Score
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.drive import drive
from backstory.errors import ModelError, ModelOutputInvalid, ModelUnavailable
from backstory.services.query import Result, Skipped
from backstory.services.reranking import MAX_CACHED, Reranked, Reranker
from backstory.testing.fakes import ORCHARD, sample_memory, ulid
from backstory.testing.text_model import ScriptedTextModel

HERE = Viewer(project=ORCHARD, session=SessionId("ses-1"))
ELSEWHERE = ProjectId(ulid(9, series=2))
NOTES = ("Tea is at four.", "Bread is at five.", "Soup is at six.")
QUESTION = "When is the soup?"


def found(content: str, **fields: Any) -> Result:  # Any: the fields of Memory
    score = Score(total=0.5, similarity=None, lexical=0.5, coverage=0.5, ties=0.0)
    return Result(memory=sample_memory(content, **fields), score=score, reasons=("word: soup",))


def results() -> list[Result]:
    return [found(note) for note in NOTES]


def ask(
    model: ScriptedTextModel,
    among: Sequence[Result],
    *,
    question: str = QUESTION,
    viewer: Viewer = HERE,
    **options: Any,
) -> Reranked | Skipped | None:
    return drive(Reranker(model, timeout_s=4.0).rerank(question, among, viewer=viewer, **options))


def contents(some: Sequence[Result]) -> list[str]:
    return [result.memory.content for result in some]


def test_the_order_of_the_model_is_used_and_the_rest_follows_in_its_own() -> None:
    verdict = ask(ScriptedTextModel(['{"order": [3, 1]}']), results())
    assert isinstance(verdict, Reranked)
    assert contents(verdict.chosen) == [NOTES[2], NOTES[0]]
    assert contents(verdict.rest) == [NOTES[1]]
    assert verdict.behind == verdict.rest
    assert verdict.silent_because is None


def test_a_result_says_who_put_it_where() -> None:
    verdict = ask(ScriptedTextModel(['{"order": [2]}'], name="openai:small"), results())
    assert isinstance(verdict, Reranked)
    assert verdict.chosen[0].reasons == ("word: soup", "put in place 1 by openai:small")
    assert verdict.rest[0].reasons == ("word: soup",)


def test_the_model_may_say_that_none_helps() -> None:
    verdict = ask(ScriptedTextModel(['{"order": []}'], name="openai:small"), results())
    assert isinstance(verdict, Reranked)
    assert verdict.chosen == ()
    assert contents(verdict.rest) == list(NOTES)
    assert verdict.behind == ()
    assert verdict.silent_because == "openai:small finds no answer among the 3 best matches"


def test_a_single_result_is_judged_too() -> None:
    assert isinstance(ask(ScriptedTextModel(["none"]), results()[:1]), Reranked)


@pytest.mark.parametrize(
    "answer", ["", "garbage", '{"order": [7]}', "I'm sorry, I can't help with that.", '{"order": [1']
)
def test_an_answer_that_cannot_be_read_decides_nothing(answer: str) -> None:
    verdict = ask(ScriptedTextModel([answer]), results())
    assert isinstance(verdict, Skipped)
    assert "cannot be used" in verdict.reason


@pytest.mark.parametrize("error", [ModelUnavailable("too slow"), ModelOutputInvalid("junk")])
def test_a_model_that_fails_decides_nothing_and_the_log_says_so(
    error: ModelError, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        verdict = ask(ScriptedTextModel([error]), results())
    assert verdict == Skipped(part="rerank", reason=str(error))
    assert f"event=rerank_skipped session=ses-1 reason={error}" in caplog.text
    assert "soup" not in caplog.text


def test_the_model_gets_the_question_the_notes_and_the_time_there_is() -> None:
    model = ScriptedTextModel(["none"])
    ask(model, results(), within_s=0.5)
    (request,) = model.requests
    assert all(f'{number}. "{note}"' in request.prompt for number, note in enumerate(NOTES, 1))
    assert f'"{QUESTION}"' in request.prompt
    assert (request.feature, request.deadline_s) == ("rerank", 0.5)
    ask(model, results(), within_s=60.0)
    assert model.requests[-1].deadline_s == 4.0


def test_without_time_the_model_is_not_asked() -> None:
    model = ScriptedTextModel(["none"])
    assert isinstance(ask(model, results(), within_s=0.01), Skipped)
    assert model.requests == []


PERSON_EVERYWHERE = replace(HERE, audience=Audience.PERSON, all_projects=True)


@pytest.mark.parametrize(
    "fields",
    [
        {"sensitivity": Sensitivity.LOCAL_ONLY},
        {"sensitivity": Sensitivity.PRIVATE},
        {"sensitivity": Sensitivity.LOCAL_ONLY, "visibility": Visibility.GLOBAL},
        {"project": ELSEWHERE},
        {"project": ELSEWHERE, "visibility": Visibility.SESSION, "session": SessionId("ses-9")},
    ],
)
def test_what_no_model_may_see_is_never_sent_and_not_judged(fields: dict[str, Any]) -> None:
    model = ScriptedTextModel(['{"order": [2, 1]}'])
    held = found("The vault is behind the stove.", **fields)
    among = [held, *results()[:2]]
    verdict = ask(model, among, viewer=PERSON_EVERYWHERE)
    assert "vault" not in model.requests[0].prompt
    assert isinstance(verdict, Reranked)
    assert contents(verdict.chosen) == [NOTES[1], NOTES[0]]
    assert (verdict.rest, verdict.unseen) == ((), (held,))
    assert ask(model, [held], viewer=PERSON_EVERYWHERE) is None


def test_global_memories_and_those_of_this_session_are_sent() -> None:
    model = ScriptedTextModel(["none"])
    among = [
        found("Everywhere.", visibility=Visibility.GLOBAL, project=None),
        found("In this session.", visibility=Visibility.SESSION, session=HERE.session),
    ]
    ask(model, among)
    assert "Everywhere." in model.requests[0].prompt
    assert "In this session." in model.requests[0].prompt


def test_private_text_and_secrets_of_the_question_stay_here() -> None:
    model = ScriptedTextModel(["none"])
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    ask(model, results(), question=f"use {secret} <private>my street</private> for soup")
    assert secret not in model.requests[0].prompt
    assert "my street" not in model.requests[0].prompt
    assert ask(model, results(), question="  ") is None


def test_at_most_thirty_candidates_are_shown() -> None:
    model = ScriptedTextModel(['{"order": [30, 31]}'])
    verdict = ask(model, [found(f"Note {number}.") for number in range(40)])
    assert isinstance(verdict, Reranked)
    assert "Note 29." in model.requests[0].prompt
    assert "Note 30." not in model.requests[0].prompt
    assert (contents(verdict.chosen), len(verdict.rest), len(verdict.unseen)) == (["Note 29."], 29, 10)


class Cached:
    """A reranker that is asked several times; ``count`` is how often its model was."""

    def __init__(self, answers: Sequence[str | ModelError]) -> None:
        self.model = ScriptedTextModel(answers)
        self.reranker = Reranker(self.model, timeout_s=4.0)

    def ask(self, question: str, memories: Sequence[Memory]) -> Reranked | Skipped | None:
        among = [replace(result, memory=memory) for result, memory in zip(results(), memories, strict=False)]
        return drive(self.reranker.rerank(question, among, viewer=HERE))

    @property
    def count(self) -> int:
        return len(self.model.requests)


MEMORIES = [result.memory for result in results()]


@pytest.mark.parametrize("answer", ['{"order": [2]}', '{"order": []}'])
def test_the_same_question_about_the_same_memories_is_asked_once(answer: str) -> None:
    cached = Cached([answer])
    first = cached.ask(QUESTION, MEMORIES)
    assert cached.ask(f" {QUESTION}\n", MEMORIES) == first
    assert cached.count == 1


def test_another_question_a_changed_memory_or_other_memories_are_asked_anew() -> None:
    cached = Cached(['{"order": [1]}'])
    cached.ask(QUESTION, MEMORIES)
    cached.ask("When is tea?", MEMORIES)
    cached.ask(QUESTION, [replace(MEMORIES[0], revision=7), *MEMORIES[1:]])
    cached.ask(QUESTION, MEMORIES[:2])
    assert cached.count == 4


def test_a_failure_is_not_remembered() -> None:
    cached = Cached([ModelUnavailable("busy"), "garbage", '{"order": [2]}'])
    verdicts = [cached.ask(QUESTION, MEMORIES) for _ in range(4)]
    assert [type(verdict) for verdict in verdicts] == [Skipped, Skipped, Reranked, Reranked]
    assert cached.count == 3


def test_the_oldest_answers_are_let_go() -> None:
    cached = Cached(["none"])
    for number in range(MAX_CACHED + 1):
        cached.ask(f"question {number}", MEMORIES)
    cached.ask(f"question {MAX_CACHED}", MEMORIES)
    assert cached.count == MAX_CACHED + 1
    cached.ask("question 0", MEMORIES)
    assert cached.count == MAX_CACHED + 2


def test_a_choice_that_ran_out_of_room_decides_nothing() -> None:
    model = ScriptedTextModel(['{"order": [1, 2]'], finish=Finish.LENGTH)
    assert isinstance(ask(model, results()), Skipped)
