"""Dream states of sessions and summaries of projects in dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from backstory.adapters.stores.memory.memories import InMemoryMemories
from backstory.domain.dream_state import DreamState, Summary
from backstory.domain.history import may_be_summed_up
from backstory.domain.ids import ProjectId, SessionId


class InMemoryDreams:
    """The DreamStore in dicts. Nothing in it waits, so that no other task comes between looking and writing."""

    def __init__(self, memories: InMemoryMemories, states: dict[SessionId, DreamState]) -> None:
        """``states`` is where they are kept, since others must reach them too."""
        self._memories = memories
        self._states = states

    async def state(self, session: SessionId) -> DreamState | None:
        return self._states.get(session)

    async def apply(self, state: DreamState) -> bool:
        known = self._states.get(state.session)
        if state.revision != (0 if known is None else known.revision):
            return False
        self._states[state.session] = replace(state, revision=state.revision + 1)
        return True

    async def due(self, *, now: datetime, limit: int, project: ProjectId | None = None) -> Sequence[SessionId]:
        waiting = [state for state in self._states.values() if _is_due(state, now) and project in (None, state.project)]
        waiting.sort(key=lambda state: state.session)
        waiting.sort(key=lambda state: state.updated_at, reverse=True)
        return [state.session for state in waiting[:limit]]

    async def forget(self, session: SessionId) -> bool:
        return self._states.pop(session, None) is not None

    async def summary(self, project: ProjectId | None) -> Summary | None:
        return self._memories.summaries.get(project)

    async def put_summary(self, summary: Summary) -> None:
        self._memories.summaries.pop(summary.project, None)
        sources = [self._memories.rows.get(memory) for memory in summary.sources]
        if all(source is not None and may_be_summed_up(source) for source in sources):
            self._memories.summaries[summary.project] = summary

    async def drop_summary(self, project: ProjectId | None) -> bool:
        return self._memories.summaries.pop(project, None) is not None


def _is_due(state: DreamState, now: datetime) -> bool:
    return (
        state.due
        and (state.lease is None or state.lease.expires_at <= now)
        and (state.not_before is None or state.not_before <= now)
    )
