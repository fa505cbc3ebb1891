"""Texts frozen beside messages and sessions, in SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace

from backstory.adapters.stores.sqlite.connection import Connection
from backstory.adapters.stores.sqlite.filters import Where
from backstory.adapters.stores.sqlite.rows import dump, from_us, to_us
from backstory.domain.conversation import FrozenBlock, FrozenSnapshot, ShownMemory
from backstory.domain.history import WITHHELD
from backstory.domain.ids import MemoryId, MessageId, ProjectId, SessionId

_BLOCK = "message, session, text, shown, silent, created_us"


class SqliteFrozenTexts:
    """The FrozenTexts over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def freeze_block(self, block: FrozenBlock) -> FrozenBlock:
        def work(raw: sqlite3.Connection) -> FrozenBlock:
            kept = block
            if _is_withheld(raw, [item.memory for item in block.shown]):
                kept = replace(block, text="", shown=(), silent_because=WITHHELD)
            row = (
                kept.message, kept.session, kept.text, _dump_shown(kept.shown), kept.silent_because,
                to_us(kept.created_at),
            )  # fmt: skip
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
            if _is_withheld(raw, snapshot.shown):
                return _snapshot(raw, snapshot.session) or replace(snapshot, text="", shown=())
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


def _is_withheld(raw: sqlite3.Connection, memories: Sequence[MemoryId]) -> bool:
    """Whether one of the memories was forgotten, or made private or local-only, while a text was made of them."""
    statement = "SELECT 1 FROM memories WHERE id = ? AND (state = 'deleted' OR sensitivity <> 'normal')"
    return any(raw.execute(statement, (memory,)).fetchone() is not None for memory in memories)


def _dump_shown(shown: Sequence[ShownMemory]) -> str:
    return dump(
        [
            {"memory": item.memory, "n": item.n, "score": item.score, "reason": item.reason, "parts": item.parts}
            for item in shown
        ]
    )


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
