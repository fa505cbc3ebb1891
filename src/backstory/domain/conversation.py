"""The evidence: sessions, messages and parts as the host told them (secrets masked, private text gone)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

from backstory.domain.ids import MemoryId, MessageId, PartId, ProjectId, SessionId

BlobHash = NewType("BlobHash", str)
"""BLAKE2b-256 of a blob's content, in hexadecimal."""


class Role(StrEnum):
    """Who speaks."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation. ``parent`` is set for a sub-agent's session; ``deleted_at`` when the host deleted it (the
    evidence stays until a person removes it)."""

    id: SessionId
    project: ProjectId | None
    host: str
    directory: str
    parent: SessionId | None = None
    title: str | None = None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobRef:
    """Content too large for a part, by which it is found: its hash, its size in bytes, what it is."""

    hash: BlobHash
    size: int
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a message. ``kind`` is the host's word (text, reasoning, tool, file ...). ``synthetic`` parts were put
    there by a program, not typed. ``detail`` is the part as JSON text where more than ``text`` is known. What is too
    large for either is in one of ``blobs``; an excerpt that names it stands in its place (``excerpt.py``)."""

    id: PartId
    kind: str
    text: str = ""
    tool: str | None = None
    synthetic: bool = False
    detail: str | None = None
    blobs: tuple[BlobRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message; parts in the order of their ids. ``completed_at`` None means it may still grow."""

    id: MessageId
    session: SessionId
    role: Role
    agent: str | None = None
    model: str | None = None
    created_at: datetime
    completed_at: datetime | None = None
    removed_at: datetime | None = None
    parts: tuple[Part, ...] = ()


def typed_text(message: Message) -> str:
    """What was really typed or said: the text parts that no program put there, joined by line breaks."""
    return "\n".join(part.text for part in message.parts if part.kind == "text" and not part.synthetic and part.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMemory:
    """One memory in a block: which, how well it matched (0 to 1), and why, in a sentence.

    ``parts`` name what each kind of evidence added to the score (``score_parts.py``); blocks from before they were kept
    have none.
    """

    memory: MemoryId
    n: int
    score: float
    reason: str
    parts: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        """Take the parts as JSON has them, too. Raises ValueError or TypeError where they are none."""
        object.__setattr__(self, "parts", tuple((str(name), float(value)) for name, value in self.parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenBlock:
    """What was put beside one user message, or that nothing was (``text`` empty): replayed byte for byte ever after."""

    message: MessageId
    session: SessionId
    text: str
    shown: tuple[ShownMemory, ...]
    silent_because: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenSnapshot:
    """The constant text of a session's system prompt, until a compaction renews it. Empty: nothing is added."""

    session: SessionId
    text: str
    shown: tuple[MemoryId, ...]
    created_at: datetime
