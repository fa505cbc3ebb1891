"""A conversation cut into what was said or shown, each stretch with where it came from.

Of a user's message only what was typed is the user's; what was pasted is a file's. What tools answered is outside text,
whoever called them. Which statements such stretches support is ``grounding.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from backstory.domain.conversation import Message, Part, Role
from backstory.domain.echo import strip_injected
from backstory.domain.ids import MessageId
from backstory.domain.markup import unwrap
from backstory.domain.pasted_text import stretches
from backstory.domain.provenance import Origin
from backstory.domain.tool_parts import ToolUse, is_own_tool, tool_use

_COMPACTION = "compaction"
"""The host's agent that writes summaries of a session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """One stretch of a conversation. ``turn`` counts the user's messages so far, from 1 (0 before the first).

    ``is_code`` marks what an assistant wrote in fences or gave a tool. ``is_echo`` marks what is repeated or put in:
    answers of our own tools, summaries of the conversation, files and orders that a program added. An echo is never
    distilled; it is here so that nobody who repeats it is taken for its author. ``tool`` is the tool that answered, or
    was called.
    """

    message: MessageId
    at: datetime
    role: Role
    origin: Origin
    text: str
    turn: int = 0
    is_code: bool = False
    is_echo: bool = False
    tool: str | None = None


def utterances(messages: Sequence[Message], *, typed_by: Origin = Origin.USER) -> tuple[Utterance, ...]:
    """What was said and shown in messages, in their order; none is blank.

    Left out are messages taken back, what we put in, reasoning, and tools that have not answered. ``typed_by`` is who
    writes the messages of the user's role: in a sub-agent's session that is another agent. Linear in the texts.
    """
    found: list[Utterance] = []
    turn = 0
    for message in messages:
        if message.removed_at is None:
            typed = message.role is Role.USER and any(_is_typed(part) for part in message.parts)
            turn += typed
            found += _of_message(message, turn, typed_by)
    return tuple(found)


def _is_typed(part: Part) -> bool:
    return part.kind == "text" and not part.synthetic and bool(part.text.strip())


def _of_message(message: Message, turn: int, typed_by: Origin) -> Iterator[Utterance]:
    for part in message.parts:
        for origin, text, marks in _of_part(part, message, typed_by):
            if text.strip():
                yield Utterance(
                    message=message.id,
                    at=message.created_at,
                    role=message.role,
                    origin=origin,
                    text=text,
                    turn=turn,
                    is_code=marks.is_code,
                    is_echo=marks.is_echo or message.agent == _COMPACTION,
                    tool=marks.tool,
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marks:
    is_code: bool = False
    is_echo: bool = False
    tool: str | None = None


_Piece = tuple[Origin, str, _Marks]


def _of_part(part: Part, message: Message, typed_by: Origin) -> Iterator[_Piece]:
    use = tool_use(part)
    if use is not None:
        yield from _of_tool(use)
    elif part.kind == "text" and (part.synthetic or message.role is Role.SYSTEM):
        yield Origin.FILE, strip_injected(part.text), _Marks(is_echo=True)
    elif part.kind == "text" and message.role is Role.USER:
        for stretch in stretches(unwrap(strip_injected(part.text))):
            yield Origin.FILE if stretch.shown else typed_by, stretch.text, _Marks()
    elif part.kind == "text":
        for prose, fenced in _by_fences(strip_injected(part.text)):
            yield Origin.AGENT, prose, _Marks(is_code=fenced)


def _of_tool(use: ToolUse) -> Iterator[_Piece]:
    if use.unfinished:
        return
    ours = is_own_tool(use.name)
    if not ours:
        yield Origin.AGENT, "\n".join(_texts(use.input)), _Marks(is_code=True, tool=use.name)
    answer = "\n".join(filter(None, (use.output, use.error)))
    yield _tool_origin(use), strip_injected(answer), _Marks(is_echo=ours, tool=use.name)


def _tool_origin(use: ToolUse) -> Origin:
    if _web_tool().search(use.name):
        return Origin.WEB
    return Origin.FILE if _reading_tool().search(use.name) else Origin.TOOL


@cache
def _web_tool() -> re.Pattern[str]:
    return re.compile(r"web|fetch|https?(?![a-z])|browse|url|crawl|scrape", re.IGNORECASE)


@cache
def _reading_tool() -> re.Pattern[str]:
    return re.compile(r"(?:^|[_.-])(?:read|view|cat|open|grep|rg|search_files)(?:$|[_.-])|read_?file", re.IGNORECASE)


def _texts(value: object) -> Iterator[str]:
    """The texts and numbers of a tool's arguments, in their order."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            pending += reversed(list(item.values()))
        elif isinstance(item, list):
            pending += reversed(item)
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield str(item)


def _by_fences(text: str) -> Iterator[tuple[str, bool]]:
    """Prose and fenced code in turn; a fence that is never closed runs to the end."""
    fenced = False
    lines: list[str] = []
    for line in text.split("\n"):
        if _fence().match(line):
            yield "\n".join(lines), fenced
            lines, fenced = [], not fenced
        else:
            lines.append(line)
    yield "\n".join(lines), fenced


@cache
def _fence() -> re.Pattern[str]:
    return re.compile(r"\s*(?:```|~~~)")
