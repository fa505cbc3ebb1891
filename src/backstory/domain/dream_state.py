"""How far a session has been distilled into memories, and what a project's memories come to in a few sentences."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from backstory.domain.digest import Lease
from backstory.domain.ids import MemoryId, MessageId, ProjectId, SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamState:
    """Where the distilling of a session stands.

    ``revision`` counts the writes, from 0 for a session without any. ``through`` is the last message that was
    distilled, ``through_at`` its time. ``target`` is the message up to which work that has begun will go: after a crash
    the same stretch is done again, and what it wrote already is recognised by it. ``due`` says that something was said
    since; it is not distilled before ``not_before``, nor while a lease is alive. ``attempts`` counts failures in a row
    and ``problem`` is the last one in a sentence.
    """

    session: SessionId
    project: ProjectId | None
    revision: int = 0
    through: MessageId | None = None
    through_at: datetime | None = None
    target: MessageId | None = None
    due: bool = False
    not_before: datetime | None = None
    lease: Lease | None = None
    attempts: int = 0
    problem: str | None = None
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What the memories of a project come to, or of no project (``project`` None: of everything global).

    Derived: made by the model ``made_by`` under the prompt version ``prompt`` from the memories ``sources``. When one
    of them changes its text, is replaced, forgotten or withheld, the summary goes.
    """

    project: ProjectId | None
    text: str
    sources: tuple[MemoryId, ...]
    made_by: str
    prompt: str
    created_at: datetime
