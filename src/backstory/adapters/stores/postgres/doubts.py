"""Doubts about memories in Postgres."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.storable import storable
from backstory.adapters.stores.postgres.tenancy import TENANT, lock_tenant
from backstory.adapters.stores.sqlite.doubts import COLUMNS, doubt_from_row
from backstory.adapters.stores.sqlite.dreams import is_readable
from backstory.adapters.stores.sqlite.rows import to_us
from backstory.domain.doubt import Doubt
from backstory.domain.ids import MemoryId

_Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects

SETTLED = (
    "SELECT d.memory FROM doubts d JOIN memories m ON m.tenant = d.tenant AND m.id = d.memory "
    f"WHERE d.tenant = {TENANT} AND m.state = 'deleted'"
)
"""The memories that are forgotten, and that a doubt is kept of."""
_ADD = (
    f"INSERT INTO doubts ({COLUMNS}) SELECT m.id, given.anchor, given.reason, given.since_us "
    "FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[]) AS given (memory, anchor, reason, since_us) "
    f"JOIN memories m ON m.tenant = {TENANT} AND m.id = given.memory AND m.state <> 'deleted'"
)


class PostgresDoubts:
    """The DoubtStore over one store."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def doubts(self, memories: Sequence[MemoryId] | None = None) -> Mapping[MemoryId, Doubt]:
        statement = f"SELECT {COLUMNS} FROM doubts WHERE tenant = {TENANT}"
        asked: tuple[list[str], ...] = ()
        if memories is None:
            statement += " ORDER BY memory"
        else:
            statement += " AND memory = ANY(%s)"
            asked = ([*storable(*memories)],)
        rows = await self._connection.read(lambda raw: raw.execute(statement, asked).fetchall())
        found = map(doubt_from_row, rows)
        return {doubt.memory: doubt for doubt in found}

    async def replace(self, looked_at: Sequence[MemoryId], doubts: Sequence[Doubt]) -> None:
        meant = set(looked_at)
        kept = {doubt.memory: doubt for doubt in doubts if doubt.memory in meant}

        def work(raw: _Raw) -> None:
            lock_tenant(raw)  # no memory changes from the look at it to the commit
            let_go_of_doubts(raw, storable(*looked_at))
            raw.execute(_ADD, _by_column(list(kept.values())))

        await self._connection.write(work, again=work)


def let_go_of_doubts(raw: _Raw, memories: Sequence[MemoryId]) -> None:
    """Remove the doubts about the memories."""
    raw.execute(f"DELETE FROM doubts WHERE tenant = {TENANT} AND memory = ANY(%s)", ([*memories],))


def unreadable_doubts(raw: _Raw) -> list[str]:
    """The memories with a doubt that no Backstory writes."""
    rows = raw.execute(f"SELECT {COLUMNS} FROM doubts WHERE tenant = {TENANT}").fetchall()
    return [row[0] for row in rows if not is_readable(partial(doubt_from_row, row))]


def mend_doubts(raw: _Raw) -> int:
    """Remove the doubts that cannot be read, and those about memories that are forgotten; how many those were."""
    lock_tenant(raw)
    own = f"DELETE FROM doubts WHERE tenant = {TENANT} AND"
    unreadable = raw.execute(f"{own} memory = ANY(%s)", (unreadable_doubts(raw),)).rowcount
    return unreadable + raw.execute(f"{own} memory IN ({SETTLED})").rowcount


def _by_column(doubts: Sequence[Doubt]) -> tuple[list[Any], ...]:
    texts = ([doubt.memory for doubt in doubts], [doubt.anchor for doubt in doubts], [d.reason for d in doubts])
    return (*([*storable(*column)] for column in texts), [to_us(doubt.since) for doubt in doubts])
