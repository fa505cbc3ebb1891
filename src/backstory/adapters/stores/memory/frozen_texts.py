"""Texts frozen beside messages and sessions, in dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from backstory.domain.conversation import FrozenBlock, FrozenSnapshot, Session
from backstory.domain.history import WITHHELD
from backstory.domain.ids import MemoryId, MessageId, ProjectId, SessionId


class InMemoryFrozenTexts:
    """The FrozenTexts in dicts, and the sessions they belong to."""

    def __init__(self) -> None:
        self._sessions: dict[SessionId, Session] = {}
        self._blocks: dict[MessageId, FrozenBlock] = {}
        self._snapshots: dict[SessionId, FrozenSnapshot] = {}
        self.is_withheld: Callable[[MemoryId], bool] = lambda memory: False
        """Whether a memory may be in no frozen text; the memories beside this say."""

    async def freeze_block(self, block: FrozenBlock) -> FrozenBlock:
        if any(self.is_withheld(item.memory) for item in block.shown):
            block = replace(block, text="", shown=(), silent_because=WITHHELD)
        return self._blocks.setdefault(block.message, block)

    async def withdraw_block(self, message: MessageId, *, because: str) -> None:
        if message in self._blocks:
            self._blocks[message] = replace(self._blocks[message], text="", shown=(), silent_because=because)

    async def blocks(self, messages: Sequence[MessageId]) -> Mapping[MessageId, FrozenBlock]:
        return {message: self._blocks[message] for message in messages if message in self._blocks}

    async def recent_blocks(
        self,
        *,
        session: SessionId | None = None,
        project: ProjectId | None = None,
        showing: MemoryId | None = None,
        limit: int = 20,
    ) -> list[FrozenBlock]:
        meant = [
            block
            for block in self._blocks.values()
            if (session is None or block.session == session)
            and (project is None or self._is_of(block.session, project))
            and (showing is None or any(item.memory == showing for item in block.shown))
        ]
        return sorted(meant, key=lambda block: (block.created_at, block.message), reverse=True)[:limit]

    async def freeze_snapshot(self, snapshot: FrozenSnapshot) -> FrozenSnapshot:
        if any(map(self.is_withheld, snapshot.shown)):
            return self._snapshots.get(snapshot.session) or replace(snapshot, text="", shown=())
        return self._snapshots.setdefault(snapshot.session, snapshot)

    async def snapshot(self, session_id: SessionId) -> FrozenSnapshot | None:
        return self._snapshots.get(session_id)

    async def thaw_snapshot(self, session_id: SessionId) -> None:
        self._snapshots.pop(session_id, None)

    def withdraw_showing(self, memories: Sequence[MemoryId], *, because: str) -> None:
        """Empty the blocks and let go of the snapshots that show one of the memories; for the memories beside this."""
        hidden = set(memories)
        for message, block in self._blocks.items():
            if block.text and any(item.memory in hidden for item in block.shown):
                self._blocks[message] = replace(block, text="", silent_because=because)
        self._snapshots = {key: kept for key, kept in self._snapshots.items() if hidden.isdisjoint(kept.shown)}

    def _is_of(self, session_id: SessionId, project: ProjectId) -> bool:
        session = self._sessions.get(session_id)
        return session is not None and session.project == project
