"""Sessions, messages and parts in SQLite."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from backstory.adapters.stores.sqlite.blobs import (
    parts_with_blobs,
    put_blobs,
    read_blob,
    refer,
    refs_of_message,
)
from backstory.adapters.stores.sqlite.connection import Connection
from backstory.adapters.stores.sqlite.frozen_texts import SqliteFrozenTexts
from backstory.adapters.stores.sqlite.passages import index_message, index_part, unindex
from backstory.adapters.stores.sqlite.rows import from_us, from_us_or_none, to_us, to_us_or_none
from backstory.domain.conversation import BlobHash, Message, Part, Role, Session
from backstory.domain.evidence_passages import PassageLimits
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.ports.conversation import MessageCount, Pruned

if TYPE_CHECKING:
    from backstory.domain.blob import Blob

SESSION = "id, project, host, directory, parent, title, created_us, updated_us, deleted_us"
_MESSAGE = "id, session, role, agent, model, created_us, completed_us, removed_us"
_PART = "id, message, session, kind, text, tool, synthetic, detail"


class SqliteConversations(SqliteFrozenTexts):
    """The ConversationStore over one connection. Each write keeps the passages of evidence in step."""

    def __init__(self, connection: Connection, limits: PassageLimits) -> None:
        super().__init__(connection)
        self._limits = limits

    async def put_session(self, session: Session) -> None:
        from backstory.domain.erasure import ERASED

        statement = (
            f"INSERT INTO sessions ({SESSION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
            "project = coalesce(excluded.project, project), parent = coalesce(excluded.parent, parent), "
            f"title = CASE WHEN instr(title, '{ERASED}') THEN title ELSE coalesce(excluded.title, title) END, "
            "updated_us = max(updated_us, excluded.updated_us), "
            "deleted_us = coalesce(deleted_us, excluded.deleted_us)"
        )
        row = (
            session.id, session.project, session.host, session.directory, session.parent, session.title,
            to_us(session.created_at), to_us(session.updated_at), to_us_or_none(session.deleted_at),
        )  # fmt: skip
        await self._connection.write(lambda raw: raw.execute(statement, row))

    async def session(self, session_id: SessionId) -> Session | None:
        statement = f"SELECT {SESSION} FROM sessions WHERE id = ?"
        row = await self._connection.read(lambda raw: raw.execute(statement, (session_id,)).fetchone())
        return None if row is None else session_from_row(row)

    async def sessions(self, *, limit: int, project: str | None = None) -> list[Session]:
        statement = (
            f"SELECT {SESSION} FROM sessions WHERE (? IS NULL OR project = ?) ORDER BY updated_us DESC, id LIMIT ?"
        )
        rows = await self._connection.read(lambda raw: raw.execute(statement, (project, project, limit)).fetchall())
        return [session_from_row(row) for row in rows]

    async def put_messages(self, messages: Sequence[Message], *, blobs: Sequence[Blob] = ()) -> None:
        def work(raw: sqlite3.Connection) -> None:
            young = _without_pruned(raw, messages)
            parts = _as_kept(raw, [part for message in young for part in message.parts])
            put_blobs(raw, blobs, parts)
            told = iter(parts)
            for message in young:
                _put_message(raw, replace(message, parts=tuple(next(told) for _ in message.parts)), self._limits)
            refer(raw, parts)

        await self._connection.write(work)

    async def put_part(self, part: Part, *, message: MessageId, session: SessionId, blobs: Sequence[Blob] = ()) -> None:
        def work(raw: sqlite3.Connection) -> None:
            parts = _as_kept(raw, [part])
            put_blobs(raw, blobs, parts)
            _put_part(raw, parts[0], message, session)
            refer(raw, parts)
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

    async def part_owners(self, parts: Sequence[PartId]) -> Mapping[PartId, MessageId]:
        statement = "SELECT message FROM parts WHERE id = ?"

        def work(raw: sqlite3.Connection) -> dict[PartId, MessageId]:
            rows = ((part, raw.execute(statement, (part,)).fetchone()) for part in parts)
            return {part: MessageId(row[0]) for part, row in rows if row is not None}

        return await self._connection.read(work)

    async def blob(self, name: BlobHash) -> Blob | None:
        return await self._connection.read(lambda raw: read_blob(raw, name))

    async def message_ids(self, session_id: SessionId) -> list[MessageId]:
        statement = "SELECT id FROM messages WHERE session = ? ORDER BY created_us, id"
        rows = await self._connection.read(lambda raw: raw.execute(statement, (session_id,)).fetchall())
        return [MessageId(name) for (name,) in rows]

    async def removed_ids(self, session_id: SessionId) -> list[MessageId]:
        statement = "SELECT id FROM messages WHERE session = ? AND removed_us IS NOT NULL ORDER BY created_us, id"
        rows = await self._connection.read(lambda raw: raw.execute(statement, (session_id,)).fetchall())
        return [MessageId(name) for (name,) in rows]

    async def message_counts(self) -> Mapping[SessionId, MessageCount]:
        columns = "session, count(*), count(removed_us), min(created_us), max(created_us)"
        statement = f"SELECT {columns} FROM messages GROUP BY session"
        rows = await self._connection.read(lambda raw: raw.execute(statement).fetchall())
        return {
            SessionId(name): MessageCount(
                messages=count, removed=removed, first_at=from_us(first), last_at=from_us(last)
            )
            for name, count, removed, first, last in rows
        }

    async def count_messages(self) -> int:
        statement = "SELECT count(*) FROM messages"
        return await self._connection.read(lambda raw: int(raw.execute(statement).fetchone()[0]))

    async def expired(self, before: datetime) -> Pruned:
        from backstory.adapters.stores.sqlite.retention import expired

        return await self._connection.read(lambda raw: expired(raw, to_us(before)))

    async def prune(self, before: datetime, *, limit: int) -> Pruned:
        from backstory.adapters.stores.sqlite.retention import prune

        return await self._connection.write(lambda raw: prune(raw, to_us(before), limit))


def _without_pruned(raw: sqlite3.Connection, messages: Sequence[Message]) -> Sequence[Message]:
    from backstory.adapters.stores.sqlite.retention import without_pruned

    return without_pruned(raw, messages)


def _as_kept(raw: sqlite3.Connection, parts: Sequence[Part]) -> list[Part]:
    """The parts with the files that they do not tell again; those of which something was erased as they are since."""
    from backstory.adapters.stores.sqlite.erased_parts import as_erased
    from backstory.domain.excerpt import keep_files, may_lack_files

    told = as_erased(raw, parts)
    return keep_files(told, parts_with_blobs(raw, [part.id for part in told if may_lack_files(part)]))


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
    updates = ", ".join(f"{name} = excluded.{name}" for name in _PART.split(", ")[1:])
    raw.execute(
        f"INSERT INTO parts ({_PART}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET {updates}",
        (part.id, message, session, part.kind, part.text, part.tool, int(part.synthetic), part.detail),
    )


def _parts_of(raw: sqlite3.Connection, messages: Sequence[str]) -> defaultdict[str, list[Part]]:
    parts: defaultdict[str, list[Part]] = defaultdict(list)
    for message in messages:
        refs = refs_of_message(raw, message)
        for row in raw.execute(f"SELECT {_PART} FROM parts WHERE message = ? ORDER BY id", (message,)):
            name, _, _, kind, text, tool, synthetic, detail = row
            parts[message].append(
                Part(
                    id=PartId(name), kind=kind, text=text, tool=tool, synthetic=bool(synthetic), detail=detail,
                    blobs=refs[name],
                )
            )  # fmt: skip
    return parts


def session_from_row(row: Sequence[object]) -> Session:
    """Read the columns of ``SESSION``."""
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
