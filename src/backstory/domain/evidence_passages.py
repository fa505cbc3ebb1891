"""Messages cut into passages, the units in which evidence is searched. Scoring them is in ``evidence.py``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NewType

from backstory.domain.conversation import Part, Role
from backstory.domain.ids import MessageId, SessionId

PassageNumber = NewType("PassageNumber", int)
"""Tells passages of one store apart. It is not kept when passages are made anew."""

PASSAGE_CHARS = 800
"""Close to the 256 pieces that the local model reads at once. The last passage of a part may be a quarter longer."""

_INPUT_CHARS = 300  # of one argument of a tool call; whole files are written through them


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageLimits:
    """How many passages of one part are kept: of what was said or thought, and of what a tool was asked and gave."""

    said: int = 60
    tool: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePassage:
    """A piece of what was said or done: by whom, when, in which message. ``kind`` is its part's (text, reasoning,
    tool). ``by_sub_agent`` tells that a sub-agent's session holds it."""

    number: PassageNumber
    message: MessageId
    session: SessionId
    role: Role
    at: datetime
    kind: str
    text: str
    by_sub_agent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPassage:
    """A passage with what it holds of the words asked for, its number of tokens, and the passage before it in the
    session (whether loaded or not; None for the first)."""

    passage: EvidencePassage
    held: Mapping[str, int]
    length: int
    before: PassageNumber | None


def passages_of(part: Part, limits: PassageLimits) -> list[str]:
    """The passages of a part, in order; none for what no person, model or tool said here.

    Synthetic parts (files that a host pasted, prompts for sub-agents) and what our own tools answered are left out. A
    tool call gives its arguments and the beginning of its output.
    """
    if part.synthetic:
        return []
    match part.kind:
        case "text" | "reasoning":
            return cut(part.text, at_most=limits.said)
        case "tool":
            from backstory.domain.tool_parts import is_own_tool  # a search has no need of it

            if is_own_tool(part.tool or ""):
                return []
            return cut(_tool_text(part, chars=limits.tool * PASSAGE_CHARS), at_most=limits.tool)
        case _:
            return []


def cut(text: str, *, size: int = PASSAGE_CHARS, at_most: int) -> list[str]:
    """Cut a text into pieces of at most ``size`` characters, the last one of a quarter more, none of them blank.

    Cut at the last border of a paragraph in the second half of a piece, else of a line, a sentence, a word; inside a
    word only where there is none. Linear in the text.
    """
    pieces: list[str] = []
    start = 0
    while start < len(text) and len(pieces) < at_most:
        rest = len(text) - start
        end = len(text) if rest <= size + size // 4 else _border(text, start + size // 2, start + size)
        if piece := text[start:end].strip():
            pieces.append(piece)
        start = end
    return pieces


def indexed_text(text: str, *, role: Role, at: datetime) -> str:
    """A passage as its words are indexed: after the day it was said, and by whom."""
    return f"{at.day} {at:%B} {at.year} {role.value}: {text}"


def _border(text: str, low: int, high: int) -> int:
    for marks in (("\n\n",), ("\n",), (". ", "! ", "? ", "。", "！", "？"), (" ",)):
        end = max(text.rfind(mark, low, high) + len(mark) * (text.find(mark, low, high) >= 0) for mark in marks)
        if end > low:
            return end
    return high


def _tool_text(part: Part, *, chars: int) -> str:
    arguments = " ".join(_arguments(part.detail))
    if not arguments and not part.text.strip():
        return ""  # it has not run yet
    return f"{part.tool}: {arguments[:chars]}\n{part.text[: 2 * chars]}"


def _arguments(detail: str | None) -> Iterator[str]:
    if not detail:
        return
    try:
        told: Any = json.loads(detail)  # Any: whatever the host told of the part
    except (ValueError, RecursionError):
        return
    state = told.get("state") if isinstance(told, dict) else None
    given = state.get("input") if isinstance(state, dict) else None
    if isinstance(given, dict):
        yield from (str(value)[:_INPUT_CHARS] for value in given.values() if isinstance(value, str | int | float))
