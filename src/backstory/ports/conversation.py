"""Where evidence lives: sessions and messages as the host told them, and what was put in front of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from backstory.domain.conversation import BlobHash, FrozenBlock, FrozenSnapshot, Message, Part, Session
from backstory.domain.ids import MemoryId, MessageId, PartId, ProjectId, SessionId

if TYPE_CHECKING:  # a recall reads no blob
    from backstory.domain.blob import Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCount:
    """How many messages of a session are kept, those taken back included, and when the first and last were made."""

    messages: int
    removed: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What was removed, or would be. ``blob_bytes`` is the size of the blobs' content, ``blocks`` counts frozen blocks
    and snapshots."""

    sessions: int = 0
    messages: int = 0
    parts: int = 0
    passages: int = 0
    blobs: int = 0
    blob_bytes: int = 0
    blocks: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(
            sessions=self.sessions + other.sessions,
            messages=self.messages + other.messages,
            parts=self.parts + other.parts,
            passages=self.passages + other.passages,
            blobs=self.blobs + other.blobs,
            blob_bytes=self.blob_bytes + other.blob_bytes,
            blocks=self.blocks + other.blocks,
        )


class Archive(Protocol):
    """Sessions, messages and parts. Writes are idempotent, so a host may repeat itself and two processes may tell the
    same event."""

    async def put_session(self, session: Session) -> None:
        """Add a session or bring it up to date; title and parent already known are kept when the new ones are None."""
        ...

    async def session(self, session_id: SessionId) -> Session | None:
        """One session."""
        ...

    async def sessions(self, *, limit: int, project: str | None = None) -> list[Session]:
        """Sessions, the most recently updated first, then by id; of one project, or of all."""
        ...

    async def put_messages(self, messages: Sequence[Message], *, blobs: Sequence[Blob] = ()) -> None:
        """Add messages or bring them up to date, all or none; parts are upserted by id, and parts not named stay.

        A completion time once set stays. A message of an unknown session is stored all the same; one that is not kept
        and no younger than the youngest that ``prune`` removed is left out. A file told without its data stays the one
        that is kept. A blob is kept once,
        as long as any part refers to it, and is gone in the same commit as its last reference. Raises InputError when
        a part refers to a blob that is neither in ``blobs`` nor kept.
        """
        ...

    async def put_part(self, part: Part, *, message: MessageId, session: SessionId, blobs: Sequence[Blob] = ()) -> None:
        """Add one part or replace it. Its message may arrive later. ``blobs`` as in ``put_messages``."""
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

    async def part_owners(self, parts: Sequence[PartId]) -> Mapping[PartId, MessageId]:
        """The messages that these parts are kept under, known or not; unknown parts are left out."""
        ...

    async def blob(self, name: BlobHash) -> Blob | None:
        """The content that parts refer to by this hash; None where none is kept."""
        ...

    async def message_ids(self, session_id: SessionId) -> list[MessageId]:
        """The ids of a session's messages in their order. Cost: 1 ms for 10,000."""
        ...

    async def removed_ids(self, session_id: SessionId) -> list[MessageId]:
        """Those of a session's messages that the host took back and that are still kept. Cost as ``message_ids``."""
        ...

    async def message_counts(self) -> Mapping[SessionId, MessageCount]:
        """Of every session that has messages, known or not. Cost: reads an index, about 0.1 s for 100,000 messages."""
        ...

    async def count_messages(self) -> int:
        """How many messages are kept."""
        ...

    async def expired(self, before: datetime) -> Pruned:
        """What ``prune`` would remove in all, the calls together. Changes nothing."""
        ...

    async def prune(self, before: datetime, *, limit: int) -> Pruned:
        """Remove messages made earlier than ``before``, at most ``limit`` of them, the oldest first, with all that
        hangs on them: parts, passages and their vectors, frozen blocks, and blobs that nothing refers to any more.

        Where none is left, it removes sessions that have no message and were not updated since, with their snapshots,
        and the blocks of messages that were never kept. All or none; nothing left to remove: all counts are 0.
        Memories, and what is said of their source, stay. What it removed is not taken again.
        """
        ...


class FrozenTexts(Protocol):
    """What was put in front of the model. The first text wins, and is replayed byte for byte."""

    async def freeze_block(self, block: FrozenBlock) -> FrozenBlock:
        """Keep what goes beside a message. The first one wins: returns what is stored for that message.

        One that shows a memory which was forgotten since, or made private or local-only, is kept as empty."""
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
        """Keep a session's snapshot. The first one wins until ``thaw_snapshot``: returns what is stored.

        One that shows a memory which was forgotten since, or made private or local-only, is not kept, and comes back
        without its text."""
        ...

    async def snapshot(self, session_id: SessionId) -> FrozenSnapshot | None:
        """The session's snapshot, if one was frozen."""
        ...

    async def thaw_snapshot(self, session_id: SessionId) -> None:
        """Forget the snapshot, so that the next request makes a new one (after a compaction)."""
        ...


class ConversationStore(Archive, FrozenTexts, Protocol):
    """All of the evidence."""
