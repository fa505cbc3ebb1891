"""Sessions, messages, parts and frozen texts in SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from backstory.adapters.stores.sqlite.connection import Connection
from backstory.adapters.stores.sqlite.filters import Where
from backstory.adapters.stores.sqlite.passages import index_message, index_part, unindex
from backstory.adapters.stores.sqlite.rows import dump, from_us, from_us_or_none, to_us, to_us_or_none
from backstory.domain.conversation import FrozenBlock, FrozenSnapshot, Message, Part, Role, Session, ShownMemory
from backstory.domain.evidence_passages import PassageLimits
from backstory.domain.ids import MemoryId, MessageId, PartId, ProjectId, SessionId

_SESSION = "id, project, host, directory, parent, title, created_us, updated_us, deleted_us"
_MESSAGE = "id, session, role, agent, model, created_us, completed_us, removed_us"
_PART = "id, message, session, kind, text, tool, synthetic, detail"
_BLOCK = "message, session, text, shown, silent, created_us"


class SqliteConversations:
    """The ConversationStore over one connection. Each write keeps the passages of evidence in step."""

    def __init__(self, connection: Connection, limits: PassageLimits) -> None:
        self._connection = connection
        self._limits = limits

    async def put_session(self, session: Session) -> None:
        statement = (
            f"INSERT INTO sessions ({_SESSION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
            "project = coalesce(excluded.project, project), parent = coalesce(excluded.parent, parent), "
            "title = coalesce(excluded.title, title), updated_us = max(updated_us, excluded.updated_us), "
            "deleted_us = coalesce(deleted_us, excluded.deleted_us)"
        )
        row = (
            session.id, session.project, session.host, session.directory, session.parent, session.title,
            to_us(session.created_at), to_us(session.updated_at), to_us_or_none(session.deleted_at),
        )  # fmt: skip
        await self._connection.write(lambda raw: raw.execute(statement, row))

    async def session(self, session_id: SessionId) -> Session | None:
        statement = f"SELECT {_SESSION} FROM sessions WHERE id = ?"
        row = await self._connection.read(lambda raw: raw.execute(statement, (session_id,)).fetchone())
        return None if row is None else _session(row)

    async def sessions(self, *, limit: int, project: str | None = None) -> list[Session]:
        statement = (
            f"SELECT {_SESSION} FROM sessions WHERE (? IS NULL OR project = ?) ORDER BY updated_us DESC, id LIMIT ?"
        )
        rows = await self._connection.read(lambda raw: raw.execute(statement, (project, project, limit)).fetchall())
        return [_session(row) for row in rows]

    async def put_messages(self, messages: Sequence[Message]) -> None:
        def work(raw: sqlite3.Connection) -> None:
            for message in messages:
                _put_message(raw, message, self._limits)

        await self._connection.write(work)

    async def put_part(self, part: Part, *, message: MessageId, session: SessionId) -> None:
        def work(raw: sqlite3.Connection) -> None:
            _put_part(raw, part, message, session)
            index_part(raw, part.id, self._limits)

        await self._connection.write(work)

    async def mark_removed(self, message: MessageId, *, at: datetime) -> None:
        statement = "UPDATE messages SET removed_us = coalesce(removed_us, ?) WHERE id = ?"

        def work(raw: sqlite3.Connection) -> None:
            raw.execute(statement, (to_us(at), message))
            unindex(raw, "message", message)

        await self._connection.write(work)

    async def remove_part(self, part: PartId) -> None:
        def work(raw: sqlite3.Connection) -> None:
            raw.execute("DELETE FROM parts WHERE id = ?", (part,))
            unindex(raw, "part", part)

        await self._connection.write(work)

    async def messages(self, session_id: SessionId, *, limit: int = 1000, offset: int = 0) -> list[Message]:
        statement = f"SELECT {_MESSAGE} FROM messages WHERE session = ? ORDER BY created_us, id LIMIT ? OFFSET ?"

        def work(raw: sqlite3.Connection) -> list[Message]:
            rows = raw.execute(statement, (session_id, limit, offset)).fetchall()
            parts = _parts_of(raw, [row[0] for row in rows])
            return [_message(row, tuple(parts[row[0]])) for row in rows]

        return await self._connection.read(work)

    async def find_messages(self, messages: Sequence[MessageId]) -> list[Message]:
        statement = f"SELECT {_MESSAGE} FROM messages WHERE id = ?"

        def work(raw: sqlite3.Connection) -> list[Message]:
            rows = [raw.execute(statement, (message,)).fetchone() for message in dict.fromkeys(messages)]
            parts = _parts_of(raw, [row[0] for row in rows if row is not None])
            return [_message(row, tuple(parts[row[0]])) for row in rows if row is not None]

        return await self._connection.read(work)

    async def count_messages(self) -> int:
        statement = "SELECT count(*) FROM messages"
        return await self._connection.read(lambda raw: int(raw.execute(statement).fetchone()[0]))

    async def freeze_block(self, block: FrozenBlock) -> FrozenBlock:
        row = (
            block.message, block.session, block.text, _dump_shown(block.shown), block.silent_because,
            to_us(block.created_at),
        )  # fmt: skip

        def work(raw: sqlite3.Connection) -> FrozenBlock:
            raw.execute(f"INSERT OR IGNORE INTO recall_blocks ({_BLOCK}) VALUES (?, ?, ?, ?, ?, ?)", row)
            stored = raw.execute(f"SELECT {_BLOCK} FROM recall_blocks WHERE message = ?", (block.message,)).fetchone()
            return _block(stored)

        return await self._connection.write(work)

    async def withdraw_block(self, message: MessageId, *, because: str) -> None:
        statement = "UPDATE recall_blocks SET text = '', shown = '[]', silent = ? WHERE message = ?"
        await self._connection.write(lambda raw: raw.execute(statement, (because, message)))

    async def blocks(self, messages: Sequence[MessageId]) -> Mapping[MessageId, FrozenBlock]:
        statement = f"SELECT {_BLOCK} FROM recall_blocks WHERE message = ?"

        def work(raw: sqlite3.Connection) -> dict[MessageId, FrozenBlock]:
            rows = (raw.execute(statement, (message,)).fetchone() for message in messages)
            return {MessageId(row[0]): _block(row) for row in rows if row is not None}

        return await self._connection.read(work)

    async def recent_blocks(
        self,
        *,
        session: SessionId | None = None,
        project: ProjectId | None = None,
        showing: MemoryId | None = None,
        limit: int = 20,
    ) -> list[FrozenBlock]:
        clause = Where()
        if session is not None:
            clause.add("session = ?", session)
        if project is not None:
            clause.add("session IN (SELECT id FROM sessions WHERE project = ?)", project)
        if showing is not None:
            clause.add("message IN (SELECT message FROM recall_block_memories WHERE memory = ?)", showing)
        statement = (
            f"SELECT {_BLOCK} FROM recall_blocks WHERE {clause.sql} ORDER BY created_us DESC, message DESC LIMIT ?"
        )
        parameters = (*clause.parameters, limit)
        rows = await self._connection.read(lambda raw: raw.execute(statement, parameters).fetchall())
        return [_block(row) for row in rows]

    async def freeze_snapshot(self, snapshot: FrozenSnapshot) -> FrozenSnapshot:
        row = (snapshot.session, snapshot.text, dump(list(snapshot.shown)), to_us(snapshot.created_at))

        def work(raw: sqlite3.Connection) -> FrozenSnapshot:
            raw.execute("INSERT OR IGNORE INTO snapshots (session, text, shown, created_us) VALUES (?, ?, ?, ?)", row)
            stored = _snapshot(raw, snapshot.session)
            assert stored is not None
            return stored

        return await self._connection.write(work)

    async def snapshot(self, session_id: SessionId) -> FrozenSnapshot | None:
        return await self._connection.read(lambda raw: _snapshot(raw, session_id))

    async def thaw_snapshot(self, session_id: SessionId) -> None:
        statement = "DELETE FROM snapshots WHERE session = ?"
        await self._connection.write(lambda raw: raw.execute(statement, (session_id,)))


def withdraw_showing(raw: sqlite3.Connection, memories: Sequence[MemoryId], *, because: str) -> None:
    """Empty every frozen block that shows one of the memories, and let go of every snapshot that does."""
    wanted = dump(list(memories))
    raw.execute(
        "UPDATE recall_blocks SET text = '', silent = ? WHERE text <> '' AND message IN ("
        "SELECT message FROM recall_block_memories WHERE memory IN (SELECT value FROM json_each(?)))",
        (because, wanted),
    )
    raw.execute(
        "DELETE FROM snapshots WHERE EXISTS (SELECT 1 FROM json_each(snapshots.shown) item "
        "WHERE item.value IN (SELECT value FROM json_each(?)))",
        (wanted,),
    )


def _put_message(raw: sqlite3.Connection, message: Message, limits: PassageLimits) -> None:
    raw.execute(
        f"INSERT INTO messages ({_MESSAGE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
        "agent = coalesce(excluded.agent, agent), model = coalesce(excluded.model, model), "
        "completed_us = coalesce(completed_us, excluded.completed_us), "
        "removed_us = coalesce(removed_us, excluded.removed_us)",
        (
            message.id,
            message.session,
            message.role.value,
            message.agent,
            message.model,
            to_us(message.created_at),
            to_us_or_none(message.completed_at),
            to_us_or_none(message.removed_at),
        ),
    )
    for part in message.parts:
        _put_part(raw, part, message.id, message.session)
        index_part(raw, part.id, limits)
    index_message(raw, message.id, limits)
    if message.removed_at is not None:
        unindex(raw, "message", message.id)


def _put_part(raw: sqlite3.Connection, part: Part, message: MessageId, session: SessionId) -> None:
    raw.execute(
        f"INSERT OR REPLACE INTO parts ({_PART}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (part.id, message, session, part.kind, part.text, part.tool, int(part.synthetic), part.detail),
    )


def _parts_of(raw: sqlite3.Connection, messages: Sequence[str]) -> defaultdict[str, list[Part]]:
    parts: defaultdict[str, list[Part]] = defaultdict(list)
    for message in messages:
        for row in raw.execute(f"SELECT {_PART} FROM parts WHERE message = ? ORDER BY id", (message,)):
            parts[message].append(
                Part(id=PartId(row[0]), kind=row[3], text=row[4], tool=row[5], synthetic=bool(row[6]), detail=row[7])
            )
    return parts


def _session(row: Sequence[object]) -> Session:
    session_id, project, host, directory, parent, title, created, updated, deleted = row
    return Session(
        id=SessionId(str(session_id)),
        project=None if project is None else ProjectId(str(project)),
        host=str(host),
        directory=str(directory),
        parent=None if parent is None else SessionId(str(parent)),
        title=None if title is None else str(title),
        created_at=from_us(int(str(created))),
        updated_at=from_us(int(str(updated))),
        deleted_at=None if deleted is None else from_us(int(str(deleted))),
    )


def _message(row: Sequence[object], parts: tuple[Part, ...]) -> Message:
    message_id, session, role, agent, model, created, completed, removed = row
    return Message(
        id=MessageId(str(message_id)),
        session=SessionId(str(session)),
        role=Role(str(role)),
        agent=None if agent is None else str(agent),
        model=None if model is None else str(model),
        created_at=from_us(int(str(created))),
        completed_at=from_us_or_none(None if completed is None else int(str(completed))),
        removed_at=from_us_or_none(None if removed is None else int(str(removed))),
        parts=parts,
    )


def _dump_shown(shown: Sequence[ShownMemory]) -> str:
    return dump([{"memory": item.memory, "n": item.n, "score": item.score, "reason": item.reason} for item in shown])


def _block(row: Sequence[object]) -> FrozenBlock:
    message, session, text, shown, silent, created = row
    return FrozenBlock(
        message=MessageId(str(message)),
        session=SessionId(str(session)),
        text=str(text),
        shown=tuple(ShownMemory(**item) for item in json.loads(str(shown))),
        silent_because=None if silent is None else str(silent),
        created_at=from_us(int(str(created))),
    )


def _snapshot(raw: sqlite3.Connection, session_id: SessionId) -> FrozenSnapshot | None:
    row = raw.execute("SELECT text, shown, created_us FROM snapshots WHERE session = ?", (session_id,)).fetchone()
    if row is None:
        return None
    shown = tuple(MemoryId(item) for item in json.loads(row[1]))
    return FrozenSnapshot(session=session_id, text=row[0], shown=shown, created_at=from_us(row[2]))
