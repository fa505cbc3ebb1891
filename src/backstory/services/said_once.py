"""No two current memories say the same to the same readers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory
from backstory.domain.restatement import but_for_its_full_stop, same_for_same_readers
from backstory.errors import Conflict
from backstory.ports.store import MemoryStore


async def known_as(memory: Memory, store: MemoryStore, *, now: datetime) -> Memory | None:
    """The current memory that says so already, with or without a full stop, if there is one."""
    same = same_for_same_readers(memory, now)
    other = but_for_its_full_stop(memory.content)
    for selection in [same] if other is None else [same, replace(same, same_text=other)]:
        for known in await store.select(selection, limit=1):
            return known
    return None


async def check_said_once(
    memory: Memory, store: MemoryStore, *, now: datetime, beside: Collection[MemoryId] = ()
) -> None:
    """Raise Conflict when a memory, other than this one and those beside it, says the same to the same readers."""
    for known in await store.select(same_for_same_readers(memory, now), limit=len(beside) + 2):
        if known.id != memory.id and known.id not in beside:
            raise Conflict(f"memory #{known.n} says so already; forget one of them, #{known.n} or #{memory.n}")
