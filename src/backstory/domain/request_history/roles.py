"""What a message is to a request, whatever its shape, and where a list of them may be cut."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum


class RequestRole(StrEnum):
    """Who speaks, as far as it matters for cutting.

    ``user`` holds text that somebody typed and no tool result, ``untyped`` neither (a picture, a program's words).
    ``tool`` holds tool results only, ``mixed`` results and typed text in one message (Anthropic's shape).
    """

    USER = "user"
    UNTYPED = "untyped"
    MIXED = "mixed"
    TOOL = "tool"
    ASSISTANT = "assistant"
    SYSTEM = "system"


_TYPED = frozenset({RequestRole.USER, RequestRole.MIXED})
STARTS = frozenset({RequestRole.USER, RequestRole.UNTYPED})
"""What a history may begin with: a user's message that answers no call."""


def turn_start(roles: Sequence[RequestRole]) -> int | None:
    """Where the current turn begins: at the newest typed message, or before the call that it also answers.

    Without any typed text, at the newest user message; None without one.
    """
    typed = (at for at in range(len(roles) - 1, -1, -1) if roles[at] in _TYPED)
    newest = next(typed, None)
    end = len(roles) if newest is None else newest + 1
    return next((at for at in range(end - 1, -1, -1) if roles[at] in STARTS), None)
