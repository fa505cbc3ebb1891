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


TYPED = frozenset({RequestRole.USER, RequestRole.MIXED})
STARTS = frozenset({RequestRole.USER, RequestRole.UNTYPED})
"""What a history may begin with: a user's message that answers no call."""
_ANSWERS = frozenset({RequestRole.TOOL, RequestRole.MIXED})


def cut_before(messages_roles: Sequence[RequestRole], wanted: int) -> int:
    """The largest allowed number, at most ``wanted``, of leading messages that something else may stand for.

    The newest message with typed text and all that follows it stay, and what stays never begins with a tool result. 0
    when no text was typed at all. System messages count as places; whoever replaces the others keeps them.
    """
    newest = _newest_typed(messages_roles)
    count = min(wanted, newest if newest is not None else 0)
    while count > 0 and messages_roles[count] in _ANSWERS:
        count -= 1
    return max(count, 0)


def turn_start(roles: Sequence[RequestRole]) -> int | None:
    """Where the current turn begins: at the newest typed message, or before the call that it also answers.

    Without any typed text, at the newest user message; None without one.
    """
    newest = _newest_typed(roles)
    end = len(roles) if newest is None else newest + 1
    return next((at for at in range(end - 1, -1, -1) if roles[at] in STARTS), None)


def _newest_typed(roles: Sequence[RequestRole]) -> int | None:
    return next((at for at in range(len(roles) - 1, -1, -1) if roles[at] in TYPED), None)
