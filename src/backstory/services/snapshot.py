"""What the snapshot of a session says: the memories that are always offered, summaries, and notes of other sessions.

Keeping it, the same for the whole session, is ``context_block.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from backstory.domain.context_block import Block, snapshot_block
from backstory.domain.conversation import FrozenSnapshot
from backstory.domain.core_slots import always_offered
from backstory.domain.ids import MemoryId, ProjectId, SessionId
from backstory.domain.memory import Memory, Tier
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.ports.backend import Backend
from backstory.ports.system import Clock, TokenCounter

if TYPE_CHECKING:
    from backstory.domain.dream_state import Summary

_CORE_AT_MOST = 1000  # the newest; more of them are no core


class OfferedSummaries(Protocol):
    """See ``dreaming_summary.Summaries``."""

    async def offered(self, project: ProjectId | None) -> Sequence[Summary]:
        """The summaries that may be shown in a project."""
        ...


class SnapshotComposer:
    """Composes snapshots of at most ``budget_tokens``, with at most ``core_slots`` core memories."""

    def __init__(
        self,
        backend: Backend,
        *,
        clock: Clock,
        tokens: TokenCounter,
        budget_tokens: int,
        core_slots: int,
        summaries: OfferedSummaries | None,
    ) -> None:
        """``summaries`` stand at the beginning, if they are given."""
        self._backend = backend
        self._clock = clock
        self._tokens = tokens
        self._budget_tokens = budget_tokens
        self._core_slots = core_slots
        self._summaries = summaries

    async def compose(
        self, viewer: Viewer, session: SessionId, *, project_name: Callable[[ProjectId], str], notes: str | None
    ) -> FrozenSnapshot:
        """A snapshot as of now, ``notes`` of other sessions at its end; its text is empty where nothing is to be said.
        Nothing is kept. Raises what the store raises."""
        memories = await self._always_offered(viewer)
        block = snapshot_block(
            memories,
            budget_tokens=self._budget_tokens,
            max_entries=len(memories),
            count_tokens=self._tokens.count,
            here=viewer.project,
            project_name=project_name,
            summaries=await self._offered_summaries(viewer),
            doubts=await self._backend.doubts.doubts([memory.id for memory in memories]),
        )
        texts = [block.text if block else None, notes]
        return FrozenSnapshot(
            session=session,
            text="\n".join(filter(None, texts)),
            shown=_told_of(block) if block else (),
            created_at=self._clock.now(),
        )

    async def _offered_summaries(self, viewer: Viewer) -> Sequence[Summary]:
        return [] if self._summaries is None else await self._summaries.offered(viewer.project)

    async def _always_offered(self, viewer: Viewer) -> list[Memory]:
        """Pinned memories, newest first, then the core ones that are worth most."""
        viewer = replace(viewer, audience=Audience.MODEL, all_projects=False)
        now = self._clock.now()
        selection = Selection(viewer=viewer, now=now, offerable=True)
        pinned = await self._backend.memories.select(replace(selection, pinned=True), limit=50)
        core = await self._backend.memories.select(replace(selection, tier=Tier.CORE), limit=_CORE_AT_MOST)
        return always_offered(pinned, core, now=now, slots=self._core_slots)


def _told_of(block: Block) -> tuple[MemoryId, ...]:
    """The memories in a snapshot, those included that its summaries were made from: none of them may be withheld."""
    summed_up = (source for summary in block.summaries for source in summary.sources)
    return tuple(dict.fromkeys([*(memory.id for memory in block.shown), *summed_up]))
