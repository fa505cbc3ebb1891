"""Hide everything that is known at a place, or let go of its summary: what opencode-memory calls to clear."""

from __future__ import annotations

from dataclasses import replace

from backstory.domain.history import Author, Change
from backstory.domain.memory import Visibility
from backstory.domain.scope import Viewer, may_change
from backstory.domain.selection import WITH_SUPERSEDED, Selection
from backstory.ports.dreams import DreamStore
from backstory.ports.store import MemoryStore
from backstory.ports.system import Clock
from backstory.services.remember import Remember

_ALL = 100_000


class Clearing:
    """Clears what may be changed from one place; nothing of another project, and nothing local-only for a model."""

    def __init__(self, memories: MemoryStore, dreams: DreamStore, remember: Remember, *, clock: Clock) -> None:
        self._memories = memories
        self._dreams = dreams
        self._remember = remember
        self._clock = clock

    async def memories(self, viewer: Viewer, visibility: Visibility | None, *, author: Author) -> Change | None:
        """Forget all memories, or those of one visibility, as one change that can be undone; None where there are none.

        Summaries that were made from them go with them.
        """
        here = replace(viewer, all_projects=False)
        selection = Selection(viewer=here, now=self._clock.now(), visibility=visibility, states=WITH_SUPERSEDED)
        found = await self._memories.select(selection, limit=_ALL)
        refs = [memory.id for memory in found if may_change(memory, here)]
        if not refs:
            return None
        return await self._remember.forget(refs, viewer=here, author=author, reason="everything was cleared")

    async def summaries(self, viewer: Viewer) -> bool:
        """Let go of the project's summary and of the one of everywhere; False when there was neither. The next dream
        writes them anew."""
        places = {None, viewer.project}
        return any([await self._dreams.drop_summary(place) for place in places])
