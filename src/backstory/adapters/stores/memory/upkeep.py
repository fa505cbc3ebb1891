"""The StoreUpkeep of the store in dictionaries: nothing in it can be damaged, and nothing of it is copied."""

from __future__ import annotations

import sys
from pathlib import Path

from backstory.adapters.stores.memory.conversation import InMemoryConversations
from backstory.adapters.stores.memory.memories import InMemoryMemories
from backstory.adapters.stores.memory.projects import InMemoryProjects
from backstory.errors import StoreUnavailable
from backstory.ports.upkeep import Finding, Progress, Rebuilt, Restored, Salvage


class InMemoryUpkeep:
    """The StoreUpkeep over dictionaries."""

    def __init__(
        self, memories: InMemoryMemories, conversations: InMemoryConversations, projects: InMemoryProjects
    ) -> None:
        self._memories = memories
        self._conversations = conversations
        self._projects = projects

    async def exists(self) -> bool:
        return True

    async def try_writing(self) -> None:
        """Nothing is ever in the way."""

    async def verify(self, *, full: bool = False) -> list[Finding]:
        return []

    async def rebuild(self, *, progress: Progress | None = None) -> Rebuilt:
        return Rebuilt(memories=len(self._memories.rows))  # words and passages are made at each search

    async def backup(self, to: Path, *, overwrite: bool = False) -> int:
        raise StoreUnavailable("the store is `memory`, which nothing outlives; `backstory export` writes its memories")

    async def restore(self, source: Path) -> Restored:
        raise StoreUnavailable("the store is `memory`, which nothing outlives; nothing can be restored into it")

    async def salvage(self) -> Salvage:
        return Salvage(
            memories=list(self._memories.rows.values()),
            projects=await self._projects.projects(),
            sessions=await self._conversations.sessions(limit=sys.maxsize),
            messages=self._conversations.told(),
            blobs=self._conversations.blobs_kept(),
        )
