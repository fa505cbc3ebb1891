"""What an agent tells by a hook, whichever agent it is, and the two ways in which it is written down.

The fields of the generic form are described in docs/reference/hook-protocol.md.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from backstory.domain.ids import MessageId, SessionId
from backstory.errors import InputError

MAX_NAME_CHARS = 200
GENERIC = "generic"

_AGENT = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")

Payload = Mapping[str, object]


class Event(StrEnum):
    """When an agent calls."""

    PROMPT = "prompt"
    SESSION_START = "session-start"
    STOP = "stop"
    PRE_COMPACT = "pre-compact"
    SESSION_END = "session-end"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """One call. ``agent`` names the host of the session; ``message`` is the prompt's id, the same each time that the
    prompt is told. ``answer`` is what the agent said last. ``transcript`` is a file that the agent writes.
    ``is_subagent`` tells that no person typed the prompt, ``is_renewed`` that the session starts with a fresh context.
    """

    event: Event
    agent: str
    session: SessionId
    message: MessageId
    directory: Path
    text: str = ""
    answer: str = ""
    transcript: Path | None = None
    is_subagent: bool = False
    is_renewed: bool = False


class HookFormat(Protocol):
    """How one agent writes its calls and reads the answers."""

    def read(self, event: Event, payload: Payload) -> HookCall:
        """The call. Raises InputError, naming the field."""
        ...

    def write(self, event: Event, text: str | None) -> dict[str, object]:
        """The answer, whose ``text`` goes before the model; without one nothing is added and nothing is stopped."""
        ...


class GenericFormat:
    """The form for agents that have none of their own here."""

    def read(self, event: Event, payload: Payload) -> HookCall:
        """See ``HookFormat``."""
        session = named(payload, "session")
        prompt = said(payload, "prompt")
        message = said(payload, "message")
        return HookCall(
            event=event,
            agent=agent_name(said(payload, "agent") or GENERIC),
            session=SessionId(session),
            message=MessageId(named(payload, "message")) if message else made_id(session, prompt),
            directory=directory(payload, "directory"),
            text=prompt,
            answer=said(payload, "answer"),
            transcript=path(payload, "transcript"),
            is_subagent=payload.get("subagent") is True,
            is_renewed=payload.get("compacted") is True,
        )

    def write(self, event: Event, text: str | None) -> dict[str, object]:
        """See ``HookFormat``."""
        return {"context": text}

    def tell(self, call: HookCall) -> dict[str, object]:
        """What ``read`` reads as this call: to hand it on to another process, under the same id."""
        return {
            "agent": call.agent,
            "session": call.session,
            "message": call.message,
            "directory": str(call.directory),
            "prompt": call.text,
            "answer": call.answer,
            "transcript": None if call.transcript is None else str(call.transcript),
            "subagent": call.is_subagent,
            "compacted": call.is_renewed,
        }


def event_of(word: str) -> Event:
    """The event of this name. Raises InputError."""
    try:
        return Event(word)
    except ValueError:
        known = ", ".join(Event)
        raise InputError(f"there is no event {word[:MAX_NAME_CHARS]!r}; there are {known}", field="event") from None


def agent_name(text: str) -> str:
    """A name for the host of sessions: lower-case letters, digits and dashes. Raises InputError."""
    if not _AGENT.fullmatch(text):
        raise InputError(f"{text[:60]!r} is no agent's name (a-z, 0-9 and dashes, at most 40)", field="agent")
    return text


def said(payload: Payload, field: str) -> str:
    """A text, or "" where there is none. Half a surrogate pair becomes a replacement sign. Raises InputError."""
    value = payload.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"{field} must be a text, not {type(value).__name__}", field=field)
    return value.encode("utf-8", "replace").decode() if any("\ud800" <= char <= "\udfff" for char in value) else value


def named(payload: Payload, field: str) -> str:
    """A short text that must be there. Raises InputError."""
    text = said(payload, field)
    if not text or len(text) > MAX_NAME_CHARS or not text.isprintable():
        raise InputError(f"{field} must be 1 to {MAX_NAME_CHARS} printable characters", field=field)
    return text


def directory(payload: Payload, field: str) -> Path:
    """The folder that the agent works in; the current one where none is told. Raises InputError."""
    found = path(payload, field)
    if found is not None:
        return found
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise InputError(f"{field} is missing, and the current folder does not exist", field=field) from None


def path(payload: Payload, field: str) -> Path | None:
    """An absolute path, or None where there is none; ``~`` is the home folder. Raises InputError."""
    text = said(payload, field)
    if not text:
        return None
    try:
        found = Path(text).expanduser()
    except RuntimeError:
        found = Path(text)
    if not found.is_absolute() or "\0" in text:
        raise InputError(f"{field} must be an absolute path", field=field)
    return found


def made_id(*parts: str) -> MessageId:
    """An id for a message whose agent tells none: the same for the same words in the same place."""
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=12).hexdigest()
    return MessageId(f"hook_{digest}")
