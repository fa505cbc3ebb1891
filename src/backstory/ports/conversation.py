"""Where evidence lives: sessions and messages as the host told them, and what was put in front of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from backstory.domain.conversation import FrozenBlock, FrozenSnapshot, Message, Part, Session
from backstory.domain.ids import MemoryId, MessageId, PartId, ProjectId, SessionId


class ConversationStore(Protocol):
    """Sessions, messages, parts, and the frozen texts beside them. Writes are idempotent, so a host may repeat itself
    and two processes may tell the same event."""

    async def put_session(self, session: Session) -> None:
        """Add a session or bring it up to date; title and parent already known are kept when the new ones are None."""
        ...

    async def session(self, session_id: SessionId) -> Session | None:
        """One session."""
        ...

    async def sessions(self, *, limit: int, project: str | None = None) -> list[Session]:
        """Sessions, the most recently updated first, then by id; of one project, or of all."""
        ...

    async def put_messages(self, messages: Sequence[Message]) -> None:
        """Add messages or bring them up to date, all or none; parts are upserted by id, and parts not named stay.

        A completion time once set stays. A message of an unknown session is stored all the same.
        """
        ...

    async def put_part(self, part: Part, *, message: MessageId, session: SessionId) -> None:
        """Add one part or replace it. Its message may arrive later."""
        ...

    async def mark_removed(self, message: MessageId, *, at: datetime) -> None:
        """The host took a message back (undo). It stays as evidence, marked; the first mark stays. An unknown message
        is no error and leaves no trace."""
        ...

    async def remove_part(self, part: PartId) -> None:
        """The host took a part back."""
        ...

    async def messages(self, session_id: SessionId, *, limit: int = 1000, offset: int = 0) -> list[Message]:
        """A session's messages, oldest first and then by id, each with its parts in the order of their ids."""
        ...

    async def find_messages(self, messages: Sequence[MessageId]) -> list[Message]:
        """The messages with these ids, in the order of ``messages``; unknown ones are left out."""
        ...

    async def count_messages(self) -> int:
        """How many messages are kept."""
        ...

    async def freeze_block(self, block: FrozenBlock) -> FrozenBlock:
        """Keep what goes beside a message. The first one wins: returns what is stored for that message."""
        ...

    async def withdraw_block(self, message: MessageId, *, because: str) -> None:
        """The host did not show what was frozen (it came too late): keep it as empty, so that it is never replayed."""
        ...

    async def blocks(self, messages: Sequence[MessageId]) -> Mapping[MessageId, FrozenBlock]:
        """The frozen blocks of these messages; unknown ones are left out."""
        ...

    async def recent_blocks(
        self,
        *,
        session: SessionId | None = None,
        project: ProjectId | None = None,
        showing: MemoryId | None = None,
        limit: int = 20,
    ) -> list[FrozenBlock]:
        """Blocks, newest first, silent and withdrawn ones included: of one session, of the known sessions of one
        project, and those that show a memory; without conditions all. Conditions must all hold."""
        ...

    async def freeze_snapshot(self, snapshot: FrozenSnapshot) -> FrozenSnapshot:
        """Keep a session's snapshot. The first one wins until ``thaw_snapshot``: returns what is stored."""
        ...

    async def snapshot(self, session_id: SessionId) -> FrozenSnapshot | None:
        """The session's snapshot, if one was frozen."""
        ...

    async def thaw_snapshot(self, session_id: SessionId) -> None:
        """Forget the snapshot, so that the next request makes a new one (after a compaction)."""
        ...
