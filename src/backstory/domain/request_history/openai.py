"""OpenAI's shape: calls in ``tool_calls``, each answered by a message of role ``tool`` right behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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

_FILES = frozenset({"image_url", "input_audio", "file"})


def _role(message: Any) -> RequestRole:
    match as_object(message).get("role"):
        case "user":
            return RequestRole.USER if any(text.strip() for text in _texts(message)) else RequestRole.UNTYPED
        case "system" | "developer":
            return RequestRole.SYSTEM
        case "tool":
            return RequestRole.TOOL
        case _:
            return RequestRole.ASSISTANT


def _repair(messages: Sequence[Any], stub: Stub) -> list[Any]:
    """Answer every call right behind its message, and drop results without a call.

    A result that stands elsewhere is moved to its call; one that is nowhere is made by ``stub``.
    """
    calls = Counter(call_id for message in messages for call_id in _calls(message))
    results = {_answered(message): message for message in reversed(messages) if _role(message) is RequestRole.TOOL}
    elsewhere = {result_id: message for result_id, message in results.items() if calls[result_id] == 1}
    repaired: list[Any] = []
    for at, message in enumerate(messages):
        if _role(message) is RequestRole.TOOL:
            continue
        repaired.append(message)
        owed = _calls(message)
        here = {_answered(result): result for result in reversed(_results_behind(messages, at))}
        order = dict.fromkeys(_answered(result) for result in _results_behind(messages, at))
        repaired += [here[result_id] for result_id in order if result_id in owed]
        for call_id in (call_id for call_id in owed if call_id not in here):
            repaired.append(elsewhere.get(call_id) or _stub_message(owed[call_id], stub))
    return repaired


def _results_behind(messages: Sequence[Any], at: int) -> list[Any]:
    end = at + 1
    while end < len(messages) and _role(messages[end]) is RequestRole.TOOL:
        end += 1
    return list(messages[at + 1 : end])


def _stub_message(call: Json, stub: Stub) -> Json:
    function = as_object(call.get("function"))
    text = stub(as_text(function.get("name")), compact(function.get("arguments")))
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def _without_tools(messages: Sequence[Any], names: AbstractSet[str]) -> list[Any]:
    gone = {call_id for message in messages for call_id, call in _calls(message).items() if _name(call) in names}
    return [_without(message, gone) for message in messages if _answered(message) not in gone]


def _without(message: Any, gone: AbstractSet[str]) -> Any:
    if gone.isdisjoint(_calls(message)):
        return message
    calls = [call for call in message["tool_calls"] if as_text(as_object(call).get("id")) not in gone]
    others = {key: value for key, value in message.items() if key != "tool_calls"}
    return {**others, "tool_calls": calls} if calls else others


def _is_empty(message: Any) -> bool:
    message = as_object(message)
    if message.get("role") not in ("user", "assistant"):
        return False
    other = any(message.get(key) for key in ("tool_calls", "function_call", "refusal", "audio"))
    seen = any(text.strip() for text in _texts(message)) or any(map(_is_attached, as_items(message.get("content"))))
    return not (other or seen)


def _tokens(message: Any, count_tokens: CountTokens) -> int:
    message = as_object(message)
    files = sum(as_text(as_object(item).get("type")) in _FILES for item in as_items(message.get("content")))
    called = [as_object(as_object(call).get("function")) for call in as_items(message.get("tool_calls"))]
    told = [*_texts(message), *(compact(call.get(key)) for call in called for key in ("name", "arguments"))]
    return MESSAGE_TOKENS + FILE_TOKENS * files + sum(map(count_tokens, told))


def _texts(message: Any) -> list[str]:
    content = as_object(message).get("content")
    if isinstance(content, str):
        return [content]
    return [as_text(as_object(item).get("text")) for item in as_items(content)]


def _is_attached(item: Any) -> bool:
    kind = as_object(item).get("type")
    return isinstance(kind, str) and kind != "text"


def _calls(message: Any) -> Mapping[str, Json]:
    """The calls of an assistant's message by their ids, in order."""
    if as_object(message).get("role") != "assistant":
        return {}
    calls = [as_object(call) for call in as_items(message.get("tool_calls"))]
    return {call_id: call for call in calls if (call_id := as_text(call.get("id")))}


def _name(call: Json) -> str:
    return as_text(as_object(call.get("function")).get("name"))


def _answered(message: Any) -> str:
    """The id of the call that a message is the result of; empty for other messages."""
    message = as_object(message)
    return as_text(message.get("tool_call_id")) if message.get("role") == "tool" else ""


OPENAI = Rules(role=_role, repair=_repair, without_tools=_without_tools, is_empty=_is_empty, tokens=_tokens)
