"""Keepsakes of other products' stores in Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.storable import storable
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.keepsakes import COLUMNS, keepsake_from_row
from backstory.domain.interchange import Keepsake

_Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects

_PUT = (
    f"INSERT INTO keepsakes AS k ({COLUMNS}) "
    "SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[]) "
    "ON CONFLICT (tenant, format, store, key) DO UPDATE SET text = excluded.text, session = excluded.session, "
    "memory = excluded.memory "
    "WHERE (k.text, k.session, k.memory) IS DISTINCT FROM (excluded.text, excluded.session, excluded.memory)"
)


class PostgresKeepsakes:
    """The KeepsakeStore over one store."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def put(self, keepsakes: Sequence[Keepsake]) -> int:
        last = {(one.format, one.store, one.key): one for one in keepsakes}.values()
        columns = tuple(
            [*storable(*(getattr(one, name) for one in last))] for name in ("format", "store", "key", "text")
        )
        sessions, memories = ([*storable(*(getattr(one, name) for one in last))] for name in ("session", "memory"))

        def work(raw: _Raw) -> int:
            return raw.execute(_PUT, (*columns, sessions, memories)).rowcount

        return await self._connection.write(work, again=work)

    async def kept(self, format_name: str) -> Sequence[Keepsake]:
        statement = f"SELECT {COLUMNS} FROM keepsakes WHERE tenant = {TENANT} AND format = %s ORDER BY store, key"
        asked = (*storable(format_name),)
        rows = await self._connection.read(lambda raw: raw.execute(statement, asked).fetchall())
        return [keepsake_from_row(row) for row in rows]

    async def forget(self, format_name: str, *, store: str | None = None) -> int:
        statement = f"DELETE FROM keepsakes WHERE tenant = {TENANT} AND format = %s AND store = coalesce(%s, store)"
        asked = (next(iter(storable(format_name))), None if store is None else next(iter(storable(store))))

        def work(raw: _Raw) -> int:
            return raw.execute(statement, asked).rowcount

        return await self._connection.write(work, again=work)
