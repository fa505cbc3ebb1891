"""What a memory is: its values and its states.

How one state becomes another is ``lifecycle.py``; how memories are stored, found or shown is elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from backstory.domain.ids import MemoryId, ProjectId, SessionId
from backstory.domain.provenance import Origin, Provenance, is_injectable


class Kind(StrEnum):
    """What sort of statement a memory is."""

    FACT = "fact"
    DECISION = "decision"
    PREFERENCE = "preference"
    LEARNING = "learning"
    BLOCKER = "blocker"
    CONTEXT = "context"
    PATTERN = "pattern"
    STATUS = "status"
    ENVIRONMENT = "environment"
    WORKFLOW = "workflow"
    USER = "user"
    EPISODIC = "episodic"
    OTHER = "other"


class Visibility(StrEnum):
    """Who sees a memory: every project, its own project, or its own session. From the widest to the narrowest."""

    GLOBAL = "global"
    PROJECT = "project"
    SESSION = "session"


class Tier(StrEnum):
    """How a memory is offered: always (core), when it is relevant (archival), or until it expires (temporary)."""

    CORE = "core"
    ARCHIVAL = "archival"
    TEMPORARY = "temporary"


class Sensitivity(StrEnum):
    """Where a memory may go.

    ``private`` is found by those who search for it, and neither offered unasked nor exported unless asked for.
    ``local-only`` reaches no model, no tool result and no export. From the most open to the most closed.
    """

    NORMAL = "normal"
    PRIVATE = "private"
    LOCAL_ONLY = "local-only"


class Source(StrEnum):
    """How a memory came to be."""

    EXPLICIT = "explicit"
    CAPTURED = "captured"
    DREAMED = "dreamed"
    OBSERVED = "observed"
    IMPORTED = "imported"


_STARTING_WEIGHT = {Source.DREAMED: 0.25, Source.OBSERVED: 0.25}


def starting_weight(source: Source) -> float:
    """The weight a new memory begins with: 0.25 for what was derived, 0.75 for what somebody stated."""
    return _STARTING_WEIGHT.get(source, 0.75)


@dataclass(frozen=True, slots=True)
class Active:
    """Current: it is believed and offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflicted:
    """Another memory says something else; both are kept until someone decides."""

    evidence: str
    since: datetime
    against: MemoryId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Superseded:
    """A newer memory took its place. Hidden unless asked for."""

    by: MemoryId
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """Its time ran out. Never stored: ``status_at`` derives it from ``expires_at``."""

    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """Forgotten: hidden everywhere, kept in the history, restorable by undo."""

    since: datetime
    reason: str | None = None


Status = Active | Conflicted | Superseded | Expired | Deleted


def status_name(status: Status) -> str:
    """The status as one lower-case word, as stores and listings show it."""
    match status:
        case Active():
            return "active"
        case Conflicted():
            return "conflicted"
        case Superseded():
            return "superseded"
        case Expired():
            return "expired"
        case Deleted():
            return "deleted"
        case _:
            assert_never(status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """When things happened to a memory; all aware, in UTC."""

    learned: datetime
    updated: datetime
    confirmed: datetime
    surfaced: datetime | None = None
    used: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """How often; never evidence that a memory is true (exposure is not confirmation)."""

    helpful: int = 0
    irrelevant: int = 0
    surfaced: int = 0
    recalled: int = 0
    sessions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One remembered statement with all that is known about it.

    ``n`` is the small number people type as ``#n``: unique in a store, given at the first write, 0 before. ``revision``
    counts writes and guards against lost updates. ``area`` is a free path such as ``deploy/staging``. ``weight`` and
    ``confidence`` lie in [0, 1]. ``namespace`` groups memories that travel together on one git ref.
    """

    id: MemoryId
    n: int = 0
    revision: int = 0
    content: str
    kind: Kind = Kind.FACT
    visibility: Visibility = Visibility.PROJECT
    project: ProjectId | None
    session: SessionId | None = None
    area: str | None = None
    tags: tuple[str, ...] = ()
    issue: str | None = None
    tier: Tier = Tier.ARCHIVAL
    pinned: bool = False
    expires_at: datetime | None = None
    sensitivity: Sensitivity = Sensitivity.NORMAL
    status: Status = field(default_factory=Active)
    origin: Origin = Origin.USER
    source: Source = Source.EXPLICIT
    confidence: float = 1.0
    weight: float = 1.0
    namespace: str = "agent"
    provenance: Provenance = field(default_factory=Provenance)
    times: Times
    counters: Counters = field(default_factory=Counters)


def status_at(memory: Memory, now: datetime) -> Status:
    """The status as of ``now``: an active or conflicted memory whose ``expires_at`` has come is Expired."""
    if memory.expires_at is not None and memory.expires_at <= now:
        match memory.status:
            case Active() | Conflicted():
                return Expired(since=memory.expires_at)
            case Superseded() | Expired() | Deleted():
                pass
            case _:
                assert_never(memory.status)
    return memory.status


def is_offerable(memory: Memory) -> bool:
    """Whether a memory may reach a model unasked: trusted enough, and neither private nor local-only."""
    return is_injectable(memory.origin) and memory.sensitivity is Sensitivity.NORMAL


def is_withheld(memory: Memory) -> bool:
    """Whether somebody decided that no model is to be shown it any more: forgotten, private or local-only."""
    return isinstance(memory.status, Deleted) or memory.sensitivity is not Sensitivity.NORMAL


def narrower(one: Visibility, other: Visibility) -> Visibility:
    """Of two circles of readers, the narrower one."""
    return max(one, other, key=list(Visibility).index)


def stricter(one: Sensitivity, other: Sensitivity) -> Sensitivity:
    """Of two sensitivities, the one that lets a memory go to fewer places."""
    return max(one, other, key=list(Sensitivity).index)


def searchable_text(memory: Memory) -> str:
    """The text by which a memory is found by words: what it says, and the labels people know it by."""
    labels = [memory.area or "", memory.issue or "", *memory.tags]
    return "\n".join([memory.content, *filter(None, labels)])
