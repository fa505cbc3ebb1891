"""Cutting and mending the list of messages of a request, in the three shapes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from backstory.domain.request_history import (
    RequestRole,
    Shape,
    missing_result,
    prune,
    repair,
    request_roles,
    request_tokens,
    rough_tokens,
    turn_start,
)

LETTERS = {
    "u": RequestRole.USER,
    "n": RequestRole.UNTYPED,
    "m": RequestRole.MIXED,
    "t": RequestRole.TOOL,
    "a": RequestRole.ASSISTANT,
    "s": RequestRole.SYSTEM,
}


def roles(letters: str) -> list[RequestRole]:
    return [LETTERS[letter] for letter in letters]


@pytest.mark.parametrize(("letters", "start"), [("uaua", 2), ("uama", 0), ("nat", 0), ("aa", None), ("", None)])
def test_a_turn_begins_with_a_user_message_that_answers_no_call(letters: str, start: int | None) -> None:
    assert turn_start(roles(letters)) == start


# OpenCode


def host(role: str, *parts: dict[str, Any], name: str = "") -> dict[str, Any]:
    return {"info": {"id": name, "role": role}, "parts": list(parts)}


def words(text: str, **rest: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **rest}


def used(tool: str, status: str = "completed", **state: Any) -> dict[str, Any]:
    return {"type": "tool", "tool": tool, "callID": f"call_{tool}", "state": {"status": status, **state}}


def test_the_last_messages_are_kept_back_to_a_user_message() -> None:
    history = [
        host("user", words("1")),
        host("assistant", used("ls")),
        host("user", words("2")),
        host("assistant", words("3")),
    ]
    history += [host("user", words("4"))]
    assert prune(history, Shape.OPENCODE, keep_last_messages=2) == history[2:]
    assert prune(history, Shape.OPENCODE, keep_last_messages=1) == history[4:]
    assert prune(history, Shape.OPENCODE, keep_last_messages=0) == history[4:]
    assert prune(history, Shape.OPENCODE, keep_last_messages=50) == history
    assert prune(history, Shape.OPENCODE) == history


def test_a_token_limit_is_not_exceeded_by_what_came_before_the_current_turn() -> None:
    history = [
        message for n in range(6) for message in (host("user", words(f"q{n}")), host("assistant", words("x" * 400)))
    ]
    kept = prune(history, Shape.OPENCODE, max_tokens=350)
    assert kept == history[6:]
    assert request_tokens(kept, Shape.OPENCODE) <= 350 < request_tokens(history[4:], Shape.OPENCODE)
    assert prune(history, Shape.OPENCODE, max_tokens=1) == history[10:]


def test_the_current_turn_stays_whole_whatever_it_costs() -> None:
    turn = [host("user", words("go")), *(host("assistant", used("bash", output="y" * 9000)) for _ in range(5))]
    assert prune(turn, Shape.OPENCODE, max_tokens=10, keep_last_messages=1) == turn
    continued = [*turn, host("user", words("Continue", synthetic=True)), host("assistant", words("ok"))]
    assert prune([host("user", words("old")), *continued], Shape.OPENCODE, max_tokens=10) == continued


def test_calls_of_dropped_tools_go_and_so_does_a_message_that_they_leave_empty() -> None:
    history = [
        host("user", words("a")),
        host("assistant", {"type": "step-start"}, used("todowrite"), {"type": "patch", "hash": "1"}),
        host("assistant", used("todowrite"), words("b")),
        host("user", words("c")),
        host("assistant", used("todowrite")),
    ]
    kept = prune(history, Shape.OPENCODE, drop_tools=["todowrite"])
    assert kept == [history[0], host("assistant", words("b")), *history[3:]]


def test_unfinished_parts_are_left_to_the_host() -> None:
    history = [host("user", words("a")), host("assistant", used("ls", "running"), used("cat", "pending"))]
    assert repair(history, Shape.OPENCODE) == history


def test_a_picture_costs_the_same_whatever_its_size() -> None:
    small, large = (
        {"type": "file", "mime": "image/png", "url": f"data:image/png;base64,{'A' * n}"} for n in (10, 2_000_000)
    )
    costs = [request_tokens([host("user", shot)], Shape.OPENCODE) for shot in (small, large)]
    assert costs[0] == costs[1] < 4000


# Anthropic


def says(role: str, *content: Any) -> dict[str, Any]:
    return {"role": role, "content": list(content)}


def call(name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"id_{name}", "name": name, "input": given}


def result(name: str, text: str = "done") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"id_{name}", "content": text}


def test_a_call_without_a_result_gets_one_that_says_what_was_called() -> None:
    history = [
        says("user", words("q")),
        says("assistant", call("Bash", command="make docs")),
        says("user", words("there?")),
    ]
    mended = repair(history, Shape.ANTHROPIC)
    assert [message["role"] for message in mended] == ["user", "assistant", "user"]
    stub, said = mended[2]["content"]
    assert said == words("there?")
    assert stub["tool_use_id"] == "id_Bash"
    assert stub["is_error"] is True
    assert '{"command":"make docs"}' in stub["content"]
    assert repair(mended, Shape.ANTHROPIC) == mended


def test_the_words_of_a_stub_are_the_callers_if_it_wants() -> None:
    history = [says("user", words("q")), says("assistant", call("Bash", command="x"))]
    mended = repair(history, Shape.ANTHROPIC, stub=lambda name, given: f"{name} gone")
    assert mended[2]["content"][0]["content"] == "Bash gone"
    assert missing_result("Bash", "y" * 9000).count("y") < 500


def test_a_result_that_stands_further_back_is_moved_to_its_call() -> None:
    history = [
        says("user", words("q")),
        says("assistant", call("A"), call("B")),
        says("user", result("B")),
        says("assistant", words("hm")),
        says("user", words("next"), result("A", "late")),
    ]
    mended = repair(history, Shape.ANTHROPIC)
    assert mended[2]["content"] == [result("B"), result("A", "late")]
    assert mended[4]["content"] == [words("next")]


def test_results_stand_before_the_text_of_their_message() -> None:
    history = [says("user", words("q")), says("assistant", call("A")), says("user", words("wait"), result("A"))]
    assert repair(history, Shape.ANTHROPIC)[2]["content"] == [result("A"), words("wait")]


def test_results_without_a_call_or_told_twice_are_dropped() -> None:
    history = [
        says("user", result("X")),
        says("assistant", call("A")),
        says("user", result("A", "first"), result("A", "again"), result("Y"), {"type": "tool_result", "content": "?"}),
    ]
    mended = repair(history, Shape.ANTHROPIC)
    assert mended[0]["role"] == "user"
    assert mended[1:] == [history[1], says("user", result("A", "first"))]


def test_neighbours_of_one_role_become_one_message_and_a_user_begins() -> None:
    history = [says("assistant", words("a")), {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    mended = repair(history, Shape.ANTHROPIC)
    assert [message["role"] for message in mended] == ["user", "assistant", "user"]
    assert mended[1]["content"] == [words("a"), words("b")]


def test_signed_thinking_is_the_same_object_afterwards() -> None:
    thinking = {"type": "thinking", "thinking": " hm \n", "signature": "sig=="}
    history = [says("user", words("q")), says("assistant", thinking, call("A")), says("assistant", words("b"))]
    assert repair(history, Shape.ANTHROPIC)[1]["content"][0] is thinking


def test_a_cut_keeps_calls_with_results_that_share_a_message_with_typed_text() -> None:
    turn = [says("user", words("old")), says("assistant", call("A")), says("user", result("A"), words("newest"))]
    history = [says("user", words("oldest")), says("assistant", words("x")), *turn]
    assert prune(history, Shape.ANTHROPIC, keep_last_messages=1) == turn


def test_dropping_a_tool_drops_its_results_and_keeps_roles_alternating() -> None:
    history = [
        says("user", words("1")),
        says("assistant", call("Todo")),
        says("user", result("Todo")),
        says("assistant", words("2")),
        says("user", words("3")),
    ]
    assert prune(history, Shape.ANTHROPIC, drop_tools={"Todo"}) == [history[0], history[3], history[4]]


def test_results_and_pictures_in_them_are_counted() -> None:
    picture = {"type": "image", "source": {"data": "A" * 10_000}}
    history = [says("user", {"type": "tool_result", "tool_use_id": "x", "content": [words("a" * 400), picture]})]
    assert 1700 <= request_tokens(history, Shape.ANTHROPIC) <= 1710


# OpenAI


def asks(*names: str, content: Any = None) -> dict[str, Any]:
    calls = [
        {"id": f"id_{name}", "type": "function", "function": {"name": name, "arguments": '{"a":1}'}} for name in names
    ]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def gave(name: str, content: str = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"id_{name}", "content": content}


def line(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def test_calls_are_answered_right_behind_their_message() -> None:
    history = [
        line("user", "q"),
        asks("a", "b", "c"),
        gave("b"),
        line("user", "hurry"),
        gave("a"),
        gave("zz"),
        gave("b"),
    ]
    mended = repair(history, Shape.OPENAI)
    assert mended[:4] == [history[0], history[1], gave("b"), gave("a")]
    assert mended[4]["tool_call_id"] == "id_c"
    assert 'c {"a":1}' in mended[4]["content"]
    assert mended[5:] == [line("user", "hurry")]
    assert repair(mended, Shape.OPENAI) == mended


def test_system_messages_are_never_cut() -> None:
    history = [
        line("system", "s"),
        line("user", "1"),
        line("developer", "d"),
        line("assistant", "2"),
        line("user", "3"),
    ]
    assert prune(history, Shape.OPENAI, keep_last_messages=1) == [history[0], history[2], history[4]]
    assert prune(history, Shape.OPENAI, max_tokens=1) == [history[0], history[2], history[4]]


def test_an_assistant_message_loses_its_dropped_calls_only() -> None:
    history = [
        line("user", "1"),
        asks("todo", "ls"),
        gave("todo"),
        gave("ls"),
        asks("todo"),
        gave("todo"),
        line("user", "2"),
    ]
    kept = prune(history, Shape.OPENAI, drop_tools={"todo"})
    assert kept == [history[0], asks("ls"), gave("ls"), history[6]]


def test_roles_are_read_in_every_shape() -> None:
    assert request_roles(
        [line("system", ""), line("user", "x"), line("user", [{"type": "image_url"}])], Shape.OPENAI
    ) == roles("sun")
    assert request_roles([asks("a"), gave("a"), line("developer", "x")], Shape.OPENAI) == roles("ats")
    assert request_roles([says("user", result("a")), says("user", result("a"), words("x"))], Shape.ANTHROPIC) == roles(
        "tm"
    )
    assert request_roles([host("user", words("x", ignored=True)), host("system")], Shape.OPENCODE) == roles("ns")


HOSTILE: list[Any] = [
    *(
        None,
        3,
        "text",
        [],
        {},
        {"role": None},
        {"role": ["user"], "content": {}},
        {"role": "user", "content": {"a": 1}},
    ),
    *({"role": "user"}, {"role": "assistant", "content": [None, 1, {"type": "tool_use", "id": 4}, {"type": []}]}),
    *({"role": "user", "content": [{"type": "tool_result", "tool_use_id": []}, {"type": "text", "text": 9}]},),
    *({"role": "assistant", "tool_calls": [None, {"id": {}}, {"id": "k", "function": 5}]}, {"role": "tool"}),
    *(
        {"info": None, "parts": 4},
        {"info": {"role": "user"}, "parts": [None, {"type": ["x"]}, {"type": "tool", "tool": {}}]},
    ),
    {"role": "user", "content": "typed"},
    {"info": {"role": "user"}, "parts": [{"type": "text", "text": "typed"}]},
]


@pytest.mark.parametrize("shape", list(Shape))
def test_lists_that_are_no_messages_are_no_error(shape: Shape) -> None:
    before = copy.deepcopy(HOSTILE)
    for history in ([], HOSTILE, HOSTILE[::-1], HOSTILE * 3):
        once = prune(history, shape, keep_last_messages=2, max_tokens=10, drop_tools={"x"})
        assert prune(once, shape, keep_last_messages=2, max_tokens=10, drop_tools={"x"}) == once
        assert repair(repair(history, shape), shape) == repair(history, shape)
    assert before == HOSTILE


def test_the_estimate_is_four_characters_a_token() -> None:
    assert [rough_tokens(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]
