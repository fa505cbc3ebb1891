"""Doubts about memories in a dictionary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backstory.adapters.stores.memory.memories import InMemoryMemories
from backstory.domain.doubt import Doubt
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Deleted


class InMemoryDoubts:
    """The DoubtStore in a dict."""

    def __init__(self, memories: InMemoryMemories) -> None:
        self._memories = memories

    async def doubts(self, memories: Sequence[MemoryId] | None = None) -> Mapping[MemoryId, Doubt]:
        kept = self._memories.doubts
        return {memory: kept[memory] for memory in (sorted(kept) if memories is None else memories) if memory in kept}

    async def replace(self, looked_at: Sequence[MemoryId], doubts: Sequence[Doubt]) -> None:
        for memory in looked_at:
            self._memories.doubts.pop(memory, None)
        meant = set(looked_at)
        for doubt in doubts:
            if doubt.memory in meant and self._may_have_one(doubt.memory):
                self._memories.doubts[doubt.memory] = doubt

    def _may_have_one(self, memory_id: MemoryId) -> bool:
        memory = self._memories.rows.get(memory_id)
        return memory is not None and not isinstance(memory.status, Deleted)
