"""Archived messages as text, for a model that is to summarise them and for counting their tokens.

The text is outside data. Every message begins at the margin, every part with a dash, and all that a part says beyond
its first line is indented: no part can pretend to be another, and none can open or close a tag that frames it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from backstory.domain.context_block import quote
from backstory.domain.conversation import Message, Part, Role
from backstory.domain.echo import strip_injected
from backstory.domain.tool_parts import ToolUse, file_label, is_own_tool, part_detail, tool_use
from backstory.domain.truncation import truncate_chars

MARGIN = "    "
"""Before all lines of a part but its first."""
SPEAKER = re.compile(rf"\[(?P<role>{'|'.join(role.value for role in Role)}) \S.* \S+\]\Z")
"""The first line of a message."""
_NOTE_CHARS = 48  # room for the note of how much was left out, its line breaks and margins
_LEAST_PART_CHARS = 160  # a shorter cut tells nothing of a part
_NAME_CHARS = 120

_TAG_NAMES = frozenset(
    (
        *("transcript", "conversation", "observations", "reflections", "summary", "summaries", "digest", "notes"),
        *("skip", "memory", "persistent-project-memory", "system-reminder"),
        *("current-task", "suggested-response", "suggested-continuation"),
    )
)
_ANGLE = re.compile(r"<(?=([^<>]+))")
_TAG_NAME = re.compile(r"[\s/!?]*([a-z][a-z0-9_-]*)")
_TURN_MARK = re.compile(r"\[(?=\s*+/?\s*+(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\s*+\])")
_INLINE_DATA = re.compile(r"(data:[\w.+/-]{1,80}(?:;[\w=-]{1,40})*;base64,)[A-Za-z0-9+/=_-]{64,}+")


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptLimits:
    """Sizes in characters of the text that comes out, notes about what was left out included."""

    part_chars: int = 6000
    """A longer part is cut in its middle."""
    total_chars: int = 400_000
    """Of one transcript; what goes beyond is cut from the longest parts first."""


class _Told(NamedTuple):
    head: str
    parts: list[str]


def message_text(message: Message, *, limits: TranscriptLimits = TranscriptLimits()) -> str:
    """One message as it stands in a transcript; empty when it has nothing to tell."""
    return transcript([message], limits=limits)


def transcript(messages: Sequence[Message], *, limits: TranscriptLimits = TranscriptLimits()) -> str:
    """Messages as text, in the order given: a line with role, id and time in UTC, then the parts.

    Messages with nothing to tell are left out. What we put into the conversation, what our own tools answered, and the
    data of files are cut; a tool part without an outcome is only named. Never longer than ``limits.total_chars``.
    Linear in the length of the parts.
    """
    told = [entry for message in messages if (entry := _told(message)).parts]
    cap = _part_cap(told, limits)
    lines = [line for head, parts in told for line in (head, *(_cut(part, cap, margin=MARGIN) for part in parts))]
    return _cut("\n".join(lines), limits.total_chars, margin="")


def is_settled(message: Message) -> bool:
    """Whether a message will not change any more: complete, and no tool part is still without an outcome."""
    complete = message.role is Role.USER or message.completed_at is not None
    return complete and not any(use.unfinished for part in message.parts if (use := tool_use(part)) is not None)


def outside_text(text: str) -> str:
    """Text without our own injected blocks and inlined file data, in which no tag of ours is left as such.

    An opening ``<`` of such a tag becomes a look-alike, and so does what opens a chat template's mark; all else,
    line breaks included, is as it was.
    """
    without = _INLINE_DATA.sub(r"\1…", strip_injected(text))
    return _TURN_MARK.sub("［", _ANGLE.sub(_harmless, without))


def _harmless(opening: re.Match[str]) -> str:
    # Signs that take no room may stand between the letters; a reader, and perhaps a model, sees through them.
    inner = opening[1][:400].encode("ascii", "ignore").decode("ascii").lower()
    if inner.startswith("|"):
        return "‹"
    name = _TAG_NAME.match(inner)
    if name is None:
        return "<"
    plain = name[1].replace("_", "-")
    return "‹" if plain in _TAG_NAMES or plain.startswith("backstory-") else "<"


def _told(message: Message) -> _Told:
    time = message.created_at.strftime("%Y-%m-%dT%H:%MZ")
    head = f"[{message.role.value} {_name(message.id)} {time}]"
    return _Told(head, [text for part in message.parts if (text := part_text(part))])


def part_text(part: Part) -> str:
    """One part as it stands in a transcript, of any length; empty when it has nothing to tell."""
    use = tool_use(part)
    if use is not None:
        return _tool(use)
    match part.kind:
        case "text":
            return _said("text put in by a program" if part.synthetic else "text", part.text)
        case "reasoning":
            return _said("reasoning", part.text)
        case "file":
            return f"- {_name(file_label(part_detail(part)))}"
        case _:
            return _said(_name(part.kind), part.text) or f"- {_name(part.kind)}"


def _said(label: str, text: str) -> str:
    lines = _lines(text)
    return "\n".join([f"- {label}: {lines[0].lstrip()}", *_indented(lines[1:])]) if lines else ""


def _tool(use: ToolUse) -> str:
    name = f"- tool {_name(use.name)}"
    if use.unfinished:
        return f"{name}, unfinished"
    code = f"exit {use.exit_code}" if use.exit_code else ""
    head = ", ".join(filter(None, [name, _name(use.status), code]))
    if is_own_tool(use.name):
        return f"{head} (a memory tool; what it was told and answered is left out)"
    asked = _compact(use.input)
    answer = [*_lines(use.output), *_lines(f"error: {use.error}" if use.error else ""), *map(_name, use.attached)]
    return "\n".join([f"{head}: {asked}" if asked else head, *_indented(answer)])


def _compact(value: Any) -> str:
    """JSON on one line, without what is empty; nothing for an empty object."""
    try:
        given = _given(value)
        text = json.dumps(given, ensure_ascii=False, separators=(",", ":")) if given else ""
    except RecursionError:  # nested deeper than anybody reads
        return ""
    return " ".join(_lines(text))


def _given(value: Any) -> Any:  # Any: JSON of any shape
    if isinstance(value, dict):
        return {key: _given(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_given(item) for item in value if item is not None]
    return strip_injected(value) if isinstance(value, str) else value


def _lines(text: str) -> list[str]:
    """The lines of a text, without blank ones at both ends."""
    lines = [line.rstrip() for line in outside_text(text).splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    first = next((at for at, line in enumerate(lines) if line), 0)
    return lines[first:]


def _indented(lines: Sequence[str]) -> list[str]:
    return [MARGIN + line if line else "" for line in lines]


def _name(text: str) -> str:
    """A name that the host gave, as one short piece of a line."""
    return truncate_chars(quote(text).replace("[", "(").replace("]", ")"), _NAME_CHARS)


def _part_cap(told: Sequence[_Told], limits: TranscriptLimits) -> int:
    """How long a part may be so that all fit together: the longest are cut until they do."""
    lengths = [len(part) for entry in told for part in entry.parts]
    room = limits.total_chars - sum(len(entry.head) + 1 for entry in told) - len(lengths)
    low, high = min(_LEAST_PART_CHARS, limits.part_chars), limits.part_chars
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(length, middle) for length in lengths) <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _cut(text: str, limit: int, *, margin: str) -> str:
    """Cut out the middle, and say how much it was; the rest goes on behind the margin, or at a line of its own."""
    if len(text) <= limit:
        return text
    kept = limit - _NOTE_CHARS
    if kept <= 0:
        return truncate_chars(text, limit)
    head = truncate_chars(text, kept - kept // 2).rstrip()
    tail = _end(text[len(text) - kept // 2 :], whole_lines=not margin)
    note = f"\n{margin}[… {len(text) - len(head) - len(tail)} characters left out …]"
    return f"{head}{note}\n{margin}{tail}" if tail else head + note


def _end(text: str, *, whole_lines: bool) -> str:
    """The end of a text from its first whole line, or from its first whole word if that comes soon."""
    if whole_lines:
        return text.partition("\n")[2]
    gap = re.search(r"\s+", text[:60])
    return text[gap.end() :] if gap else text
