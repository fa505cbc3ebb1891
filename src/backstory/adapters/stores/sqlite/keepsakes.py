"""Keepsakes of other products' stores in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from backstory.adapters.stores.sqlite.connection import Connection

if TYPE_CHECKING:  # opening a store needs none of it
    from backstory.domain.interchange import Keepsake

COLUMNS = "format, store, key, text, session, memory"
_PUT = (
    f"INSERT INTO keepsakes ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (format, store, key) DO UPDATE SET "
    "text = excluded.text, session = excluded.session, memory = excluded.memory "
    "WHERE text IS NOT excluded.text OR session IS NOT excluded.session OR memory IS NOT excluded.memory"
)


class SqliteKeepsakes:
    """The KeepsakeStore over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def put(self, keepsakes: Sequence[Keepsake]) -> int:
        return await self._connection.write(lambda raw: _put(raw, keepsakes))

    async def kept(self, format_name: str) -> Sequence[Keepsake]:
        statement = f"SELECT {COLUMNS} FROM keepsakes WHERE format = ? ORDER BY store, key"
        rows = await self._connection.read(lambda raw: raw.execute(statement, (format_name,)).fetchall())
        return [keepsake_from_row(row) for row in rows]

    async def forget(self, format_name: str, *, store: str | None = None) -> int:
        def work(raw: sqlite3.Connection) -> int:
            found = raw.execute(
                "DELETE FROM keepsakes WHERE format = ? AND store = coalesce(?, store)", (format_name, store)
            )
            return found.rowcount

        return await self._connection.write(work)


def keepsake_from_row(row: Sequence[Any]) -> Keepsake:
    """The keepsake of a row of ``COLUMNS``."""
    from backstory.domain.interchange import Keepsake

    format_name, store, key, text, session, memory = row
    return Keepsake(format=format_name, store=store, key=key, text=text, session=session, memory=memory)


def _put(raw: sqlite3.Connection, keepsakes: Sequence[Keepsake]) -> int:
    rows = [(one.format, one.store, one.key, one.text, one.session, one.memory) for one in keepsakes]
    return sum(raw.execute(_PUT, row).rowcount for row in rows)
