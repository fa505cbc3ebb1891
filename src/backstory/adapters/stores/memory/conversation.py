"""Sessions, messages and parts in dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from backstory.adapters.stores.memory.frozen_texts import InMemoryFrozenTexts
from backstory.domain.conversation import BlobHash, Message, Part, Session
from backstory.domain.erasure import ERASED
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.errors import InputError
from backstory.ports.conversation import MessageCount, Pruned

if TYPE_CHECKING:
    from backstory.adapters.stores.memory.keepsakes import KeepsakeKey
    from backstory.domain.blob import Blob
    from backstory.domain.digest import SessionDigest
    from backstory.domain.dream_state import DreamState
    from backstory.domain.interchange import Keepsake


class InMemoryConversations(InMemoryFrozenTexts):
    """The ConversationStore in dicts."""

    def __init__(
        self,
        digests: dict[SessionId, SessionDigest] | None = None,
        dreams: dict[SessionId, DreamState] | None = None,
        keepsakes: dict[KeepsakeKey, Keepsake] | None = None,
    ) -> None:
        """What is given is of the stores beside this: a session that is removed takes its own with it."""
        super().__init__()
        self._digests = {} if digests is None else digests
        self._dreams = {} if dreams is None else dreams
        self._keepsakes = {} if keepsakes is None else keepsakes
        self._messages: dict[MessageId, Message] = {}
        self._parts: dict[PartId, tuple[MessageId, SessionId, Part]] = {}
        self._blobs: dict[BlobHash, Blob] = {}
        self._removed_up_to: datetime | None = None
        self.erased: set[PartId] = set()
        """Parts of which something was erased: they stay as they are, however often they are told."""

    async def put_session(self, session: Session) -> None:
        known = self._sessions.get(session.id)
        if known is not None:
            session = replace(
                known,
                project=known.project if session.project is None else session.project,
                parent=known.parent if session.parent is None else session.parent,
                title=known.title if session.title is None or ERASED in (known.title or "") else session.title,
                updated_at=max(known.updated_at, session.updated_at),
                deleted_at=known.deleted_at or session.deleted_at,
            )
        self._sessions[session.id] = session

    async def session(self, session_id: SessionId) -> Session | None:
        return self._sessions.get(session_id)

    async def sessions(self, *, limit: int, project: str | None = None) -> list[Session]:
        meant = [session for session in self._sessions.values() if project is None or session.project == project]
        meant.sort(key=lambda session: session.id)
        meant.sort(key=lambda session: session.updated_at, reverse=True)
        return meant[:limit]

    async def put_messages(self, messages: Sequence[Message], *, blobs: Sequence[Blob] = ()) -> None:
        young = [message for message in messages if not self._is_pruned(message)]
        parts = self._with_files([part for message in young for part in message.parts])
        self._keep(parts, blobs)
        told = iter(parts)
        for message in young:
            self._put_message(replace(message, parts=tuple(next(told) for _ in message.parts)))
        self._drop_lone_blobs()

    def _is_pruned(self, message: Message) -> bool:
        """Whether a message was removed for good, and the host tells it once more."""
        up_to = self._removed_up_to
        return up_to is not None and message.created_at <= up_to and message.id not in self._messages

    def _with_files(self, parts: Sequence[Part]) -> list[Part]:
        """The parts with the files that they do not tell again."""
        from backstory.domain.excerpt import keep_files

        parts = [self._parts[part.id][2] if part.id in self.erased & self._parts.keys() else part for part in parts]
        return keep_files(parts, {part.id: self._parts[part.id][2] for part in parts if part.id in self._parts})

    def _put_message(self, message: Message) -> None:
        known = self._messages.get(message.id)
        kept = replace(message, parts=())
        if known is not None:
            kept = replace(
                known,
                agent=known.agent if message.agent is None else message.agent,
                model=known.model if message.model is None else message.model,
                completed_at=known.completed_at or message.completed_at,
                removed_at=known.removed_at or message.removed_at,
            )
        self._messages[message.id] = kept
        for part in message.parts:
            self._parts[part.id] = (message.id, message.session, part)

    async def put_part(self, part: Part, *, message: MessageId, session: SessionId, blobs: Sequence[Blob] = ()) -> None:
        (part,) = self._with_files([part])
        self._keep([part], blobs)
        self._parts[part.id] = (message, session, part)
        self._drop_lone_blobs()

    def _keep(self, parts: Sequence[Part], blobs: Sequence[Blob]) -> None:
        """Add contents, once each. Raises InputError, and adds none, when one that a part refers to is missing."""
        known = self._blobs | {blob.hash: blob for blob in blobs}
        for part in {part.id: part for part in parts}.values():  # told twice at once, the last counts
            for ref in part.blobs:
                if ref.hash not in known:
                    message = f"part {part.id} refers to blob {ref.hash}, which is neither given nor kept"
                    raise InputError(message, field="blobs")
        self._blobs = known

    def _drop_lone_blobs(self) -> None:
        referred = {ref.hash for _, _, part in self._parts.values() for ref in part.blobs}
        self._blobs = {name: blob for name, blob in self._blobs.items() if name in referred}

    async def mark_removed(self, message: MessageId, *, at: datetime) -> None:
        known = self._messages.get(message)
        if known is not None and known.removed_at is None:
            self._messages[message] = replace(known, removed_at=at)

    async def remove_part(self, part: PartId) -> None:
        self._parts.pop(part, None)
        self._drop_lone_blobs()

    async def messages(self, session_id: SessionId, *, limit: int = 1000, offset: int = 0) -> list[Message]:
        meant = [message for message in self._messages.values() if message.session == session_id]
        meant.sort(key=lambda message: (message.created_at, message.id))
        return [replace(message, parts=self._parts_of(message.id)) for message in meant[offset : offset + limit]]

    def told(self) -> list[Message]:
        """Every message that was not taken back, with its parts, by time and id; for the index beside this."""
        standing = [message for message in self._messages.values() if message.removed_at is None]
        standing.sort(key=lambda message: (message.created_at, message.id))
        return [replace(message, parts=self._parts_of(message.id)) for message in standing]

    def known(self, session_id: SessionId) -> Session | None:
        """The session, for the index beside this."""
        return self._sessions.get(session_id)

    async def find_messages(self, messages: Sequence[MessageId]) -> list[Message]:
        found = (self._messages[message] for message in dict.fromkeys(messages) if message in self._messages)
        return [replace(message, parts=self._parts_of(message.id)) for message in found]

    async def part_owners(self, parts: Sequence[PartId]) -> Mapping[PartId, MessageId]:
        return {part: self._parts[part][0] for part in parts if part in self._parts}

    async def blob(self, name: BlobHash) -> Blob | None:
        return self._blobs.get(name)

    def blobs_kept(self) -> list[Blob]:
        """All contents; for the upkeep beside this."""
        return list(self._blobs.values())

    async def message_ids(self, session_id: SessionId) -> list[MessageId]:
        return [message.id for message in await self.messages(session_id, limit=len(self._messages))]

    async def removed_ids(self, session_id: SessionId) -> list[MessageId]:
        messages = await self.messages(session_id, limit=len(self._messages))
        return [message.id for message in messages if message.removed_at is not None]

    async def message_counts(self) -> Mapping[SessionId, MessageCount]:
        of_session: dict[SessionId, list[Message]] = {}
        for message in self._messages.values():
            of_session.setdefault(message.session, []).append(message)
        return {
            session: MessageCount(
                messages=len(messages),
                removed=sum(message.removed_at is not None for message in messages),
                first_at=min(message.created_at for message in messages),
                last_at=max(message.created_at for message in messages),
            )
            for session, messages in of_session.items()
        }

    async def count_messages(self) -> int:
        return len(self._messages)

    async def expired(self, before: datetime) -> Pruned:
        copy = InMemoryConversations()
        for name, value in vars(self).items():
            setattr(copy, name, dict(value) if isinstance(value, dict) else value)
        return await copy.prune(before, limit=len(self._messages) + 1)

    async def prune(self, before: datetime, *, limit: int) -> Pruned:
        """Passages are cut at each search, so none is counted."""
        sizes = self._sizes()
        old = [message for message in self._messages.values() if message.created_at < before]
        oldest = sorted(old, key=lambda message: (message.created_at, message.id))[:limit]
        gone = {message.id for message in oldest}
        if oldest:
            self._removed_up_to = max(oldest[-1].created_at, self._removed_up_to or oldest[-1].created_at)
        self._messages = {name: message for name, message in self._messages.items() if name not in gone}
        self._parts = {name: told for name, told in self._parts.items() if told[0] not in gone}
        self._blocks = {name: block for name, block in self._blocks.items() if name not in gone}
        if len(gone) < limit:
            self._remove_empty(before)
        self._drop_lone_blobs()
        return Pruned(**{name: size - self._sizes()[name] for name, size in sizes.items()})

    def _remove_empty(self, before: datetime) -> None:
        alive = {message.session for message in self._messages.values()}
        gone = {key for key, known in self._sessions.items() if known.updated_at < before and key not in alive}
        self._sessions = {key: known for key, known in self._sessions.items() if key not in gone}
        self._snapshots = {key: known for key, known in self._snapshots.items() if key not in gone}
        self._parts = {name: told for name, told in self._parts.items() if told[1] not in gone}
        for key in gone:
            self._digests.pop(key, None)
            self._dreams.pop(key, None)
        for name in [name for name, kept in self._keepsakes.items() if kept.session in gone]:
            del self._keepsakes[name]
        self._blocks = {
            name: block for name, block in self._blocks.items() if name in self._messages or block.created_at >= before
        }

    def _sizes(self) -> dict[str, int]:
        return {
            "sessions": len(self._sessions),
            "messages": len(self._messages),
            "parts": len(self._parts),
            "blobs": len(self._blobs),
            "blob_bytes": sum(blob.size for blob in self._blobs.values()),
            "blocks": len(self._blocks) + len(self._snapshots),
        }

    def ids_of(self, project: ProjectId) -> tuple[SessionId, ...]:
        """The sessions of a project, also those that are only distilled; for the projects beside this."""
        kept = [session.id for session in self._sessions.values() if session.project == project]
        distilled = [state.session for state in self._dreams.values() if state.project == project]
        return tuple(dict.fromkeys([*kept, *distilled]))

    def pass_on(self, sessions: Sequence[SessionId], *, source: ProjectId, target: ProjectId) -> None:
        """Make sessions of one project another's, with how far they are distilled; for the projects beside this."""
        for session_id in sessions:
            if self._is_of(session_id, source):
                self._sessions[session_id] = replace(self._sessions[session_id], project=target)
            state = self._dreams.get(session_id)
            if state is not None and state.project == source:
                self._dreams[session_id] = replace(state, project=target, revision=state.revision + 1)

    def tables(self) -> dict[str, dict[Any, Any]]:  # Any: keys and values differ by place
        """What is kept, by the place that a person would name; for the eraser beside this."""
        return {
            "titles": self._sessions,
            "messages": self._parts,
            "attachments": self._blobs,
            "blocks": self._blocks,
            "snapshots": self._snapshots,
        }

    def _parts_of(self, message: MessageId) -> tuple[Part, ...]:
        parts = [part for owner, _, part in self._parts.values() if owner == message]
        return tuple(sorted(parts, key=lambda part: part.id))
