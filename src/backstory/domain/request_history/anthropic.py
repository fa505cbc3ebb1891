"""Anthropic's shape: content blocks. Roles alternate, a user begins, and the message after calls answers all of them,
results first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from backstory.domain.request_history.roles import RequestRole
from backstory.domain.request_history.shape import (
    FILE_TOKENS,
    MESSAGE_TOKENS,
    CountTokens,
    Json,
    Rules,
    Stub,
    as_items,
    as_object,
    as_text,
    compact,
)

BEGINNING = "[The beginning of this conversation is not shown.]"
"""The user message in front of a history that would begin with an assistant's."""
_UNSEEN = frozenset({"thinking", "redacted_thinking"})


def _role(message: Any) -> RequestRole:
    match as_object(message).get("role"):
        case "user":
            blocks = _blocks(message)
            answers = any(map(_is_result, blocks))
            typed = any(as_object(block).get("type") == "text" and _is_seen(block) for block in blocks)
            if answers:
                return RequestRole.MIXED if typed else RequestRole.TOOL
            return RequestRole.USER if typed else RequestRole.UNTYPED
        case "system":
            return RequestRole.SYSTEM
        case _:
            return RequestRole.ASSISTANT


def _repair(messages: Sequence[Any], stub: Stub) -> list[Any]:
    """Merge neighbours of one role, answer every call in the message after it, and drop results without a call.

    A result that stands further back is moved to its call; one that is nowhere is made by ``stub``.
    """
    merged = _merged(messages)
    calls = Counter(call_id for message in merged for call_id in _calls(message))
    results = {result_id: block for message in reversed(merged) for result_id, block in _results(message)}
    elsewhere = {result_id: block for result_id, block in results.items() if calls[result_id] == 1}
    repaired: list[Any] = []
    owed: Mapping[str, Json] = {}
    for message in merged:
        if owed and not _takes_blocks(message):
            repaired.append({"role": "user", "content": _answers([], owed, elsewhere, stub)})
            owed = {}
        answered = _answering(message, owed, elsewhere, stub) if _takes_blocks(message) else message
        owed = _calls(message)
        if answered is not None:
            repaired.append(answered)
    if owed:
        repaired.append({"role": "user", "content": _answers([], owed, elsewhere, stub)})
    return _beginning_with_a_user(_merged(repaired))


def _answering(message: Any, owed: Mapping[str, Json], elsewhere: Mapping[str, Json], stub: Stub) -> Any:
    """A user message that answers what is owed and nothing else; None if nothing is left of it."""
    blocks = _blocks(message)
    if not owed and not any(map(_is_result, blocks)):
        return message
    said = [block for block in blocks if not _is_result(block)]
    answered = [*_answers(list(_results(message)), owed, elsewhere, stub), *said]
    if not answered:
        return None
    unchanged = len(answered) == len(blocks) and all(map(lambda one, other: one is other, answered, blocks))
    return message if unchanged else {**message, "content": answered}


def _answers(
    here: Sequence[tuple[str, Json]], owed: Mapping[str, Json], elsewhere: Mapping[str, Json], stub: Stub
) -> list[Json]:
    """One result for each call that is owed one: those of this message in their order, then the others."""
    found = {result_id: block for result_id, block in reversed(here) if result_id in owed}
    order = dict.fromkeys([result_id for result_id, _ in here if result_id in owed])
    answers = [found[result_id] for result_id in order]
    for call_id in (call_id for call_id in owed if call_id not in found):
        answers.append(elsewhere.get(call_id) or _stub_block(owed[call_id], stub))
    return answers


def _stub_block(call: Json, stub: Stub) -> Json:
    text = stub(as_text(call.get("name")), compact(call.get("input")))
    return {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": True}


def _merged(messages: Sequence[Any]) -> list[Any]:
    """Neighbours of one role as one message; the blocks stay what and in which order they are."""
    merged: list[Any] = []
    for message in messages:
        if merged and _is_mergeable(merged[-1]) and _is_mergeable(message) and _same_role(merged[-1], message):
            merged[-1] = {**merged[-1], "content": _blocks(merged[-1]) + _blocks(message)}
        else:
            merged.append(message)
    return merged


def _beginning_with_a_user(messages: list[Any]) -> list[Any]:
    first = next((at for at, message in enumerate(messages) if _role(message) is not RequestRole.SYSTEM), None)
    if first is None or as_object(messages[first]).get("role") != "assistant":
        return messages
    return [*messages[:first], {"role": "user", "content": BEGINNING}, *messages[first:]]


def _without_tools(messages: Sequence[Any], names: AbstractSet[str]) -> list[Any]:
    gone = {
        call_id
        for message in messages
        for call_id, call in _calls(message).items()
        if as_text(call.get("name")) in names
    }
    return [_without(message, gone) for message in messages]


def _without(message: Any, gone: AbstractSet[str]) -> Any:
    blocks = _blocks(message)
    kept = [block for block in blocks if _call_id(block) not in gone and _answered(block) not in gone]
    return message if len(kept) == len(blocks) else {**message, "content": kept}


def _is_empty(message: Any) -> bool:
    return _is_mergeable(message) and not any(map(_is_seen, _blocks(message)))


def _tokens(message: Any, count_tokens: CountTokens) -> int:
    return MESSAGE_TOKENS + sum(_block_tokens(as_object(block), count_tokens) for block in _blocks(message))


def _block_tokens(block: Json, count_tokens: CountTokens) -> int:
    match block.get("type"):
        case "image" | "document":
            return FILE_TOKENS
        case "tool_use":
            return count_tokens(as_text(block.get("name"))) + count_tokens(compact(block.get("input")))
        case "tool_result":
            content = block.get("content")
            inner = [as_object(item) for item in as_items(content)]
            return count_tokens(as_text(content)) + sum(_flat_tokens(item, count_tokens) for item in inner)
        case _:
            return _flat_tokens(block, count_tokens)


def _flat_tokens(block: Json, count_tokens: CountTokens) -> int:
    if block.get("type") in ("image", "document"):
        return FILE_TOKENS
    return count_tokens(as_text(block.get("text")) or as_text(block.get("thinking")))


def _blocks(message: Any) -> list[Any]:
    content = as_object(message).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return as_items(content)


def _is_mergeable(message: Any) -> bool:
    content = as_object(message).get("content")
    spoken = as_object(message).get("role") in ("user", "assistant")
    return spoken and (content is None or isinstance(content, str | list))


def _takes_blocks(message: Any) -> bool:
    return _is_mergeable(message) and message["role"] == "user"


def _same_role(one: Any, other: Any) -> bool:
    return bool(one["role"] == other["role"])


def _calls(message: Any) -> dict[str, Json]:
    """The calls of an assistant's message by their ids, in order."""
    if as_object(message).get("role") != "assistant":
        return {}
    return {call_id: block for block in _blocks(message) if (call_id := _call_id(block))}


def _results(message: Any) -> Iterator[tuple[str, Json]]:
    """The results in a user's message, each with the id of its call, in order."""
    if _takes_blocks(message):
        yield from ((result_id, block) for block in _blocks(message) if (result_id := _answered(block)))


def _call_id(block: Any) -> str:
    block = as_object(block)
    return as_text(block.get("id")) if block.get("type") == "tool_use" else ""


def _answered(block: Any) -> str:
    """The id of the call that a block is the result of; empty for other blocks."""
    return as_text(as_object(block).get("tool_use_id")) if _is_result(block) else ""


def _is_result(block: Any) -> bool:
    return bool(as_object(block).get("type") == "tool_result")


def _is_seen(block: Any) -> bool:
    kind = as_object(block).get("type")
    if kind == "text":
        return bool(as_text(as_object(block).get("text")).strip())
    return isinstance(kind, str) and kind not in _UNSEEN


ANTHROPIC = Rules(role=_role, repair=_repair, without_tools=_without_tools, is_empty=_is_empty, tokens=_tokens)
