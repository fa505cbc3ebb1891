"""What the three shapes have in common: their names, and how hostile JSON is read, measured and answered for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from backstory.domain.request_history.roles import RequestRole
from backstory.domain.truncation import truncate_chars

Json: TypeAlias = Mapping[str, Any]  # Any, here and below: what hosts send, of any shape
CountTokens: TypeAlias = Callable[[str], int]
Stub: TypeAlias = Callable[[str, str], str]
"""Name and input of a call that has no result → the text that stands in its place."""

FILE_TOKENS = 1_600
"""A picture or file, whatever its size in bytes: about what a large picture costs with the big providers."""
MESSAGE_TOKENS = 4
"""What a message costs beside its content: the marks around it."""
_INPUT_CHARS = 400


class Shape(StrEnum):
    """How a list of messages is written down."""

    OPENCODE = "opencode"
    ANTHROPIC = "anthropic"
    OPENAI = "openai"


class Rules(NamedTuple):
    """What must be known of a shape. ``is_empty``: nothing in the message reaches the model."""

    role: Callable[[Any], RequestRole]
    repair: Callable[[Sequence[Any], Stub], list[Any]]
    without_tools: Callable[[Sequence[Any], AbstractSet[str]], list[Any]]
    is_empty: Callable[[Any], bool]
    tokens: Callable[[Any, CountTokens], int]


def missing_result(name: str, given: str) -> str:
    """What stands in the place of a result that is not there."""
    return f"[The result of this call is not available: {name} {truncate_chars(given, _INPUT_CHARS)}]"


def rough_tokens(text: str) -> int:
    """An estimate from the length alone, four characters a token; 0 for no text."""
    return (len(text) + 3) // 4


def as_object(value: Any) -> Json:
    """``value`` if it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def as_items(value: Any) -> list[Any]:
    """``value`` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """``value`` if it is a text, else the empty one."""
    return value if isinstance(value, str) else ""


def compact(value: Any) -> str:
    """JSON on one line; a text as it is; nothing for what cannot be written as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (TypeError, ValueError, RecursionError):
        return ""
