"""Putting the rows of an SQLite store in the place of a tenant's, within the transaction that runs."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from backstory.adapters.stores.postgres.looking import Raw
from backstory.adapters.stores.postgres.storable import storable
from backstory.adapters.stores.postgres.tables import MEMORIES, TABLES, Row, Table
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.postgres.words import index_words
from backstory.adapters.stores.sqlite.rows import COLUMNS, content_key, memory_from_row
from backstory.domain.statement_form import INDEX_VERSION
from backstory.domain.text import normalise

_DERIVED = ("passage_terms", "passage_vectors", "passages", "memory_terms", "term_frequencies", "recall_block_memories")
_MOST_ROWS, _MOST_CHARS = 500, 4_000_000  # of one statement
_Batch = list[Row]


def is_empty(raw: Raw) -> bool:
    """Whether a tenant has nothing that a restore would replace."""
    tables = " UNION ALL ".join(f"(SELECT 1 FROM {table.name} WHERE tenant = {TENANT} LIMIT 1)" for table in TABLES)
    return raw.execute(f"SELECT EXISTS ({tables})").fetchone() == (False,)


def fill(raw: Raw, file: sqlite3.Connection) -> tuple[int, int]:
    """Replace all rows of the tenant; how many memories and messages it has then. The caller holds its locks.

    Memories keep their numbers, and the next one is above all that were given here or there. Passages and vectors get
    new ones, so that what running processes keep of the former is not taken for these.
    """
    for name in (*_DERIVED, *(table.name for table in reversed(TABLES))):
        raw.execute(f"DELETE FROM {name} WHERE tenant = {TENANT}")
    for table in TABLES:
        _insert(raw, file, table)
    _index_memories(raw, file)
    _insert_passages(raw, file)
    counts = [int(file.execute(f"SELECT count(*) FROM {name}").fetchone()[0]) for name in ("memories", "messages")]
    return counts[0], counts[1]


def _insert(raw: Raw, file: sqlite3.Connection, table: Table) -> None:
    for rows in _batches(file, f"SELECT {table.names} FROM {table.name} ORDER BY {table.key}"):
        given = [table.storable(row) for row in rows]
        if table is MEMORIES:
            _insert_memories(raw, given)
        elif table.name == "changes":
            _insert_changes(raw, table, given)
        else:
            raw.execute(table.insert, _by_column(given))
    if table.name == "changes":
        undone = file.execute("SELECT id, undoes FROM changes WHERE undoes IS NOT NULL").fetchall()
        raw.execute(
            "UPDATE changes c SET undoes = given.undoes FROM unnest(%s::text[], %s::text[]) AS given (id, undoes) "
            f"WHERE c.tenant = {TENANT} AND c.id = given.id",
            ([change for change, _ in undone], [undoes for _, undoes in undone]),
        )


def _insert_changes(raw: Raw, table: Table, rows: _Batch) -> None:
    """Without what they undo: that may come later in the order of ids."""
    place = list(table.columns).index("undoes")
    raw.execute(table.insert, _by_column([(*row[:place], None, *row[place + 1 :]) for row in rows]))


def _insert_memories(raw: Raw, rows: _Batch) -> None:
    """With the columns that are derived from the text, which may have changed on its way."""
    names = list(MEMORIES.columns)
    text, key = names.index("content"), names.index("content_key")
    keyed = [(*row[:key], content_key(row[text]), *row[key + 1 :], normalise(row[text])) for row in rows]
    table = replace(MEMORIES, columns={**MEMORIES.columns, "normalised": "text"})
    raw.execute(table.insert, _by_column(keyed))


def _index_memories(raw: Raw, file: sqlite3.Connection) -> None:
    given = file.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'memories'").fetchone()[0]
    raw.execute(
        "UPDATE tenants SET documents = 0, tokens = 0, analyser = %s, last_n = greatest(last_n, %s) "
        f"WHERE tenant = {TENANT}",
        (INDEX_VERSION, given),
    )
    tags = "ARRAY(SELECT g.tag FROM memory_tags g WHERE g.tenant = m.tenant AND g.n = m.n ORDER BY g.position)"
    statement = (
        f"SELECT {COLUMNS}, {tags} FROM memories m WHERE tenant = {TENANT} AND n > %s ORDER BY n LIMIT {_MOST_ROWS}"
    )
    last = 0
    while rows := raw.execute(statement, (last,)).fetchall():
        index_words(raw, [memory_from_row(row[:-1], tuple(row[-1])) for row in rows])
        last = rows[-1][0]


def _insert_passages(raw: Raw, file: sqlite3.Connection) -> None:
    """Those that have words in the index; whatever is missing is cut by the next ``reindex``."""
    numbers: dict[int, int] = {}
    statement = (
        "SELECT x.n, x.part, x.position, x.message, x.session, x.created_us, x.text, w.tokens "
        "FROM passages x JOIN passage_words w ON w.rowid = x.n ORDER BY x.n"
    )
    for rows in _batches(file, statement):
        numbers |= _insert_some_passages(raw, [storable(*row) for row in rows])
    statement = (
        "SELECT v.n, v.model, v.dimension, v.vector, w.words FROM passage_vectors v "
        "LEFT JOIN passage_word_vectors w ON w.n = v.n AND w.model = v.model ORDER BY v.n, v.model"
    )
    for rows in _batches(file, statement):
        raw.execute(
            "INSERT INTO passage_vectors (n, model, dimension, vector, words) "
            "SELECT * FROM unnest(%s::bigint[], %s::text[], %s::int[], %s::bytea[], %s::bytea[])",
            _by_column([(numbers[n], *rest) for n, *rest in rows if n in numbers]) or [[], [], [], [], []],
        )
    documents, tokens, analyser = file.execute("SELECT documents, tokens, analyser FROM passage_statistics").fetchone()
    raw.execute(
        f"UPDATE passage_statistics SET documents = %s, tokens = %s, analyser = %s WHERE tenant = {TENANT}",
        (documents, tokens, analyser),
    )


def _insert_some_passages(raw: Raw, rows: Sequence[Row]) -> dict[int, int]:
    """The new number of each passage."""
    given = [(*row[1:], len(row[-1].split())) for row in rows]
    added = raw.execute(
        "INSERT INTO passages (part, position, message, session, created_us, text, tokens, length) "
        "SELECT * FROM unnest(%s::text[], %s::int[], %s::text[], %s::text[], %s::bigint[], %s::text[], %s::text[], "
        "%s::int[]) RETURNING part, position, n",
        _by_column(given),
    ).fetchall()
    placed = {(part, position): n for part, position, n in added}
    numbers = {row[0]: placed[row[1], row[2]] for row in rows}
    terms = [(numbers[row[0]], term, count) for row in rows for term, count in Counter(row[-1].split()).items()]
    raw.execute(
        "INSERT INTO passage_terms (n, term, count) SELECT * FROM unnest(%s::bigint[], %s::text[], %s::int[])",
        _by_column(terms) or [[], [], []],
    )
    return numbers


def _batches(file: sqlite3.Connection, statement: str) -> Iterator[_Batch]:
    """The rows of a statement, as many at a time as one of the server's statements should hold."""
    rows: _Batch = []
    size = 0
    for row in file.execute(statement):
        rows.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(rows) >= _MOST_ROWS or size >= _MOST_CHARS:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def _by_column(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
