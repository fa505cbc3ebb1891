"""Which derived facts have faded and may go. What a person or an agent stated never does.

Nothing here removes anything: ``services/pruning.py`` does, as a change that can be undone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from backstory.domain.ids import MemoryId, ProjectId
from backstory.domain.memory import (
    Active,
    Conflicted,
    Deleted,
    Expired,
    Memory,
    Source,
    Superseded,
    Visibility,
    status_at,
)
from backstory.domain.worth import DERIVED, worth


@dataclass(frozen=True, slots=True, kw_only=True)
class PruningPolicy:
    """When a fact has faded. ``floor`` is the least worth kept, ``at_most`` how many facts a project keeps, and
    ``tombstone`` how long one stays that was superseded. The figures are opencode-memory's; ``sources`` is our
    promise."""

    floor: float = 0.15
    at_most: int = 400
    tombstone: timedelta = timedelta(days=30)
    sources: frozenset[Source] = DERIVED


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A memory that may go, and why, in a few words."""

    memory: Memory
    reason: str


def to_prune(
    memories: Sequence[Memory], *, now: datetime, policy: PruningPolicy, kept: Collection[MemoryId] = ()
) -> list[Removal]:
    """What may go of these memories, least worth first.

    Never a pinned one, one in ``kept``, or either side of a conflict: those wait for a person. The cap counts what is
    left of the rest, for each project apart, and global facts as one more; what was superseded is not counted. Of equal
    worth, the one confirmed last stays, then the newest.
    """
    disputed = _disputed(memories)
    removals: list[Removal] = []
    living: defaultdict[ProjectId | None, list[Memory]] = defaultdict(list)
    for memory in memories:
        if not _may_go(memory, policy) or memory.id in kept or memory.id in disputed:
            continue
        reason = _faded(memory, now, policy)
        if reason is not None:
            removals.append(Removal(memory=memory, reason=reason))
        elif not isinstance(memory.status, Superseded):
            living[None if memory.visibility is Visibility.GLOBAL else memory.project].append(memory)
    for facts in living.values():
        removals += _beyond(facts, now, policy)
    return sorted(removals, key=lambda removal: _standing(removal.memory, now))


def _may_go(memory: Memory, policy: PruningPolicy) -> bool:
    return memory.source in policy.sources and not memory.pinned and not isinstance(memory.status, Deleted)


def _disputed(memories: Iterable[Memory]) -> set[MemoryId]:
    """Both sides of every conflict."""
    disputed: set[MemoryId] = set()
    for memory in memories:
        if isinstance(memory.status, Conflicted):
            disputed.add(memory.id)
            if memory.status.against is not None:
                disputed.add(memory.status.against)
    return disputed


def _faded(memory: Memory, now: datetime, policy: PruningPolicy) -> str | None:
    """Why a memory may go by itself, however many others there are; None where it may not."""
    status = status_at(memory, now)
    match status:
        case Expired():
            return f"its time ran out on {status.since:%Y-%m-%d}"
        case Superseded():
            is_old = now - status.since > policy.tombstone
            return f"it was replaced on {status.since:%Y-%m-%d}" if is_old else None
        case Active() | Conflicted():
            left = worth(memory, now)
            return f"worth {left:.2f}, below {policy.floor:.2f}" if left < policy.floor else None
        case Deleted():
            return None
        case _:
            assert_never(status)


def _beyond(facts: list[Memory], now: datetime, policy: PruningPolicy) -> list[Removal]:
    facts.sort(key=lambda memory: _standing(memory, now), reverse=True)
    return [
        Removal(memory=memory, reason=f"worth {worth(memory, now):.2f}, beyond the best {policy.at_most}")
        for memory in facts[policy.at_most :]
    ]


def _standing(memory: Memory, now: datetime) -> tuple[float, datetime, datetime, int]:
    return worth(memory, now), memory.times.confirmed, memory.times.learned, memory.n
