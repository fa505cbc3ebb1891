"""Memories, their history and their counters in Postgres. Searching them is in ``words.py`` and ``vectors.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from backstory.adapters.stores.postgres import planner
from backstory.adapters.stores.postgres.commits import CHANGE, change_by_id, changes, commit_change, first_value
from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.filters import Where, where, where_in_sight
from backstory.adapters.stores.postgres.tenancy import TENANT, lock_tenant
from backstory.adapters.stores.postgres.texts import check_storable
from backstory.adapters.stores.sqlite.rows import COLUMNS, OUTLINE, memory_from_row, outline_from_row, to_us
from backstory.domain.history import Change, check_not_empty
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.memory import Memory
from backstory.domain.outline import Outline
from backstory.domain.scope import Viewer
from backstory.domain.selection import Selection
from backstory.ports.store import Capabilities, Order, Use

_Raw = psycopg.Connection[Any]
_NUMBER_LIMIT = 1 << 63
_TAGS = "ARRAY(SELECT g.tag FROM memory_tags g WHERE g.tenant = m.tenant AND g.n = m.n ORDER BY g.position)"
_MEMORY = f"{COLUMNS}, {_TAGS}"
_MANY = 100  # edits of a change after which the planner may know too little


class PostgresMemories:
    """The MemoryStore over one store."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            name="postgres",
            location=self._connection.location,
            durable=True,
            shared_between_processes=True,
            read_only=self._connection.read_only,
        )

    async def get(self, ids: Sequence[MemoryId]) -> dict[MemoryId, Memory]:
        statement = f"SELECT {_MEMORY} FROM memories m WHERE m.tenant = {TENANT} AND m.id = ANY(%s)"

        def work(raw: _Raw) -> dict[MemoryId, Memory]:
            return {memory.id: memory for memory in _memories(raw, statement, list(ids))}

        return await self._connection.read(work)

    async def by_number(self, n: int) -> Memory | None:
        statement = f"SELECT {_MEMORY} FROM memories m WHERE m.tenant = {TENANT} AND m.n = %s"

        def work(raw: _Raw) -> Memory | None:
            return next(iter(_memories(raw, statement, n)), None)

        return await self._connection.read(work) if 0 < n < _NUMBER_LIMIT else None

    async def select(
        self, selection: Selection, *, limit: int, offset: int = 0, order: Order = Order.NEWEST
    ) -> list[Memory]:
        clause = where(selection)
        direction = "DESC" if order is Order.NEWEST else "ASC"
        statement = (
            f"SELECT {_MEMORY} FROM memories m WHERE {clause.sql} "
            f"ORDER BY m.learned_us {direction}, m.n {direction} LIMIT %s OFFSET %s"
        )
        return await self._connection.read(lambda raw: _memories(raw, statement, *clause.parameters, limit, offset))

    async def outlines(self, selection: Selection) -> list[Outline]:
        clause = where(selection)
        statement = f"SELECT {OUTLINE}, {_TAGS} FROM memories m WHERE {clause.sql} ORDER BY m.updated_us, m.n"

        def work(raw: _Raw) -> list[Outline]:
            return [outline_from_row(row[:-1], tuple(row[-1])) for row in raw.execute(statement, clause.parameters)]

        return await self._connection.read(work)

    async def count(self, selection: Selection) -> int:
        clause = where(selection)
        statement = f"SELECT count(*) FROM memories m WHERE {clause.sql}"
        return await self._connection.read(lambda raw: int(first_value(raw, statement, *clause.parameters)))

    async def commit(self, change: Change, *, absent: Selection | None = None) -> Change:
        check_not_empty(change)
        check_storable(change)

        def again(raw: _Raw) -> Change:
            lock_tenant(raw)  # so that a commit that is still under way ends first
            return change_by_id(raw, change.id) or commit_change(raw, change, absent)

        done = await self._connection.write(lambda raw: commit_change(raw, change, absent), again=again)
        if len(done.edits) >= _MANY:
            await planner.keep_informed(self._connection, planner.OF_MEMORIES)
        return done

    async def history(
        self, *, memory: MemoryId | None = None, viewer: Viewer | None = None, limit: int = 50
    ) -> list[Change]:
        clause = Where([f"c.tenant = {TENANT}"]) if viewer is None else where_in_sight(viewer)
        if memory is not None:
            clause.add(
                "c.id IN (SELECT e.change FROM change_edits e JOIN memories m ON m.tenant = e.tenant AND m.n = e.n"
                f" WHERE e.tenant = {TENANT} AND m.id = %s)",
                memory,
            )
        statement = f"SELECT {CHANGE} FROM changes c WHERE {clause.sql} ORDER BY c.at_us DESC, c.id DESC LIMIT %s"
        return await self._connection.read(lambda raw: changes(raw, statement, *clause.parameters, limit))

    async def change(self, change_id: ChangeId) -> Change | None:
        return await self._connection.read(lambda raw: change_by_id(raw, change_id))

    async def record_use(self, use: Use) -> None:
        column, stamp = ("surfaced", "surfaced_us") if use.surfaced else ("recalled", "used_us")
        statement = f"UPDATE memories SET {column} = {column} + 1, {stamp} = %s WHERE tenant = {TENANT} AND id = %s"

        def work(raw: _Raw) -> None:
            for memory_id in sorted(use.memories):  # in one order, so that two of these never wait for each other
                raw.execute(statement, (to_us(use.at), memory_id))
                if use.session is not None:
                    _count_session(raw, memory_id, use.session)

        await self._connection.write(work)

    async def tag_counts(self, selection: Selection, *, limit: int) -> list[tuple[str, int]]:
        clause = where(selection)
        statement = (
            "SELECT g.tag, count(*) AS uses FROM memory_tags g JOIN memories m ON m.tenant = g.tenant AND m.n = g.n"
            f" WHERE {clause.sql} GROUP BY g.tag ORDER BY uses DESC, g.tag LIMIT %s"
        )

        def work(raw: _Raw) -> list[tuple[str, int]]:
            return [(str(tag), int(uses)) for tag, uses in raw.execute(statement, (*clause.parameters, limit))]

        return await self._connection.read(work)

    async def close(self) -> None:
        await self._connection.close()


def _memories(raw: _Raw, statement: str, *parameters: object) -> list[Memory]:
    return [memory_from_row(row[:-1], tuple(row[-1])) for row in raw.execute(statement, parameters)]


def _count_session(raw: _Raw, memory_id: MemoryId, session: str) -> None:
    added = raw.execute(
        "INSERT INTO memory_sessions (n, session)"
        f" SELECT n, %s FROM memories WHERE tenant = {TENANT} AND id = %s ON CONFLICT DO NOTHING",
        (session, memory_id),
    )
    if added.rowcount == 1:
        raw.execute(f"UPDATE memories SET sessions = sessions + 1 WHERE tenant = {TENANT} AND id = %s", (memory_id,))
