"""OpenCode's shape: ``{info, parts}``. A call and its result are one part, so there is no pair to be torn apart."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from backstory.domain.request_history.roles import RequestRole
from backstory.domain.request_history.shape import (
    FILE_TOKENS,
    MESSAGE_TOKENS,
    CountTokens,
    Rules,
    Stub,
    as_items,
    as_object,
    as_text,
    compact,
)

# The host's bookkeeping, and what a provider takes only beside something else.
_UNSEEN = frozenset({"step-start", "step-finish", "snapshot", "patch", "reasoning", "agent", "retry"})


def _role(message: Any) -> RequestRole:
    match as_object(as_object(message).get("info")).get("role"):
        case "user":
            return RequestRole.USER if any(map(_is_typed, _parts(message))) else RequestRole.UNTYPED
        case "system":
            return RequestRole.SYSTEM
        case _:
            return RequestRole.ASSISTANT


def _repair(messages: Sequence[Any], stub: Stub) -> list[Any]:
    """As it is: a part without an outcome is closed by the host itself, in words that its model knows."""
    return list(messages)


def _without_tools(messages: Sequence[Any], names: AbstractSet[str]) -> list[Any]:
    return [_without(message, names) for message in messages]


def _without(message: Any, names: AbstractSet[str]) -> Any:
    parts = _parts(message)
    kept = [part for part in parts if not (_kind(part) == "tool" and as_text(as_object(part).get("tool")) in names)]
    return message if len(kept) == len(parts) else {**message, "parts": kept}


def _is_empty(message: Any) -> bool:
    parts = as_object(message).get("parts")
    return isinstance(parts, list) and not any(map(_is_seen, parts))


def _tokens(message: Any, count_tokens: CountTokens) -> int:
    return MESSAGE_TOKENS + sum(_part_tokens(as_object(part), count_tokens) for part in _parts(message))


def _part_tokens(part: Any, count_tokens: CountTokens) -> int:
    match _kind(part):
        case "file":
            return FILE_TOKENS
        case "tool":
            state = as_object(part.get("state"))
            told = (as_text(part.get("tool")), compact(state.get("input")), *map(as_text, _answers(state)))
            attached = len(as_items(state.get("attachments")))
            return FILE_TOKENS * attached + sum(map(count_tokens, told))
        case _:
            return 0 if part.get("ignored") else count_tokens(as_text(part.get("text")))


def _answers(state: Any) -> tuple[Any, Any]:
    return state.get("output"), state.get("error")


def _parts(message: Any) -> list[Any]:
    return as_items(as_object(message).get("parts"))


def _kind(part: Any) -> Any:
    return as_object(part).get("type")


def _is_typed(part: Any) -> bool:
    part = as_object(part)
    program = part.get("synthetic") or part.get("ignored")
    return part.get("type") == "text" and not program and bool(as_text(part.get("text")).strip())


def _is_seen(part: Any) -> bool:
    kind = _kind(part)
    if kind == "text":
        return not as_object(part).get("ignored") and bool(as_text(as_object(part).get("text")).strip())
    return isinstance(kind, str) and kind not in _UNSEEN


OPENCODE = Rules(role=_role, repair=_repair, without_tools=_without_tools, is_empty=_is_empty, tokens=_tokens)
