"""The ledger in SQLite. Nothing of it is imported before it is used: a recall without a model has no need of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from backstory.adapters.stores.sqlite.connection import Connection

if TYPE_CHECKING:
    from backstory.domain.ids import SessionId
    from backstory.domain.ledger import Allowance, Caps, Entry, Spent

COLUMNS = (
    "id, at_us, feature, model, session, project, input_tokens, output_tokens, cost, duration_us, requests, outcome, "
    "estimated"
)
SUMS = "coalesce(sum(input_tokens + output_tokens), 0), coalesce(sum(cost), 0)"


class SqliteLedger:
    """The Ledger over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def admit(self, entry: Entry, *, caps: Caps, since: datetime) -> Allowance | None:
        return await self._connection.write(lambda raw: _admit(raw, entry, caps, since))

    async def book(self, entry: Entry) -> None:
        await self._connection.write(lambda raw: _insert(raw, entry, "INSERT OR REPLACE"))

    async def withdraw(self, entry_id: str) -> None:
        def work(raw: sqlite3.Connection) -> None:
            raw.execute("DELETE FROM ledger WHERE id = ?", (entry_id,))

        await self._connection.write(work)

    async def spent(
        self, *, since: datetime | None = None, feature: str | None = None, session: SessionId | None = None
    ) -> Spent:
        return await self._connection.read(lambda raw: _spent(raw, since, feature, session))

    async def entries(self, *, since: datetime) -> Sequence[Entry]:
        from backstory.adapters.stores.sqlite.rows import to_us

        statement = f"SELECT {COLUMNS} FROM ledger WHERE at_us >= ? ORDER BY at_us, id"
        return await self._connection.read(
            lambda raw: [entry_from_row(row) for row in raw.execute(statement, (to_us(since),))]
        )


def _admit(raw: sqlite3.Connection, entry: Entry, caps: Caps, since: datetime) -> Allowance | None:
    from backstory.domain.ledger import Standing, may_call

    if caps.is_set and raw.execute("SELECT 1 FROM ledger WHERE id = ?", (entry.id,)).fetchone() is None:
        standing = Standing(
            day=_spent(raw, since, None, None),
            feature=_spent(raw, since, entry.feature, None),
            session=None if entry.session is None else _spent(raw, None, None, entry.session),
        )
        if (reached := may_call(entry.feature, caps, standing)) is not None:
            return reached
    _insert(raw, entry, "INSERT OR IGNORE")
    return None


def _insert(raw: sqlite3.Connection, entry: Entry, how: str) -> None:
    row = row_of(entry)
    raw.execute(f"{how} INTO ledger ({COLUMNS}) VALUES ({', '.join('?' * len(row))})", row)


def _spent(raw: sqlite3.Connection, since: datetime | None, feature: str | None, session: SessionId | None) -> Spent:
    from backstory.adapters.stores.sqlite.rows import to_us_or_none
    from backstory.domain.ledger import Spent

    given = {"at_us >= ?": to_us_or_none(since), "feature = ?": feature, "session = ?": session}
    wanted = {condition: value for condition, value in given.items() if value is not None}
    where = f" WHERE {' AND '.join(wanted)}" if wanted else ""
    tokens, cost = raw.execute(f"SELECT {SUMS} FROM ledger{where}", tuple(wanted.values())).fetchone()
    return Spent(tokens=int(tokens), cost=int(cost))


def row_of(entry: Entry) -> tuple[Any, ...]:  # Any: as each column holds it
    """An entry as the values of ``COLUMNS``."""
    from backstory.adapters.stores.sqlite.rows import to_us

    return (
        entry.id,
        to_us(entry.at),
        entry.feature,
        entry.model,
        entry.session,
        entry.project,
        entry.input_tokens,
        entry.output_tokens,
        entry.cost,
        entry.duration // timedelta(microseconds=1),
        entry.requests,
        entry.outcome.value,
        int(entry.estimated),
    )


def entry_from_row(row: Sequence[Any]) -> Entry:  # Any: as each column holds it
    """The entry that ``row_of`` made a row of."""
    from backstory.adapters.stores.sqlite.rows import from_us
    from backstory.domain.ledger import Entry, Outcome

    (
        entry_id, at_us, feature, model, session, project, input_tokens, output_tokens, cost, duration_us, requests,
        outcome, estimated,
    ) = row  # fmt: skip
    return Entry(
        id=entry_id,
        at=from_us(at_us),
        feature=feature,
        model=model,
        session=session,
        project=project,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost=cost,
        duration=timedelta(microseconds=duration_us),
        requests=requests,
        outcome=Outcome(outcome),
        estimated=bool(estimated),
    )
