"""Which memories every session starts with: those that are pinned, and the core ones that are worth most."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from backstory.domain.memory import Memory, Tier
from backstory.domain.worth import worth

CORE_SLOTS = 3
"""How many core memories are offered whatever the prompt; opencode-memory's figure."""


def always_offered(
    pinned: Sequence[Memory], core: Sequence[Memory], *, now: datetime, slots: int = CORE_SLOTS
) -> list[Memory]:
    """All pinned memories in their order, then core ones, the worthiest first, until ``slots`` are core in all.

    A pinned memory that is also core takes a slot. Those that find none are offered when a prompt needs them, like any
    other. Of equal worth, the one confirmed last comes first, then the one with the higher number.
    """
    known = {memory.id for memory in pinned}
    left = max(0, slots - sum(memory.tier is Tier.CORE for memory in pinned))
    others = (memory for memory in core if memory.id not in known)
    best = sorted(others, key=lambda memory: (worth(memory, now), memory.times.confirmed, memory.n), reverse=True)
    return [*pinned, *best[:left]]
