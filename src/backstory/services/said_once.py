"""No two current memories say the same to the same readers."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory
from backstory.domain.restatement import same_for_same_readers
from backstory.errors import Conflict
from backstory.ports.store import MemoryStore


async def known_as(memory: Memory, store: MemoryStore, *, now: datetime) -> Memory | None:
    """The current memory that says so already, if there is one."""
    return next(iter(await store.select(same_for_same_readers(memory, now), limit=1)), None)


async def check_said_once(
    memory: Memory, store: MemoryStore, *, now: datetime, beside: Collection[MemoryId] = ()
) -> None:
    """Raise Conflict when a memory, other than this one and those beside it, says the same to the same readers."""
    for known in await store.select(same_for_same_readers(memory, now), limit=len(beside) + 2):
        if known.id != memory.id and known.id not in beside:
            raise Conflict(f"memory #{known.n} says so already; forget one of them, #{known.n} or #{memory.n}")
