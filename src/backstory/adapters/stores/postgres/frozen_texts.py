"""Texts frozen beside messages and sessions, in Postgres."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import psycopg

from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.storable import storable
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.rows import dump, from_us, to_us
from backstory.domain.conversation import FrozenBlock, FrozenSnapshot, ShownMemory
from backstory.domain.history import WITHHELD
from backstory.domain.ids import MemoryId, MessageId, ProjectId, SessionId

_Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects
T = TypeVar("T")

_BLOCK = "message, session, text, shown, silent, created_us"


class PostgresFrozenTexts:
    """The FrozenTexts over one pool of connections."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def _write(self, fn: Callable[[_Raw], T]) -> T:
        """Every write here may run twice, so one whose outcome a lost connection left open is made again."""
        return await self._connection.write(fn, again=fn)

    async def freeze_block(self, block: FrozenBlock) -> FrozenBlock:
        def work(raw: _Raw) -> FrozenBlock:
            kept = block
            if _is_withheld(raw, [item.memory for item in block.shown]):
                kept = replace(block, text="", shown=(), silent_because=WITHHELD)
            row = storable(
                kept.message, kept.session, kept.text, _dump_shown(kept.shown), kept.silent_because,
                to_us(kept.created_at),
            )  # fmt: skip
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
            if _is_withheld(raw, snapshot.shown):
                return _snapshot(raw, snapshot.session) or replace(snapshot, text="", shown=())
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


def _is_withheld(raw: _Raw, memories: Sequence[MemoryId]) -> bool:
    """Whether one of the memories was forgotten, or made private or local-only, while a text was made of them. Waits
    for whoever is about to do that, and keeps others from it until this transaction ends."""
    if not memories:
        return False
    rows = raw.execute(
        f"SELECT state, sensitivity FROM memories WHERE tenant = {TENANT} AND id = ANY(%s) ORDER BY n FOR SHARE",
        (list(memories),),
    )
    return any(state == "deleted" or sensitivity != "normal" for state, sensitivity in rows.fetchall())


def _dump_shown(shown: Sequence[ShownMemory]) -> str:
    return dump(
        [
            {
                "memory": item.memory,
                "n": item.n,
                "score": item.score,
                "reason": storable(item.reason)[0],
                "parts": item.parts,
            }
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
