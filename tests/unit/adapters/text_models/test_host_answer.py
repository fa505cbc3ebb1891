"""What a host tells of a question, and what is believed of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from backstory.adapters.text_models.host_answer import MOST_REQUESTS, HostAnswer, Trouble, read_host_answer
from backstory.domain.answers import Finish

TOLD: dict[str, Any] = {
    "text": "Green.",
    "structured": None,
    "model": "anthropic/haiku",
    "finish": "stop",
    "tokens": {"input": 12, "output": 3},
    "requests": 1,
}


def _read(**told: object) -> HostAnswer:
    answer = read_host_answer({**TOLD, **told})
    assert answer is not None
    return answer


def test_an_answer_is_read_with_all_that_was_counted() -> None:
    assert _read() == HostAnswer(
        text="Green.", model="anthropic/haiku", finish=Finish.STOP, input_tokens=12, output_tokens=3, requests=1
    )
    assert _read().has_text


def test_an_object_that_was_asked_for_counts_as_done_whatever_else_is_told() -> None:
    answer = _read(structured={"order": [1]}, finish="tool-calls", error={"name": "StructuredOutputError"})
    assert (answer.structured, answer.finish, answer.trouble) == ({"order": [1]}, Finish.STOP, None)


@pytest.mark.parametrize(
    ("finish", "read"),
    [
        ("stop", Finish.STOP),
        ("length", Finish.LENGTH),
        ("content-filter", Finish.FILTERED),
        ("tool-calls", Finish.TOOL_CALL),
        ("other", Finish.UNKNOWN),
        (None, Finish.UNKNOWN),
        (["stop"], Finish.UNKNOWN),
    ],
)
def test_how_it_ended_is_told_in_our_words(finish: object, read: Finish) -> None:
    assert _read(finish=finish).finish is read


@pytest.mark.parametrize(
    ("error", "trouble", "told"),
    [
        ({"name": "timeout"}, Trouble.TIMEOUT, "timeout"),
        ({"name": "MessageAbortedError"}, Trouble.ABORTED, "MessageAbortedError"),
        ({"name": "StructuredOutputError"}, Trouble.UNSTRUCTURED, "StructuredOutputError"),
        ({"name": "ContextOverflowError"}, Trouble.TOO_LONG, "ContextOverflowError"),
        ({"name": "APIError", "status": 400}, Trouble.REFUSED, "APIError 400"),
        ({"name": "APIError", "status": 503}, Trouble.FAILED, "APIError 503"),
        ({"name": "APIError"}, Trouble.FAILED, "APIError"),
        ({"name": "ProviderAuthError"}, Trouble.FAILED, "ProviderAuthError"),
        ({}, Trouble.FAILED, ""),
        ({"name": "a\nb", "status": "x"}, Trouble.FAILED, ""),
        ({"name": "x" * 500}, Trouble.FAILED, ""),
    ],
)
def test_troubles_are_told_apart_and_named_only_by_what_may_be_shown(
    error: object, trouble: Trouble, told: str
) -> None:
    answer = _read(text="", error=error)
    assert (answer.trouble, answer.told, answer.has_text) == (trouble, told, False)


@pytest.mark.parametrize(
    ("name", "finish"), [("MessageOutputLengthError", Finish.LENGTH), ("ContentFilterError", Finish.FILTERED)]
)
def test_an_answer_cut_off_is_an_answer(name: str, finish: Finish) -> None:
    answer = _read(text="half of", error={"name": name})
    assert (answer.has_text, answer.text, answer.finish) == (True, "half of", finish)


def test_words_in_place_of_the_form_are_an_answer_and_no_words_are_none() -> None:
    assert _read(error={"name": "StructuredOutputError"}).has_text
    assert not _read(text=" \n", error={"name": "StructuredOutputError"}).has_text
    assert not _read(text="half of", error={"name": "APIError", "status": 500}).has_text


@pytest.mark.parametrize(
    ("tokens", "read"),
    [
        ({"input": 0, "output": 0}, (None, None)),
        ({"input": 5, "output": 0}, (5, 0)),
        ({"input": 5.0, "output": 2.5}, (5, None)),
        ({"input": -1, "output": True}, (None, None)),
        ({"input": float("inf"), "output": float("nan")}, (None, None)),
        (None, (None, None)),
        ([1, 2], (None, None)),
        ({}, (None, None)),
    ],
)
def test_tokens_are_believed_only_when_they_can_be_counted(tokens: object, read: tuple[object, object]) -> None:
    answer = _read(tokens=tokens)
    assert (answer.input_tokens, answer.output_tokens) == read


@pytest.mark.parametrize(
    ("requests", "unanswered", "read"),
    [(3, True, (3, 1)), (0, True, (0, 0)), (None, None, (1, 0)), (10**12, 7, (MOST_REQUESTS, 0)), ("x", True, (1, 1))],
)
def test_requests_are_counted_and_one_of_them_may_be_under_way(
    requests: object, unanswered: object, read: tuple[int, int]
) -> None:
    answer = _read(requests=requests, unanswered=unanswered)
    assert (answer.requests, answer.unanswered) == read


@pytest.mark.parametrize("said", ["null", "[]", '"text"', "5", '{"error": "words"}', '{"error": [1]}'])
def test_what_is_no_answer_is_read_as_none(said: str) -> None:
    assert read_host_answer(json.loads(said)) is None


def test_an_empty_object_is_an_empty_answer() -> None:
    assert read_host_answer({}) == HostAnswer()
