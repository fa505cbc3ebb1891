"""How one state of a memory becomes the next: revised, confirmed, rated, superseded, forgotten.

Every function returns a new value; nothing changes in place. What a memory is stands in ``memory.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from backstory.domain.ids import MemoryId
from backstory.domain.memory import (
    Active,
    Conflicted,
    Deleted,
    Kind,
    Memory,
    Sensitivity,
    Status,
    Superseded,
    Tier,
    Visibility,
)

WEIGHT_STEP = 0.125
"""What one confirmation adds to a weight, up to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What an update sets; None leaves a field as it is (``tags=()`` clears the tags).

    ``lasting`` takes the expiry away; a temporary memory becomes archival then.
    """

    content: str | None = None
    kind: Kind | None = None
    visibility: Visibility | None = None
    area: str | None = None
    tags: tuple[str, ...] | None = None
    issue: str | None = None
    tier: Tier | None = None
    expires_at: datetime | None = None
    sensitivity: Sensitivity | None = None
    lasting: bool = False


def revise(memory: Memory, revision: Revision, *, now: datetime) -> Memory:
    """Apply an update: the learned date and everything not named stay; it is confirmed, and updated, ``now``.

    Rewording a conflicted memory settles the conflict. A temporary memory keeps its expiry unless a new one is given;
    one that becomes permanent loses it.
    """
    changed = {name: value for name in Revision.__slots__ if (value := getattr(revision, name)) is not None}
    if changed.pop("lasting"):
        changed["expires_at"] = None
        if memory.tier is Tier.TEMPORARY:
            changed.setdefault("tier", Tier.ARCHIVAL)
    if revision.tier not in (None, Tier.TEMPORARY) and memory.tier is Tier.TEMPORARY:
        changed.setdefault("expires_at", None)
    status: Status = Active() if isinstance(memory.status, Conflicted) else memory.status
    return replace(
        memory,
        **changed,
        status=status,
        weight=_stronger(memory.weight),
        times=replace(memory.times, updated=now, confirmed=now),
    )


def supersede(old: Memory, *, by: MemoryId, now: datetime) -> Memory:
    """Mark ``old`` as replaced. Superseding again moves the pointer to the newest replacement."""
    return replace(old, status=Superseded(by=by, since=now))


def forget(memory: Memory, *, now: datetime, reason: str | None) -> Memory:
    """Hide a memory everywhere; its text stays in the history."""
    return replace(memory, status=Deleted(since=now, reason=reason))


def reactivate(memory: Memory) -> Memory:
    """Make a superseded or deleted memory current again."""
    return replace(memory, status=Active())


def set_pin(memory: Memory, *, pinned: bool) -> Memory:
    """Pin or unpin; a pinned memory never decays, is never pruned, and stands in every snapshot."""
    return replace(memory, pinned=pinned)


def confirm(memory: Memory, *, now: datetime) -> Memory:
    """Somebody said it again: it is confirmed ``now``, weighs more, and lives that much longer if it is temporary."""
    expires = memory.expires_at
    if memory.tier is Tier.TEMPORARY and expires is not None:
        expires = now + max(expires - memory.times.confirmed, timedelta(0))
    weight = _stronger(memory.weight)
    return replace(memory, expires_at=expires, weight=weight, times=replace(memory.times, confirmed=now))


def found_useful(memory: Memory, *, now: datetime) -> Memory:
    """It helped: counted, and confirmed ``now``. Origin, tier, pin, weight and expiry stay as they are."""
    counters = replace(memory.counters, helpful=memory.counters.helpful + 1)
    return replace(memory, counters=counters, times=replace(memory.times, confirmed=now))


def found_irrelevant(memory: Memory) -> Memory:
    """It was shown and did not help: counted, and no date moves."""
    return replace(memory, counters=replace(memory.counters, irrelevant=memory.counters.irrelevant + 1))


def _stronger(weight: float) -> float:
    return min(1.0, weight + WEIGHT_STEP)


def retag(memory: Memory, *, old: str, new: str) -> Memory:
    """Rename one tag, keeping the order; if both were there, one remains at the earlier place."""
    renamed = tuple(dict.fromkeys(new if tag == old else tag for tag in memory.tags))
    return replace(memory, tags=renamed)
