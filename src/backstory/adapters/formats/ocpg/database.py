"""The rows of a running ocpg database, each reading as of one moment. Nothing in it is changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from backstory.adapters.formats.ocpg.tables import MEMORIES, RECALLS, Counted, Data, Event, Table
from backstory.errors import InputError

if TYPE_CHECKING:
    import psycopg

    from backstory.adapters.stores.postgres.ocpg.layout import Layout

SCHEMES = ("postgres://", "postgresql://")
_CONNECT_SECONDS = 10
_PASSWORD = "OCPG_PASSWORD"
_TLS = frozenset({"prefer", "require", "verify-ca", "verify-full"})
_COLUMNS = (
    "id", "content", "tags", "session_id", "project", "source_host", "created_at", "memory_type", "access_count",
    "last_accessed_at", "updated_at", "embedding", "superseded_by",
)  # fmt: skip
_RECALLS = ("memory_id", "session_id", "recalled_at")


def usual_address() -> str:
    """Where ocpg has its database, by the same variables and defaults; its password is looked up on connecting."""

    def said(name: str, otherwise: str) -> str:
        return quote(os.environ.get(f"OCPG_{name}") or otherwise, safe="")

    tls = said("SSL", "disable").lower()
    place = f"{said('HOST', 'localhost')}:{said('PORT', '5432')}/{said('DB', 'ocpg')}"
    return f"postgres://{said('USER', 'ocpguser')}@{place}?sslmode={tls if tls in _TLS else 'disable'}"


def events(address: str) -> Iterator[Event]:
    """What the database holds, as a script would put it there: rows by id. Raises InputError where no ocpg is there,
    and StoreError where the server does not answer."""
    try:
        import psycopg

        from backstory.adapters.stores.postgres.driver_errors import in_our_words
        from backstory.adapters.stores.postgres.ocpg.layout import find_layouts
    except ModuleNotFoundError as error:
        raise InputError(
            "reading a database needs the driver of Postgres", field="path", hint="pip install 'backstory[postgres]'"
        ) from error
    with in_our_words(), psycopg.connect(_with_password(address), connect_timeout=_CONNECT_SECONDS) as raw:
        raw.read_only = True
        raw.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        raw.execute("SET LOCAL search_path TO pg_catalog")
        raw.execute("SET LOCAL timezone TO 'UTC'")
        raw.execute("SET LOCAL datestyle TO 'ISO'")
        layout = next(iter(find_layouts(raw)), None)
        if layout is None:
            raise InputError("this database has no tables of ocpg that its user may read", field="path")
        yield from _of(raw, layout)


def _with_password(address: str) -> str:
    """The address, with ocpg's own password where it has none."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    own = os.environ.get(_PASSWORD) if address == usual_address() else None
    return make_conninfo(address, password=own) if own and not conninfo_to_dict(address).get("password") else address


def _of(raw: psycopg.Connection[Any], layout: Layout) -> Iterator[Event]:
    columns = tuple(name for name in _COLUMNS if name in layout.columns)
    yield Table(
        schema=layout.schema, name=MEMORIES, types={name: _type(raw, layout, name) for name in columns},
        words=layout.types,
    )  # fmt: skip
    yield from _rows(raw, layout, MEMORIES, columns, order="id")
    if layout.has_recalls:
        yield from _rows(raw, layout, RECALLS, _RECALLS, order="recalled_at, memory_id, session_id")
    yield from _sequence(raw, layout)


def _type(raw: psycopg.Connection[Any], layout: Layout, column: str) -> tuple[str, ...]:
    """The type of a column; with its dimension, in a word of its own, where it is a vector."""
    if column != "embedding":
        return ()
    found = raw.execute(
        "SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = %s",
        (layout.memories.as_string(raw), column),
    ).fetchone()
    return ("vector", "(", str(found[0]), ")") if found and found[0] > 0 else ("vector",)


def _rows(
    raw: psycopg.Connection[Any], layout: Layout, table: str, columns: tuple[str, ...], *, order: str
) -> Iterator[Event]:
    from psycopg import sql

    statement = sql.SQL("COPY (SELECT {} FROM {} ORDER BY {}) TO STDOUT").format(
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        layout.memories if table == MEMORIES else layout.recalls,
        sql.SQL(order),
    )
    with raw.cursor() as cursor, cursor.copy(statement) as copy:
        for n, values in enumerate(copy.rows(), start=1):
            yield Data(table=table, n=n, values=dict(zip(columns, values, strict=True)), is_copied=True)


def _sequence(raw: psycopg.Connection[Any], layout: Layout) -> Iterator[Event]:
    """Where the sequence of ids stands, if the role may see it."""
    row = raw.execute(
        "SELECT s.seqrelid::regclass::text, has_sequence_privilege(s.seqrelid, 'SELECT') FROM pg_sequence s"
        " WHERE s.seqrelid = pg_get_serial_sequence(%s, 'id')::regclass",
        (layout.memories.as_string(raw),),
    ).fetchone()
    if row and row[1]:
        from psycopg import sql

        found = raw.execute(sql.SQL("SELECT last_value, is_called FROM {}").format(sql.SQL(row[0]))).fetchone()
        if found:
            yield Counted(last=int(found[0]), is_called=bool(found[1]))
