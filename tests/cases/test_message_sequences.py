"""The shared message sequences: every row that is decided without a store or a model."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from backstory.domain.capture import capture
from backstory.domain.conversation import Message, typed_text
from backstory.domain.digest_plan import Listed, current_turn
from backstory.domain.echo import strip_injected
from backstory.domain.redaction import strip_private
from backstory.domain.request_history import (
    RequestRole,
    Shape,
    prune,
    repair,
    request_roles,
    request_tokens,
)
from backstory.domain.transcript import is_settled, message_text, transcript
from backstory.entrypoints.opencode.host_messages import to_message

CASES = Path(__file__).parents[3] / "shared" / "cases" / "message-sequences"
NEEDS_MORE = {"compress-not-smaller"}
"""Rows that only a store and a model decide, beside all of ``op: steps``: ``test_message_sequences_services.py``."""
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)

Row = Mapping[str, Any]


def expanded(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"$gen"}:
            return "".join(item["s"] * item["n"] for item in value["$gen"])
        return {key: expanded(item) for key, item in value.items()}
    return [expanded(item) for item in value] if isinstance(value, list) else value


def rows(*ops: str) -> list[Row]:
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(CASES.glob("*.json"))]
    return [expanded(row) for row in found if row["op"] in ops and row["id"] not in NEEDS_MORE]


def by_id(row: Row) -> str:
    return str(row["id"])


def test_the_rows_are_there() -> None:
    if not CASES.exists():
        pytest.skip("the message sequences are not beside this checkout")
    assert len(rows("prune", "repair", "capture", "observe", "compress")) == 26


# Reading the three shapes, independently of the code under test.


def calls_and_results(message: Any, shape: str) -> tuple[list[str], list[str]]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    if shape == "anthropic":
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        return calls, [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    results = [message["tool_call_id"]] if message["role"] == "tool" else []
    return [call["id"] for call in message.get("tool_calls") or []], results


def texts(message: Any, shape: str) -> list[str]:
    if shape == "opencode":
        return [part["text"] for part in message["parts"] if part["type"] == "text"]
    return list(block_texts(message.get("content")))


def block_texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [text for block in content or [] for text in block_texts(block.get("text") or block.get("content"))]


def role(message: Any) -> str:
    return str(message.get("info", message)["role"])


def is_typed(message: Any, shape: str) -> bool:
    if role(message) != "user":
        return False
    if shape == "opencode":
        return any(part["type"] == "text" and not part.get("synthetic") for part in message["parts"])
    content = message["content"]
    return isinstance(content, str) or any(block["type"] == "text" for block in content)


def newest_typed(messages: list[Any], shape: str) -> Any:
    return next(message for message in reversed(messages) if is_typed(message, shape))


# What each name in ``invariants`` demands of an outcome.


def pairs(row: Row, out: list[Any]) -> None:
    shape = row["shape"]
    if shape == "opencode":
        return  # a pair is one part
    owed: list[str] = []
    for message in out:
        calls, results = calls_and_results(message, shape)
        if shape == "anthropic":
            assert sorted(results) == sorted(owed)
            owed = calls
        elif results:
            assert results[0] in owed
            owed.remove(results[0])
        else:
            assert owed == []
            owed = calls
    assert owed == []


def order(row: Row, out: list[Any]) -> None:
    before = [text for message in row["messages"] for text in texts(message, row["shape"])]
    after = [text for message in out for text in texts(message, row["shape"]) if text in before]
    places = [before.index(text) for text in after]
    assert places == sorted(places)


def newest_user_verbatim(row: Row, out: list[Any]) -> None:
    assert newest_typed(out, row["shape"]) == newest_typed(row["messages"], row["shape"])


def has_user(row: Row, out: list[Any]) -> None:
    assert any(role(message) == "user" for message in out)


def reasoning_bytes(row: Row, out: list[Any]) -> None:
    def reasoning(messages: list[Any]) -> list[str]:
        parts = [part for message in messages for part in message.get("parts", ())]
        return [json.dumps(part) for part in parts if part["type"] == "reasoning"]

    assert set(reasoning(out)) <= set(reasoning(row["messages"]))


def no_empty_messages(row: Row, out: list[Any]) -> None:
    for message in out:
        kinds = [part["type"] for part in message.get("parts", ())]
        assert {"text", "file", "tool"} & set(kinds) or message.get("content") or message.get("tool_calls")


def idempotent(row: Row, out: list[Any]) -> None:
    assert run({**row, "messages": copy.deepcopy(out)}) == out


def input_not_mutated(row: Row, out: list[Any]) -> None:
    before = copy.deepcopy(row["messages"])
    run(row)
    assert row["messages"] == before


def alternate_roles(row: Row, out: list[Any]) -> None:
    said = [role(message) for message in out]
    assert said[0] == "user"
    assert all(one != other for one, other in pairwise(said))


INVARIANTS: Mapping[str, Callable[[Row, list[Any]], None]] = {
    check.__name__: check
    for check in (
        *(pairs, order, newest_user_verbatim, has_user, reasoning_bytes, no_empty_messages, idempotent),
        *(input_not_mutated, alternate_roles),
    )
}


def run(row: Row) -> list[Any]:
    shape, config = Shape(row["shape"]), row["config"]
    return repair(row["messages"], shape) if row["op"] == "repair" else prune(row["messages"], shape, **config)


@pytest.mark.parametrize("row", rows("prune", "repair"), ids=by_id)
def test_what_is_pruned_or_repaired_is_as_the_row_demands(row: Row) -> None:
    out, expect, shape = run(row), row["expect"], row["shape"]
    for name in expect.get("invariants", ()):
        INVARIANTS[name](row, out)
    kept_texts = [text for message in out for text in texts(message, shape)]
    kept_ids = [message.get("info", {}).get("id") for message in out]
    assert set(expect.get("must_keep", ())) <= set(kept_ids)
    assert set(expect.get("must_keep_text", ())) <= set(kept_texts)
    results = [result for message in out if shape != "opencode" for result in calls_and_results(message, shape)[1]]
    assert set(expect.get("must_drop_results", ())).isdisjoint(results)
    for call, words in expect.get("stub_for", {}).items():
        stub = next(block for message in out for block in message["content"] if block_answers(block, call))
        assert all(word in json.dumps(stub) for word in words)
    if "output" in expect:
        assert out == expect["output"]
    if expect.get("system_kept"):
        assert out[0] == row["messages"][0]
    if "max_tokens_est" in expect:
        assert request_tokens(out, Shape(shape)) <= expect["max_tokens_est"]
    if expect.get("file_part_kept"):
        assert out == row["messages"]
    for call, outcome in expect.get("tool_states", {}).items():
        assert outcome in ("stub_or_unchanged", "pair_or_absent")
        assert tool_part(out, call) in (None, tool_part(row["messages"], call))
    known = {"invariants", "must_keep", "must_keep_text", "must_drop_results", "stub_for", "output", "system_kept"}
    known |= {"max_tokens_est", "file_part_kept", "tool_states", "triggers", "reasoning_all_or_none_per_step"}
    assert set(expect) <= known
    if "triggers" in expect:
        assert (request_tokens(out, Shape(shape)) > row["config"]["max_tokens"]) is expect["triggers"]
    if expect.get("reasoning_all_or_none_per_step"):
        whole = {message["info"]["id"]: message for message in row["messages"]}
        assert all(message == whole[message["info"]["id"]] for message in out)


def block_answers(block: Any, call: str) -> bool:
    return isinstance(block, dict) and block.get("tool_use_id") == call


def tool_part(messages: list[Any], call: str) -> Any:
    parts = (part for message in messages for part in message["parts"])
    return next((part for part in parts if part.get("callID") == call), None)


# What the archive knows of a row's messages.


def archived(row: Row) -> list[Message]:
    child = "parentID" in row["session"]
    read = [to_message(item["info"], item["parts"], child=child, now=NOW) for item in row["messages"]]
    return [message for message in read if message is not None]


@pytest.mark.parametrize("row", rows("observe"), ids=by_id)
def test_what_is_handed_to_an_observer_is_as_the_row_demands(row: Row) -> None:
    expect = row["expect"]
    messages = archived(row)
    start = time.process_time()
    told = transcript(messages)
    took_ms = (time.process_time() - start) * 1000
    for text in expect.get("observed_must_contain", ()):
        assert text in told
    for text in expect.get("observed_must_not_contain", ()):
        assert text not in told
    places = [told.index(f": {text}") for text in expect.get("observed_order", ())]
    assert places == sorted(places)
    assert len(told) <= expect.get("observed_max_chars", len(told))
    assert took_ms <= expect.get("max_ms", took_ms)
    for message_id in expect.get("observed_ids", ()):
        assert message_id in told
    if "newest_user_text" in expect:
        assert typed_text(messages[turn_of(row)]) == expect["newest_user_text"]
    if "triggers" in expect:
        threshold = row["config"]["message_tokens"]
        assert (request_tokens(row["messages"], Shape.OPENCODE) > threshold) is expect["triggers"]


@pytest.mark.parametrize("row", rows("capture"), ids=by_id)
def test_what_is_captured_and_asked_for_is_as_the_row_demands(row: Row) -> None:
    expect = row["expect"]
    if "parentID" in row["session"]:
        assert not any(typed_text(message) for message in archived(row) if message.role.value == "user")
        assert expect["captures"] == []
        return
    users = [message for message in archived(row) if message.role.value == "user"]
    captured = [item.content for item in capture(strip_injected(strip_private(typed_text(users[-1]))))]
    captured = [content.rstrip(".") for content in captured]  # the row does not say whether the full stop belongs to it
    assert captured == expect["captures"]
    query = next((text for message in reversed(users) if (text := typed_text(message))), "")
    assert all(text in query for text in expect["query_text_must_contain"])
    assert not any(text in query for text in expect["query_text_must_not_contain"])


def turn_of(row: Row) -> int:
    """Where the row's current turn begins, which no digest touches."""
    told = zip(row["messages"], request_roles(row["messages"], Shape.OPENCODE), strict=True)
    return current_turn(
        [
            Listed(id=message["info"]["id"], role=message["info"]["role"], synthetic=role is RequestRole.UNTYPED)
            for message, role in told
        ]
    )


@pytest.mark.parametrize("row", rows("compress"), ids=by_id)
def test_what_may_be_compressed_is_as_the_row_demands(row: Row) -> None:
    expect = row["expect"]
    messages = archived(row)
    batch = messages[: turn_of(row)]
    for message_id in expect.get("never_in_batch", ()):
        assert message_id not in [message.id for message in batch]
    for text in expect.get("details_must_contain", ()):
        assert any(text in message_text(message) for message in batch)
    for status in expect.get("never_in_batch_while", ()):
        waiting = [m for m in batch if any(f'"status": "{status}"' in (part.detail or "") for part in m.parts)]
        assert waiting
        assert not any(map(is_settled, waiting))


def test_roles_of_a_request_are_read_from_every_row() -> None:
    for row in rows("prune", "repair"):
        roles = request_roles(row["messages"], Shape(row["shape"]))
        assert len(roles) == len(row["messages"])
        assert not row["messages"] or RequestRole.USER in roles
