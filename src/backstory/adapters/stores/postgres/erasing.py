"""The Eraser of Postgres: the tenant's rows in one transaction, then the room that their old versions take.

What a server keeps beside its tables is beyond our reach, and told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import psycopg

from backstory.adapters.blocking import run_blocking
from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.opening import Address
from backstory.domain.evidence_passages import PassageLimits

if TYPE_CHECKING:
    from backstory.domain.erasure import Rewrite
    from backstory.ports.erasing import Cleaned, Erasure, Found, Progress, Receipt, Trace

_Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects
_VACUUM_S = 3600

_BEYOND = (
    "the server's write-ahead log, until it is recycled, and every archive of it",
    "standbys and replicas of the server, and backups that were made of it",
    "the server's statistics of its tables, until it tidies up what they were",
)
_OCPG = "the tables of ocpg beside it, in rows that ocpg keeps as its history"


class PostgresEraser:
    """The Eraser over one tenant's rows."""

    def __init__(self, connection: Connection, limits: PassageLimits, *, address: Address) -> None:
        self._connection = connection
        self._limits = limits
        self._address = address

    async def look(self, rewrite: Rewrite, told: Callable[[Found], None], *, progress: Progress | None = None) -> None:
        from backstory.adapters.stores.postgres.erased_rows import look_at

        def work(raw: _Raw) -> list[Found]:
            return list(look_at(raw, rewrite, progress or _unheard))

        for found in await self._connection.read(work):  # told once, however often the reading had to begin anew
            told(found)

    async def erase(self, erasure: Erasure, *, progress: Progress | None = None) -> Mapping[str, int]:
        from backstory.adapters.stores.postgres.erased_rows import erase

        return await self._connection.write(lambda raw: erase(raw, erasure, self._limits, progress or _unheard))

    async def clean(self, *, copies: bool) -> Cleaned:
        from backstory.ports.erasing import Cleaned

        has_ocpg = await self._connection.read(_has_ocpg)
        left = await run_blocking(self._write_anew)
        remains = (*left, *_BEYOND, *((_OCPG,) if has_ocpg else ()))
        return Cleaned(finished=not left, remains=remains)

    def _write_anew(self) -> tuple[str, ...]:
        """Write the tables anew, without what was deleted; where that may not be, why. Each is locked meanwhile."""
        from backstory.adapters.stores.postgres.opening import connect

        with connect(self._address) as raw:
            raw.silence_s = _VACUUM_S
            tables = [row[0] for row in raw.execute(_TABLES, (self._address.schema,)).fetchall()]
            raw.execute("SET lock_timeout TO '10s'")
            warnings: list[str] = []
            raw.add_notice_handler(lambda told: warnings.append(told.message_primary or ""))
            try:
                for table in tables:
                    raw.execute(f"VACUUM (FULL, ANALYZE) {table}")
            except psycopg.Error as error:
                return (f"old versions of rows in the server's files: {str(error).splitlines()[0]}",)
            if any("permission denied" in text for text in warnings):
                return ("old versions of rows in the server's files, until the tables' owner runs VACUUM (FULL)",)
        return ()

    async def scan(self, texts: Sequence[str]) -> list[Trace]:
        from backstory.adapters.stores.byte_search import ByteSearch
        from backstory.ports.erasing import Trace

        search = ByteSearch(texts)

        def work(raw: _Raw) -> list[Trace]:
            counts = {table: sum(map(search.count_in, values)) for table, values in _values(raw)}
            return [Trace(where=f"table {table}", count=count) for table, count in counts.items() if count]

        return await self._connection.read(work)

    async def receipts(self, *, limit: int) -> list[Receipt]:
        from backstory.adapters.stores.postgres.tenancy import TENANT
        from backstory.adapters.stores.sqlite.receipts import receipt_from_row

        statement = (
            "SELECT id, at_us, reason, memories, places, remains, traces, finished FROM erasures "
            f"WHERE tenant = {TENANT} ORDER BY at_us DESC, id DESC LIMIT %s"
        )
        rows = await self._connection.read(lambda raw: raw.execute(statement, (limit,)).fetchall())
        return [receipt_from_row(row) for row in rows]

    async def note(self, receipt: Receipt) -> None:
        from backstory.adapters.stores.postgres.erased_rows import put_receipt

        await self._connection.write(lambda raw: put_receipt(raw, receipt))


_TABLES = (
    "SELECT format('%%I.%%I', s.nspname, c.relname) FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace "
    "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant' "
    "WHERE s.nspname = %s AND c.relkind = 'r' ORDER BY c.relname"
)


def _has_ocpg(raw: _Raw) -> bool:
    return raw.execute("SELECT to_regclass('ocpg_source') IS NOT NULL").fetchall()[0][0] is True


def _values(raw: _Raw) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Every value of every row of the tenant, by table, as bytes: texts as they are, contents unpacked."""
    from backstory.adapters.stores.postgres.looking import LONG
    from backstory.adapters.stores.postgres.tenancy import TENANT

    raw.execute(LONG)
    tables = raw.execute(
        "SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema = current_schema() "
        "AND column_name = 'tenant' ORDER BY table_name"
    ).fetchall()
    for (table,) in tables:
        yield table, _bytes_of(raw, f"SELECT t::text FROM {table} t WHERE tenant = {TENANT}")
    yield "blobs, unpacked", _contents(raw, f"SELECT hash, size, packing, packed FROM blobs WHERE tenant = {TENANT}")


def _bytes_of(raw: _Raw, statement: str) -> Iterator[bytes]:
    """Rows as text. A row doubles the quotes and backslashes of its values."""
    for (text,) in raw.execute(statement):
        yield text.replace('""', '"').replace("\\\\", "\\").encode("utf-8", "surrogatepass")


def _contents(raw: _Raw, statement: str) -> Iterator[bytes]:
    from backstory.adapters.stores.sqlite.blobs import blob_from_row
    from backstory.domain.blob import content_of

    for row in raw.execute(statement):
        try:
            yield content_of(blob_from_row(row))
        except ValueError:
            continue  # damaged: nobody can read it


def _unheard(count: int) -> None:
    """Nobody wants to know how far it is."""
