"""What stands in an answer instead of what was asked for."""

from __future__ import annotations

import pytest

from backstory.domain.answers import Finish, Reason, Unusable, json_values, own_words, without_fence


def reason(raw: str | None, finish: Finish = Finish.STOP) -> Reason:
    read = json_values(raw, finish=finish)
    assert isinstance(read, Unusable)
    return read.reason


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("  plain  ", "plain"),
        ("<think>a</think> said", "said"),
        ("<think>a <think>b</think> c</think>said", "said"),
        ("<Thinking>x</Thinking>\n<reasoning>y</reasoning>said", "said"),
        ("swallowed its opening tag</think>\nsaid", "said"),
        ("Right. <think>x</think> said", "Right.  said"),
        ('{"a": "<think>x</think>"}', '{"a": "<think>x</think>"}'),
        ('["models end with </think>"]', '["models end with </think>"]'),
    ],
)
def test_thoughts_before_the_answer_are_taken_off_and_tags_in_it_stay(raw: str, words: str) -> None:
    assert own_words(raw, finish=Finish.STOP) == words


@pytest.mark.parametrize(
    ("raw", "finish", "expected"),
    [
        (None, Finish.STOP, Reason.EMPTY),
        ("\ufeff \n", Finish.STOP, Reason.EMPTY),
        ("", Finish.FILTERED, Reason.REFUSAL),
        (None, Finish.TOOL_CALL, Reason.TOOL_CALL),
        ("<think>I could say [1]", Finish.LENGTH, Reason.NO_TEXT),
        ("<think>all of it</think>", Finish.STOP, Reason.NO_TEXT),
        ("Sure, I'm really sorry, no.", Finish.STOP, Reason.REFUSAL),
        ("I cannot in good faith help with that.", Finish.STOP, Reason.REFUSAL),
        ("Please paste the conversation.", Finish.STOP, Reason.REFUSAL),
        ("Lo siento, no puedo.", Finish.STOP, Reason.REFUSAL),
        ("Error: 503 Service Unavailable", Finish.STOP, Reason.PROVIDER_NOTICE),
        ("Weekly limit reached, resets Monday", Finish.STOP, Reason.PROVIDER_NOTICE),
        ("The model is currently overloaded.", Finish.STOP, Reason.PROVIDER_NOTICE),
        ('{"error": {"message": "busy"}, "status": 503}', Finish.STOP, Reason.PROVIDER_NOTICE),
        ("<html><body>[1]</body></html", Finish.STOP, Reason.PROVIDER_NOTICE),
        ("I found two things worth keeping.", Finish.STOP, Reason.NOT_JSON),
        ("true", Finish.STOP, Reason.NOT_JSON),
        ('{"a": [1, 2', Finish.STOP, Reason.TRUNCATED),
        ('{"a": ["x"]', Finish.LENGTH, Reason.TRUNCATED),
        ('{"a": ["x"]', Finish.UNKNOWN, Reason.TRUNCATED),
        ('For example {"a": 1}. So: {"a": [1, "tw', Finish.STOP, Reason.TRUNCATED),
    ],
)
def test_the_reason_why_nothing_can_be_used_is_named(raw: str | None, finish: Finish, expected: Reason) -> None:
    assert reason(raw, finish) is expected


@pytest.mark.parametrize("raw", ["Your account balance is used up.", '{"error": {"code": "insufficient_quota"}}'])
def test_asking_again_does_not_help_an_account_without_money(raw: str) -> None:
    read = json_values(raw, finish=Finish.STOP)
    assert isinstance(read, Unusable)
    assert not read.can_retry


def test_brackets_that_a_model_forgot_are_added_when_it_says_that_it_was_done() -> None:
    assert json_values('{"a": ["x"]', finish=Finish.STOP) == [{"a": ["x"]}]


def test_json_inside_a_json_string_is_read() -> None:
    assert json_values('"{\\"a\\": [1]}"', finish=Finish.STOP) == [{"a": [1]}]


def test_a_memory_that_speaks_of_errors_is_no_error_of_the_provider() -> None:
    assert json_values('{"error": "", "facts": []}', finish=Finish.STOP) == [{"error": "", "facts": []}]
    assert json_values('{"error": "x", "facts": [1]}', finish=Finish.STOP) == [{"error": "x", "facts": [1]}]


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("```\na\n```", "a"),
        ("```python\na\nb", "a\nb"),
        ("~~~~\na\n~~~~\n", "a"),
        ("before ```\na\n```", "before ```\na\n```"),
        ("```one``` line", "```one``` line"),
    ],
)
def test_a_fence_around_everything_is_taken_off(text: str, inside: str) -> None:
    assert without_fence(text) == inside
