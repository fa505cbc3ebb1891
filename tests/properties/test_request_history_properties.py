"""Whatever a history looks like, what is cut or mended of it is one that a model takes."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.domain.request_history import (
    RequestRole,
    Shape,
    prune,
    repair,
    request_roles,
    request_tokens,
    turn_start,
)

UNTIMED = settings(deadline=None, max_examples=60)
WORDS = st.sampled_from(["", " ", "go on", "why?", "x" * 300, "日本語", "<b>"])
LIMITS = st.fixed_dictionaries(
    {
        "keep_last_messages": st.none() | st.integers(0, 9),
        "max_tokens": st.none() | st.integers(0, 400),
        "drop_tools": st.sets(st.sampled_from(["ls", "todo"])),
    }
)
TOOLS = st.sampled_from(["ls", "todo", "bash"])


def opencode_part() -> st.SearchStrategy[dict[str, Any]]:
    flags = st.fixed_dictionaries({"synthetic": st.booleans(), "ignored": st.booleans()})
    state = st.fixed_dictionaries({"status": st.sampled_from(["completed", "error", "running"]), "output": WORDS})
    return st.one_of(
        st.builds(lambda text, flag: {"type": "text", "text": text, **flag}, WORDS, flags),
        st.builds(lambda text: {"type": "reasoning", "text": text, "metadata": {"sig": text}}, WORDS),
        st.builds(lambda tool, told: {"type": "tool", "tool": tool, "state": told}, TOOLS, state),
        st.sampled_from(
            [{"type": "step-start"}, {"type": "patch"}, {"type": "file", "url": "data:,"}, {"type": "compaction"}]
        ),
    )


@st.composite
def opencode(draw: st.DrawFn) -> list[Any]:
    count = draw(st.integers(0, 12))
    roles = draw(st.lists(st.sampled_from(["user", "assistant"]), min_size=count, max_size=count))
    return [
        {"info": {"id": f"m{n}", "role": role}, "parts": draw(st.lists(opencode_part(), max_size=4))}
        for n, role in enumerate(roles)
    ]


IDS = st.sampled_from([f"c{n}" for n in range(6)])


def anthropic_block() -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, WORDS),
        st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "s"}, WORDS),
        st.builds(lambda call, name: {"type": "tool_use", "id": call, "name": name, "input": {}}, IDS, TOOLS),
        st.builds(lambda call, text: {"type": "tool_result", "tool_use_id": call, "content": text}, IDS, WORDS),
        st.just({"type": "image", "source": {}}),
    )


@st.composite
def anthropic(draw: st.DrawFn) -> list[Any]:
    content = WORDS | st.lists(anthropic_block(), max_size=4)
    message = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": content})
    return draw(st.lists(message, max_size=10))


@st.composite
def openai(draw: st.DrawFn) -> list[Any]:
    call = st.builds(lambda call, name: {"id": call, "function": {"name": name, "arguments": "{}"}}, IDS, TOOLS)
    message = st.one_of(
        st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system"]), "content": WORDS | st.none()}),
        st.fixed_dictionaries(
            {"role": st.just("assistant"), "content": st.none(), "tool_calls": st.lists(call, max_size=3)}
        ),
        st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": IDS, "content": WORDS}),
    )
    return draw(st.lists(message, max_size=12))


HISTORIES = st.one_of(
    st.tuples(st.just(Shape.OPENCODE), opencode()),
    st.tuples(st.just(Shape.ANTHROPIC), anthropic()),
    st.tuples(st.just(Shape.OPENAI), openai()),
)


def blocks(message: Any) -> list[Any]:
    content = message.get("parts", message.get("content"))
    return content if isinstance(content, list) else []


def assert_paired(history: list[Any], shape: Shape) -> None:
    owed: set[str] = set()
    for message in history:
        calls = {
            block["id"] for block in blocks(message) if block["type"] == "tool_use" and message["role"] == "assistant"
        }
        calls |= {call["id"] for call in message.get("tool_calls", ())}
        results = [
            block["tool_use_id"]
            for block in blocks(message)
            if block["type"] == "tool_result" and message["role"] == "user"
        ]
        results += [message["tool_call_id"]] if message["role"] == "tool" else []
        assert len(results) == len(set(results))
        assert set(results) <= owed
        if shape is Shape.ANTHROPIC or not results:
            assert not owed - set(results)
            owed = calls
        else:
            owed = owed - set(results)
    assert not owed


@UNTIMED
@given(HISTORIES, LIMITS)
def test_calls_keep_their_results_and_results_their_calls(
    told: tuple[Shape, list[Any]], limits: dict[str, Any]
) -> None:
    shape, history = told
    if shape is not Shape.OPENCODE:
        assert_paired(repair(history, shape), shape)
        assert_paired(prune(history, shape, **limits), shape)


@UNTIMED
@given(HISTORIES, LIMITS)
def test_pruning_and_repairing_twice_is_doing_it_once(told: tuple[Shape, list[Any]], limits: dict[str, Any]) -> None:
    shape, history = told
    once = prune(history, shape, **limits)
    assert prune(once, shape, **limits) == once
    mended = repair(history, shape)
    assert repair(mended, shape) == mended


@UNTIMED
@given(HISTORIES, LIMITS)
def test_what_was_given_is_not_changed(told: tuple[Shape, list[Any]], limits: dict[str, Any]) -> None:
    shape, history = told
    before = copy.deepcopy(history)
    prune(history, shape, **limits)
    repair(history, shape)
    assert history == before


@UNTIMED
@given(HISTORIES, LIMITS)
def test_the_current_turn_of_a_whole_history_stays_as_it_is(
    told: tuple[Shape, list[Any]], limits: dict[str, Any]
) -> None:
    shape, history = told
    whole = prune(history, shape, drop_tools=limits["drop_tools"])
    turn = turn_start(request_roles(whole, shape))
    kept = prune(whole, shape, **limits)
    if turn is None:
        assert kept == whole
    else:
        assert kept[len(kept) - len(whole[turn:]) :] == whole[turn:]


@UNTIMED
@given(HISTORIES, LIMITS)
def test_what_was_cut_begins_with_a_user_message(told: tuple[Shape, list[Any]], limits: dict[str, Any]) -> None:
    shape, history = told
    kept = prune(history, shape, **limits)
    spoken = [role for role in request_roles(kept, shape) if role is not RequestRole.SYSTEM]
    if spoken and (shape is Shape.ANTHROPIC or kept != prune(history, shape, drop_tools=limits["drop_tools"])):
        assert spoken[0] in (RequestRole.USER, RequestRole.UNTYPED)
    if shape is Shape.ANTHROPIC:
        said = [message["role"] for message in kept]
        assert all(one != other for one, other in pairwise(said))


@UNTIMED
@given(HISTORIES, LIMITS)
def test_kept_reasoning_is_the_same_byte_for_byte(told: tuple[Shape, list[Any]], limits: dict[str, Any]) -> None:
    shape, history = told

    def reasoning(messages: list[Any]) -> list[str]:
        return [
            json.dumps(block) for m in messages for block in blocks(m) if block["type"] in ("reasoning", "thinking")
        ]

    before, after = reasoning(history), reasoning(prune(history, shape, **limits))
    assert all(after.count(one) <= before.count(one) for one in after)


@UNTIMED
@given(HISTORIES, st.integers(0, 400))
def test_a_token_limit_holds_except_for_the_current_turn(told: tuple[Shape, list[Any]], limit: int) -> None:
    shape, history = told
    kept = prune(history, shape, max_tokens=limit)
    roles = request_roles(kept, shape)
    turn = turn_start(roles)
    if turn is not None and any(role is not RequestRole.SYSTEM for role in roles[:turn]):
        assert request_tokens(kept, shape) <= limit
