"""Sessions, messages, parts and frozen texts in Postgres."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import psycopg

from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.passages import index_told, lock_evidence, unindex
from backstory.adapters.stores.postgres.storable import storable
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.rows import dump, from_us, from_us_or_none, to_us, to_us_or_none
from backstory.domain.conversation import FrozenBlock, FrozenSnapshot, Message, Part, Role, Session, ShownMemory
from backstory.domain.evidence_passages import PassageLimits
from backstory.domain.ids import MemoryId, MessageId, PartId, ProjectId, SessionId

_Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects
T = TypeVar("T")

_SESSION = "id, project, host, directory, parent, title, created_us, updated_us, deleted_us"
_MESSAGE = "id, session, role, agent, model, created_us, completed_us, removed_us"
_PART = "id, message, session, kind, text, tool, synthetic, detail"
_BLOCK = "message, session, text, shown, silent, created_us"


class PostgresConversations:
    """The ConversationStore over one pool of connections. Each write keeps the passages of evidence in step."""

    def __init__(self, connection: Connection, limits: PassageLimits) -> None:
        self._connection = connection
        self._limits = limits

    async def _write(self, fn: Callable[[_Raw], T]) -> T:
        """Every write here may run twice, so one whose outcome a lost connection left open is made again."""
        return await self._connection.write(fn, again=fn)

    async def put_session(self, session: Session) -> None:
        statement = (
            f"INSERT INTO sessions AS known ({_SESSION}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) "
            "ON CONFLICT (tenant, id) DO UPDATE SET project = coalesce(excluded.project, known.project), "
            "parent = coalesce(excluded.parent, known.parent), title = coalesce(excluded.title, known.title), "
            "updated_us = greatest(known.updated_us, excluded.updated_us), "
            "deleted_us = coalesce(known.deleted_us, excluded.deleted_us)"
        )
        row = storable(
            session.id, session.project, session.host, session.directory, session.parent, session.title,
            to_us(session.created_at), to_us(session.updated_at), to_us_or_none(session.deleted_at),
        )  # fmt: skip
        await self._write(lambda raw: raw.execute(statement, row))

    async def session(self, session_id: SessionId) -> Session | None:
        statement = f"SELECT {_SESSION} FROM sessions WHERE tenant = {TENANT} AND id = %s"
        row = await self._connection.read(lambda raw: raw.execute(statement, storable(session_id)).fetchone())
        return None if row is None else _session(row)

    async def sessions(self, *, limit: int, project: str | None = None) -> list[Session]:
        condition, parameters = ("", ()) if project is None else ("AND project = %s", storable(project))
        statement = (
            f"SELECT {_SESSION} FROM sessions WHERE tenant = {TENANT} {condition} ORDER BY updated_us DESC, id LIMIT %s"
        )
        rows = await self._connection.read(lambda raw: raw.execute(statement, (*parameters, limit)).fetchall())
        return [_session(row) for row in rows]

    async def put_messages(self, messages: Sequence[Message]) -> None:
        if not messages:
            return

        def work(raw: _Raw) -> None:
            lock_evidence(raw)
            _put_messages(raw, messages)
            _put_parts(raw, [(part, m.id, m.session) for m in messages for part in m.parts])
            index_told(
                raw,
                parts=storable(*(part.id for m in messages for part in m.parts)),
                messages=storable(*(m.id for m in messages)),
                limits=self._limits,
            )
            unindex(raw, "message", storable(*(m.id for m in messages if m.removed_at is not None)))

        await self._write(work)

    async def put_part(self, part: Part, *, message: MessageId, session: SessionId) -> None:
        def work(raw: _Raw) -> None:
            lock_evidence(raw)
            _put_parts(raw, [(part, message, session)])
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

    async def count_messages(self) -> int:
        statement = f"SELECT count(*) FROM messages WHERE tenant = {TENANT}"
        row = await self._connection.read(lambda raw: raw.execute(statement).fetchone())
        return 0 if row is None else int(row[0])

    async def freeze_block(self, block: FrozenBlock) -> FrozenBlock:
        row = storable(
            block.message, block.session, block.text, _dump_shown(block.shown), block.silent_because,
            to_us(block.created_at),
        )  # fmt: skip

        def work(raw: _Raw) -> FrozenBlock:
            raw.execute(
                f"INSERT INTO recall_blocks ({_BLOCK}) VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING", row
            )
            return _blocks(raw, row[:1])[0]

        return await self._write(work)

    async def withdraw_block(self, message: MessageId, *, because: str) -> None:
        statement = (
            f"UPDATE recall_blocks SET text = '', shown = '[]', silent = %s WHERE tenant = {TENANT} AND message = %s"
        )
        await self._write(lambda raw: raw.execute(statement, storable(because, message)))

    async def blocks(self, messages: Sequence[MessageId]) -> Mapping[MessageId, FrozenBlock]:
        wanted = storable(*messages)
        found = {block.message: block for block in await self._connection.read(lambda raw: _blocks(raw, wanted))}
        return {message: found[stored] for message, stored in zip(messages, wanted, strict=True) if stored in found}

    async def recent_blocks(
        self,
        *,
        session: SessionId | None = None,
        project: ProjectId | None = None,
        showing: MemoryId | None = None,
        limit: int = 20,
    ) -> list[FrozenBlock]:
        conditions = {
            "session = %s": session,
            f"session IN (SELECT id FROM sessions WHERE tenant = {TENANT} AND project = %s)": project,
            f"message IN (SELECT message FROM recall_block_memories WHERE tenant = {TENANT} AND memory = %s)": showing,
        }
        held = {condition: value for condition, value in conditions.items() if value is not None}
        statement = (
            f"SELECT {_BLOCK} FROM recall_blocks WHERE {' AND '.join([f'tenant = {TENANT}', *held])} "
            "ORDER BY created_us DESC, message DESC LIMIT %s"
        )
        parameters = storable(*held.values(), limit)
        rows = await self._connection.read(lambda raw: raw.execute(statement, parameters).fetchall())
        return [_block(row) for row in rows]

    async def freeze_snapshot(self, snapshot: FrozenSnapshot) -> FrozenSnapshot:
        row = storable(snapshot.session, snapshot.text, dump(list(snapshot.shown)), to_us(snapshot.created_at))
        statement = (
            "INSERT INTO snapshots (session, text, shown, created_us) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
        )

        def work(raw: _Raw) -> FrozenSnapshot:
            raw.execute(statement, row)
            stored = _snapshot(raw, snapshot.session)
            assert stored is not None
            return stored

        return await self._write(work)

    async def snapshot(self, session_id: SessionId) -> FrozenSnapshot | None:
        return await self._connection.read(lambda raw: _snapshot(raw, session_id))

    async def thaw_snapshot(self, session_id: SessionId) -> None:
        statement = f"DELETE FROM snapshots WHERE tenant = {TENANT} AND session = %s"
        await self._write(lambda raw: raw.execute(statement, storable(session_id)))


def withdraw_showing(raw: _Raw, memories: Sequence[MemoryId], *, because: str) -> None:
    """Empty every frozen block that shows one of the memories, and let go of every snapshot that does."""
    wanted = list(memories)
    raw.execute(
        f"UPDATE recall_blocks SET text = '', silent = %s WHERE tenant = {TENANT} AND text <> '' AND message IN ("
        f"SELECT message FROM recall_block_memories WHERE tenant = {TENANT} AND memory = ANY(%s))",
        (because, wanted),
    )
    raw.execute(f"DELETE FROM snapshots WHERE tenant = {TENANT} AND shown ?| %s", (wanted,))


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


def _parts_of(raw: _Raw, messages: Sequence[str]) -> defaultdict[str, list[Part]]:
    parts: defaultdict[str, list[Part]] = defaultdict(list)
    statement = f"SELECT {_PART} FROM parts WHERE tenant = {TENANT} AND message = ANY(%s) ORDER BY message, id"
    for part_id, message, _, kind, text, tool, synthetic, detail in raw.execute(statement, (list(messages),)):
        parts[message].append(
            Part(id=PartId(part_id), kind=kind, text=text, tool=tool, synthetic=bool(synthetic), detail=detail)
        )
    return parts


def _session(row: Sequence[Any]) -> Session:
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


def _dump_shown(shown: Sequence[ShownMemory]) -> str:
    return dump(
        [
            {"memory": item.memory, "n": item.n, "score": item.score, "reason": storable(item.reason)[0]}
            for item in shown
        ]
    )


def _blocks(raw: _Raw, messages: Sequence[str]) -> list[FrozenBlock]:
    statement = f"SELECT {_BLOCK} FROM recall_blocks WHERE tenant = {TENANT} AND message = ANY(%s)"
    rows = raw.execute(statement, (list(messages),))
    return [_block(row) for row in rows]


def _block(row: Sequence[Any]) -> FrozenBlock:
    message, session, text, shown, silent, created = row
    return FrozenBlock(
        message=MessageId(message),
        session=SessionId(session),
        text=text,
        shown=tuple(ShownMemory(**item) for item in shown),
        silent_because=silent,
        created_at=from_us(created),
    )


def _snapshot(raw: _Raw, session_id: SessionId) -> FrozenSnapshot | None:
    statement = f"SELECT text, shown, created_us FROM snapshots WHERE tenant = {TENANT} AND session = %s"
    row = raw.execute(statement, storable(session_id)).fetchone()
    if row is None:
        return None
    text, shown, created = row
    shown_ids = tuple(MemoryId(item) for item in shown)
    return FrozenSnapshot(session=session_id, text=text, shown=shown_ids, created_at=from_us(created))
