"""The ledger in Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.storable import storable
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.ledger import COLUMNS, SUMS, entry_from_row, row_of
from backstory.adapters.stores.sqlite.rows import to_us, to_us_or_none
from backstory.domain.ids import SessionId
from backstory.domain.ledger import Allowance, Caps, Entry, Spent, Standing, may_call

_Raw = psycopg.Connection[Any]

_MARKS = ", ".join(["%s"] * len(COLUMNS.split(",")))
_INSERT = f"INSERT INTO ledger ({COLUMNS}) VALUES ({_MARKS}) ON CONFLICT (tenant, id)"
_REPLACED = ", ".join(f"{name.strip()} = excluded.{name.strip()}" for name in COLUMNS.split(",")[1:])


class PostgresLedger:
    """The Ledger over one store. A tenant's processes share it, and its caps."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def admit(self, entry: Entry, *, caps: Caps, since: datetime) -> Allowance | None:
        def work(raw: _Raw) -> Allowance | None:
            return _admit(raw, entry, caps, since)

        return await self._connection.write(work, again=work)

    async def book(self, entry: Entry) -> None:
        def work(raw: _Raw) -> None:
            raw.execute(f"{_INSERT} DO UPDATE SET {_REPLACED}", storable(*row_of(entry)))

        await self._connection.write(work, again=work)

    async def withdraw(self, entry_id: str) -> None:
        def work(raw: _Raw) -> None:
            raw.execute(f"DELETE FROM ledger WHERE tenant = {TENANT} AND id = %s", storable(entry_id))

        await self._connection.write(work, again=work)

    async def spent(
        self, *, since: datetime | None = None, feature: str | None = None, session: SessionId | None = None
    ) -> Spent:
        return await self._connection.read(lambda raw: _spent(raw, since, feature, session))

    async def entries(self, *, since: datetime) -> Sequence[Entry]:
        statement = f"SELECT {COLUMNS} FROM ledger WHERE tenant = {TENANT} AND at_us >= %s ORDER BY at_us, id"
        return await self._connection.read(
            lambda raw: [entry_from_row(row) for row in raw.execute(statement, (to_us(since),))]
        )


def _admit(raw: _Raw, entry: Entry, caps: Caps, since: datetime) -> Allowance | None:
    if caps.is_set:
        _lock(raw)
        booked = raw.execute(f"SELECT 1 FROM ledger WHERE tenant = {TENANT} AND id = %s", storable(entry.id))
        if booked.fetchone() is None:
            standing = Standing(
                day=_spent(raw, since, None, None),
                feature=_spent(raw, since, entry.feature, None),
                session=None if entry.session is None else _spent(raw, None, None, entry.session),
            )
            if (reached := may_call(entry.feature, caps, standing)) is not None:
                return reached
    raw.execute(f"{_INSERT} DO NOTHING", storable(*row_of(entry)))
    return None


def _lock(raw: _Raw) -> None:
    """Let nobody else of this tenant be admitted until the transaction ends. What is read after this is what they
    left: writes run at READ COMMITTED."""
    raw.execute(f"SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' ledger ' || {TENANT}, 0))")


def _spent(raw: _Raw, since: datetime | None, feature: str | None, session: SessionId | None) -> Spent:
    given = {"at_us >= %s": to_us_or_none(since), "feature = %s": feature, "session = %s": session}
    wanted = {condition: value for condition, value in given.items() if value is not None}
    where = "".join(f" AND {condition}" for condition in wanted)
    row = raw.execute(
        f"SELECT {SUMS} FROM ledger WHERE tenant = {TENANT}{where}", storable(*wanted.values())
    ).fetchone()
    assert row is not None  # an aggregate always gives one
    return Spent(tokens=int(row[0]), cost=int(row[1]))
