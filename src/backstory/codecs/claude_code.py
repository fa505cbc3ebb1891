"""Lines of Claude Code's transcripts turned into messages, a tool's result put beside its call.

The format is not documented; what is read here was seen in transcripts of versions 1 and 2. Anything unexpected is left
out rather than guessed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from backstory.domain.conversation import Message, Part, Role
from backstory.domain.ids import MessageId, PartId, SessionId

HOST = "claude-code"
MOST_WAITING = 500
"""Messages that are held back, at most, until the results of a tool that was called have come."""

Json = Mapping[str, Any]

# How texts begin that stand as a user's and that the program put there: commands and what they printed, notices.
_PROGRAMS_WORDS = (
    *("<command-", "<local-command-", "<bash-", "<task-notification", "<system-reminder", "<user-prompt-submit-hook"),
    "[Request interrupted by user",
)
_SUMMARY_KINDS = ("summary", "custom-title", "ai-title")


class Transcript:
    """Lines of one conversation, taken in their order, become its messages.

    ``skipped`` counts lines without anything that was said, by their kind.
    """

    def __init__(self, session: SessionId, *, child: bool, began: datetime) -> None:
        """``child``: a sub-agent's, whose user messages no person typed. ``began`` dates lines that have no date."""
        self._session = session
        self._child = child
        self._last = began
        self._waiting: dict[MessageId, Message] = {}
        self._calls: dict[str, tuple[MessageId, PartId]] = {}
        self.skipped: Counter[str] = Counter()

    def take(self, line: Json) -> list[Message]:
        """Take a line; the messages that are ready now, oldest first."""
        self._last = when(line) or self._last
        kind = line.get("type")
        number = _text(line.get("uuid"))
        message = None
        if kind in ("user", "assistant") and number is not None:
            message = self._message(line, MessageId(number), Role(str(kind)))
        elif kind == "system" and line.get("subtype") == "compact_boundary" and number is not None:
            message = self._boundary(line, MessageId(number))
        else:
            self.skipped[_name(line)] += 1
        if message is not None and message.parts:
            self._waiting.setdefault(message.id, message)
        return self._ready(at_most=MOST_WAITING)

    def finish(self) -> list[Message]:
        """What is left. A message whose tool has not answered yet is unfinished, so that it may still grow."""
        return self._ready(at_most=0)

    def _ready(self, *, at_most: int) -> list[Message]:
        ready: list[Message] = []
        open_messages = {message for message, _ in self._calls.values()}
        while self._waiting:
            number = next(iter(self._waiting))
            if number in open_messages and len(self._waiting) <= at_most:
                break
            message = self._waiting.pop(number)
            unfinished = number in open_messages
            ready.append(message if not unfinished else replace(message, completed_at=None))
        gone = {message.id for message in ready}
        self._calls = {call: place for call, place in self._calls.items() if place[0] not in gone}
        return ready

    def _message(self, line: Json, number: MessageId, role: Role) -> Message:
        told = _object(line.get("message"))
        synthetic = role is Role.USER and (
            self._child or bool(line.get("isMeta")) or bool(line.get("isCompactSummary"))
        )
        parts: list[Part] = []
        for position, block in enumerate(_blocks(told.get("content"))):
            part = self._part(block, number, PartId(f"{number}-{position:04d}"), synthetic=synthetic)
            if part is not None:
                parts.append(part)
        return Message(
            id=number,
            session=self._session,
            role=role,
            agent=_text(line.get("agentId")),
            model=_text(told.get("model")),
            created_at=self._last,
            completed_at=self._last,
            parts=tuple(parts),
        )

    def _part(self, block: Json, message: MessageId, number: PartId, *, synthetic: bool) -> Part | None:
        match block.get("type"):
            case "text":
                text = _text(block.get("text")) or ""
                programs = synthetic or text.lstrip().startswith(_PROGRAMS_WORDS)
                return Part(id=number, kind="text", text=text, synthetic=programs) if text.strip() else None
            case "thinking":
                text = _text(block.get("thinking")) or ""
                return Part(id=number, kind="reasoning", text=text) if text.strip() else None
            case "tool_use":
                return self._called(block, message, number)
            case "tool_result":
                return self._answered(block, number)
            case "image" | "document":
                return Part(id=number, kind="file", synthetic=synthetic, detail=_file(_object(block.get("source"))))
        return None

    def _called(self, block: Json, message: MessageId, number: PartId) -> Part:
        call = _text(block.get("id"))
        if call is not None:
            self._calls[call] = (message, number)
        state = {"status": "running", "input": block.get("input")}
        return Part(id=number, kind="tool", tool=_text(block.get("name")) or "tool", detail=_tool(call, state))

    def _answered(self, block: Json, number: PartId) -> Part | None:
        """Put a result beside its call, which is still held back; one whose call is unknown stands for itself."""
        call = _text(block.get("tool_use_id"))
        text = _said(block.get("content"))
        status = "error" if block.get("is_error") else "completed"
        message, part = self._calls.pop(call or "", (None, None))
        asked = self._waiting.get(message) if message is not None else None
        if asked is None:
            return Part(id=number, kind="tool", tool="tool", text=text, detail=_tool(call, {"status": status}))
        parts = tuple(_with_answer(item, text, status) if item.id == part else item for item in asked.parts)
        self._waiting[asked.id] = replace(asked, completed_at=self._last, parts=parts)
        return None

    def _boundary(self, line: Json, number: MessageId) -> Message:
        """Where the conversation was compacted: what stands before it was no longer shown to the model."""
        part = Part(
            id=PartId(f"{number}-0000"),
            kind="compaction",
            synthetic=True,
            detail=_dump(_object(line.get("compactMetadata"))),
        )
        return Message(
            id=number, session=self._session, role=Role.SYSTEM, created_at=self._last, completed_at=self._last,
            parts=(part,),
        )  # fmt: skip


def when(line: Json) -> datetime | None:
    """The time of a line."""
    try:
        moment = datetime.fromisoformat(str(line.get("timestamp")))
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo and 1970 <= moment.year < 9999 else None


def title_of(line: Json) -> str | None:
    """The title that a line gives a conversation; None for every other line."""
    if line.get("type") not in _SUMMARY_KINDS:
        return None
    titles = (line.get("summary"), line.get("customTitle"), line.get("aiTitle"), line.get("title"))
    return next((title for title in titles if _text(title)), None)


def is_conversation(line: object) -> bool:
    """Whether a JSON value is a line of a transcript in which something was said."""
    return (
        isinstance(line, Mapping)
        and line.get("type") in ("user", "assistant")
        and isinstance(line.get("uuid"), str)
        and isinstance(line.get("sessionId"), str)
        and isinstance(line.get("message"), Mapping)
    )


def _blocks(content: object) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def _said(content: object) -> str:
    """A result's text: a string, or blocks of which some are texts."""
    pieces = (_text(block.get("text")) or f"[{_name(block)}]" for block in _blocks(content))
    return "\n".join(pieces)


def _with_answer(part: Part, text: str, status: str) -> Part:
    """A call with its result, as a tool's part is told by every host."""
    detail = json.loads(part.detail or "{}")
    detail["state"] = {**detail.get("state", {}), "status": status}
    return replace(part, text=text, detail=_dump(detail))


def _tool(call: str | None, state: Json) -> str:
    return _dump({"callID": call, "state": state})


def _file(source: Json) -> str:
    """A picture or document as an address that holds it, or leads to it."""
    kind = _text(source.get("media_type")) or "application/octet-stream"
    data = _text(source.get("data"))
    address = f"data:{kind};base64,{data}" if data and source.get("type") == "base64" else _text(source.get("url"))
    return _dump({"mime": kind, "url": address or f"data:{kind},"})


def _dump(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _name(line: Json) -> str:
    """The kind of a line, as far as it can be shown to people."""
    kind = line.get("type")
    return kind if isinstance(kind, str) and len(kind) <= 40 and kind.isprintable() and kind else "unknown"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _object(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}
