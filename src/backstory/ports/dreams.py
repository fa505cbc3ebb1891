"""How far sessions have been distilled, and the summaries of projects: written by one process at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from backstory.domain.dream_state import DreamState, Summary
from backstory.domain.ids import ProjectId, SessionId


class DreamStore(Protocol):
    """The journal of dreaming. Sessions need not be known to the archive."""

    async def state(self, session: SessionId) -> DreamState | None:
        """Where a session stands; None where it was never looked at."""
        ...

    async def apply(self, state: DreamState) -> bool:
        """Write a state durably, if the session is still at ``state.revision``; it is one further afterwards. False,
        and nothing is written, when somebody else was first."""
        ...

    async def due(self, *, now: datetime, limit: int, project: ProjectId | None = None) -> Sequence[SessionId]:
        """Sessions that are due, that nobody holds a live lease of and whose ``not_before`` has passed, the most
        recently updated first; of one project, or of all."""
        ...

    async def forget(self, session: SessionId) -> bool:
        """Remove a session's state for good; False when there was none."""
        ...

    async def summary(self, project: ProjectId | None) -> Summary | None:
        """The summary of a project, or of what is global; None where none is kept."""
        ...

    async def put_summary(self, summary: Summary) -> None:
        """Keep a summary in place of the one before. One with a source that is forgotten, superseded, or neither
        normal nor known at this moment is not kept; so a summary never outlives what it was made from."""
        ...

    async def drop_summary(self, project: ProjectId | None) -> bool:
        """Remove a summary; False when there was none."""
        ...
