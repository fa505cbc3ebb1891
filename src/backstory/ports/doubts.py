"""Where doubts about memories are kept: derived, and replaced with each look at the repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from backstory.domain.doubt import Doubt
from backstory.domain.ids import MemoryId


class DoubtStore(Protocol):
    """Doubts, at most one for a memory."""

    async def doubts(self, memories: Sequence[MemoryId] | None = None) -> Mapping[MemoryId, Doubt]:
        """The doubts about these memories, those without any left out; without ids, all. Cheap: one look by key."""
        ...

    async def replace(self, looked_at: Sequence[MemoryId], doubts: Sequence[Doubt]) -> None:
        """Keep these doubts; every other one about a memory of ``looked_at`` goes, all or none.

        A doubt about a memory that is not in ``looked_at``, or that is not known, is not kept. A doubt goes by itself,
        in the same commit, when its memory's text changes.
        """
        ...
