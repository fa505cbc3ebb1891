"""Sessions, messages and parts in Postgres."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg

from backstory.adapters.stores.postgres.blobs import (
    parts_with_blobs,
    put_blobs,
    read_blob,
    refer,
    refs_of_messages,
)
from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.frozen_texts import PostgresFrozenTexts
from backstory.adapters.stores.postgres.passages import index_told, lock_evidence, unindex
from backstory.adapters.stores.postgres.storable import storable
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.rows import from_us, from_us_or_none, to_us, to_us_or_none
from backstory.domain.conversation import BlobHash, Message, Part, Role, Session
from backstory.domain.evidence_passages import PassageLimits
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.ports.conversation import MessageCount, Pruned

if TYPE_CHECKING:
    from backstory.domain.blob import Blob

_Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects

SESSION = "id, project, host, directory, parent, title, created_us, updated_us, deleted_us"
_MESSAGE = "id, session, role, agent, model, created_us, completed_us, removed_us"
_PART = "id, message, session, kind, text, tool, synthetic, detail"


class PostgresConversations(PostgresFrozenTexts):
    """The ConversationStore over one pool of connections. Each write keeps the passages of evidence in step."""

    def __init__(self, connection: Connection, limits: PassageLimits) -> None:
        super().__init__(connection)
        self._limits = limits

    async def put_session(self, session: Session) -> None:
        from backstory.domain.erasure import ERASED

        statement = (
            f"INSERT INTO sessions AS known ({SESSION}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) "
            "ON CONFLICT (tenant, id) DO UPDATE SET project = coalesce(excluded.project, known.project), "
            f"parent = coalesce(excluded.parent, known.parent), title = CASE WHEN strpos(known.title, '{ERASED}') > 0 "
            "THEN known.title ELSE coalesce(excluded.title, known.title) END, "
            "updated_us = greatest(known.updated_us, excluded.updated_us), "
            "deleted_us = coalesce(known.deleted_us, excluded.deleted_us)"
        )
        row = storable(
            session.id, session.project, session.host, session.directory, session.parent, session.title,
            to_us(session.created_at), to_us(session.updated_at), to_us_or_none(session.deleted_at),
        )  # fmt: skip
        await self._write(lambda raw: raw.execute(statement, row))

    async def session(self, session_id: SessionId) -> Session | None:
        statement = f"SELECT {SESSION} FROM sessions WHERE tenant = {TENANT} AND id = %s"
        row = await self._connection.read(lambda raw: raw.execute(statement, storable(session_id)).fetchone())
        return None if row is None else session_from_row(row)

    async def sessions(self, *, limit: int, project: str | None = None) -> list[Session]:
        condition, parameters = ("", ()) if project is None else ("AND project = %s", storable(project))
        statement = (
            f"SELECT {SESSION} FROM sessions WHERE tenant = {TENANT} {condition} ORDER BY updated_us DESC, id LIMIT %s"
        )
        rows = await self._connection.read(lambda raw: raw.execute(statement, (*parameters, limit)).fetchall())
        return [session_from_row(row) for row in rows]

    async def put_messages(self, messages: Sequence[Message], *, blobs: Sequence[Blob] = ()) -> None:
        if not messages:
            return

        def work(raw: _Raw) -> None:
            lock_evidence(raw)
            young = _without_pruned(raw, messages)
            if not young:
                return
            parts = _as_kept(raw, [part for message in young for part in message.parts])
            put_blobs(raw, blobs, parts)
            _put_messages(raw, young)
            owners = [(m.id, m.session) for m in young for _ in m.parts]
            _put_parts(raw, [(part, *owner) for part, owner in zip(parts, owners, strict=True)])
            index_told(
                raw,
                parts=storable(*(part.id for part in parts)),
                messages=storable(*(m.id for m in young)),
                limits=self._limits,
            )
            unindex(raw, "message", storable(*(m.id for m in young if m.removed_at is not None)))

        await self._write(work)

    async def put_part(self, part: Part, *, message: MessageId, session: SessionId, blobs: Sequence[Blob] = ()) -> None:
        def work(raw: _Raw) -> None:
            lock_evidence(raw)
            parts = _as_kept(raw, [part])
            put_blobs(raw, blobs, parts)
            _put_parts(raw, [(parts[0], message, session)])
            index_told(raw, parts=storable(part.id), messages=(), limits=self._limits)

        await self._write(work)

    async def mark_removed(self, message: MessageId, *, at: datetime) -> None:
        statement = f"UPDATE messages SET removed_us = coalesce(removed_us, %s) WHERE tenant = {TENANT} AND id = %s"

        def work(raw: _Raw) -> None:
            lock_evidence(raw)
            raw.execute(statement, storable(to_us(at), message))
            unindex(raw, "message", storable(message))

        await self._write(work)

    async def remove_part(self, part: PartId) -> None:
        def work(raw: _Raw) -> None:
            lock_evidence(raw)
            raw.execute(f"DELETE FROM parts WHERE tenant = {TENANT} AND id = %s", storable(part))
            unindex(raw, "part", storable(part))

        await self._write(work)

    async def messages(self, session_id: SessionId, *, limit: int = 1000, offset: int = 0) -> list[Message]:
        statement = (
            f"SELECT {_MESSAGE} FROM messages WHERE tenant = {TENANT} AND session = %s "
            "ORDER BY created_us, id LIMIT %s OFFSET %s"
        )

        def work(raw: _Raw) -> list[Message]:
            rows = raw.execute(statement, storable(session_id, limit, offset)).fetchall()
            parts = _parts_of(raw, [row[0] for row in rows])
            return [_message(row, tuple(parts[row[0]])) for row in rows]

        return await self._connection.read(work)

    async def find_messages(self, messages: Sequence[MessageId]) -> list[Message]:
        statement = f"SELECT {_MESSAGE} FROM messages WHERE tenant = {TENANT} AND id = ANY(%s)"
        wanted = list(dict.fromkeys(storable(*messages)))

        def work(raw: _Raw) -> list[Message]:
            rows = {row[0]: row for row in raw.execute(statement, (wanted,))}
            parts = _parts_of(raw, list(rows))
            return [_message(rows[name], tuple(parts[name])) for name in wanted if name in rows]

        return await self._connection.read(work)

    async def part_owners(self, parts: Sequence[PartId]) -> Mapping[PartId, MessageId]:
        statement = f"SELECT id, message FROM parts WHERE tenant = {TENANT} AND id = ANY(%s)"
        wanted = list(storable(*parts))
        rows = await self._connection.read(lambda raw: raw.execute(statement, (wanted,)).fetchall())
        return {PartId(part): MessageId(message) for part, message in rows}

    async def blob(self, name: BlobHash) -> Blob | None:
        return await self._connection.read(lambda raw: read_blob(raw, name))

    async def message_ids(self, session_id: SessionId) -> list[MessageId]:
        statement = f"SELECT id FROM messages WHERE tenant = {TENANT} AND session = %s ORDER BY created_us, id"
        rows = await self._connection.read(lambda raw: raw.execute(statement, storable(session_id)).fetchall())
        return [MessageId(name) for (name,) in rows]

    async def removed_ids(self, session_id: SessionId) -> list[MessageId]:
        statement = (
            f"SELECT id FROM messages WHERE tenant = {TENANT} AND session = %s AND removed_us IS NOT NULL "
            "ORDER BY created_us, id"
        )
        rows = await self._connection.read(lambda raw: raw.execute(statement, storable(session_id)).fetchall())
        return [MessageId(name) for (name,) in rows]

    async def message_counts(self) -> Mapping[SessionId, MessageCount]:
        statement = (
            "SELECT session, count(*), count(removed_us), min(created_us), max(created_us) FROM messages "
            f"WHERE tenant = {TENANT} GROUP BY session"
        )
        rows = await self._connection.read(lambda raw: raw.execute(statement).fetchall())
        return {
            SessionId(name): MessageCount(
                messages=count, removed=removed, first_at=from_us(first), last_at=from_us(last)
            )
            for name, count, removed, first, last in rows
        }

    async def count_messages(self) -> int:
        statement = f"SELECT count(*) FROM messages WHERE tenant = {TENANT}"
        row = await self._connection.read(lambda raw: raw.execute(statement).fetchone())
        return 0 if row is None else int(row[0])

    async def expired(self, before: datetime) -> Pruned:
        from backstory.adapters.stores.postgres.retention import expired

        return await self._connection.read(lambda raw: expired(raw, to_us(before)))

    async def prune(self, before: datetime, *, limit: int) -> Pruned:
        """As the port says; what was removed by a try whose outcome was lost is not counted."""
        from backstory.adapters.stores.postgres.retention import prune

        return await self._write(lambda raw: prune(raw, to_us(before), limit))


def _without_pruned(raw: _Raw, messages: Sequence[Message]) -> Sequence[Message]:
    from backstory.adapters.stores.postgres.retention import without_pruned

    return without_pruned(raw, messages)


def _as_kept(raw: _Raw, parts: Sequence[Part]) -> list[Part]:
    """The parts with the files that they do not tell again; those of which something was erased as they are since."""
    from backstory.adapters.stores.postgres.erased_parts import as_erased
    from backstory.domain.excerpt import keep_files, may_lack_files

    told = as_erased(raw, parts)
    lacking = [part.id for part in told if may_lack_files(part)]
    return keep_files(told, parts_with_blobs(raw, lacking) if lacking else {})


def _put_messages(raw: _Raw, messages: Sequence[Message]) -> None:
    raw.cursor().executemany(
        f"INSERT INTO messages AS known ({_MESSAGE}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s) "
        "ON CONFLICT (tenant, id) DO UPDATE SET agent = coalesce(excluded.agent, known.agent), "
        "model = coalesce(excluded.model, known.model), "
        "completed_us = coalesce(known.completed_us, excluded.completed_us), "
        "removed_us = coalesce(known.removed_us, excluded.removed_us)",
        [
            storable(
                message.id,
                message.session,
                message.role.value,
                message.agent,
                message.model,
                to_us(message.created_at),
                to_us_or_none(message.completed_at),
                to_us_or_none(message.removed_at),
            )
            for message in messages
        ],
    )


def _put_parts(raw: _Raw, parts: Sequence[tuple[Part, MessageId, SessionId]]) -> None:
    updates = ", ".join(f"{name} = excluded.{name}" for name in _PART.split(", ")[1:])
    raw.cursor().executemany(
        f"INSERT INTO parts ({_PART}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s) "
        f"ON CONFLICT (tenant, id) DO UPDATE SET {updates}",
        [
            storable(part.id, message, session, part.kind, part.text, part.tool, int(part.synthetic), part.detail)
            for part, message, session in parts
        ],
    )
    refer(raw, [part for part, _, _ in parts])


def _parts_of(raw: _Raw, messages: Sequence[str]) -> defaultdict[str, list[Part]]:
    parts: defaultdict[str, list[Part]] = defaultdict(list)
    refs = refs_of_messages(raw, messages)
    statement = f"SELECT {_PART} FROM parts WHERE tenant = {TENANT} AND message = ANY(%s) ORDER BY message, id"
    for name, message, _, kind, text, tool, synthetic, detail in raw.execute(statement, (list(messages),)):
        parts[message].append(
            Part(
                id=PartId(name), kind=kind, text=text, tool=tool, synthetic=bool(synthetic), detail=detail,
                blobs=refs[name],
            )
        )  # fmt: skip
    return parts


def session_from_row(row: Sequence[Any]) -> Session:
    """Read the columns of ``SESSION``."""
    session_id, project, host, directory, parent, title, created, updated, deleted = row
    return Session(
        id=SessionId(session_id),
        project=None if project is None else ProjectId(project),
        host=host,
        directory=directory,
        parent=None if parent is None else SessionId(parent),
        title=title,
        created_at=from_us(created),
        updated_at=from_us(updated),
        deleted_at=from_us_or_none(deleted),
    )


def _message(row: Sequence[Any], parts: tuple[Part, ...]) -> Message:
    message_id, session, role, agent, model, created, completed, removed = row
    return Message(
        id=MessageId(message_id),
        session=SessionId(session),
        role=Role(role),
        agent=agent,
        model=model,
        created_at=from_us(created),
        completed_at=from_us_or_none(completed),
        removed_at=from_us_or_none(removed),
        parts=parts,
    )
