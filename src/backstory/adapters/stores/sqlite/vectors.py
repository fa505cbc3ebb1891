"""Vectors in SQLite, searched exactly over a matrix that a running process keeps in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from backstory.adapters.stores.sqlite.connection import Connection
from backstory.adapters.stores.sqlite.filters import Where, where
from backstory.adapters.stores.sqlite.rows import CIRCLE, COLUMNS, memory_from_row
from backstory.adapters.stores.vector_matrix import VectorMatrix, pack, unpack
from backstory.adapters.word_agreement import agreements
from backstory.domain.ids import MemoryId
from backstory.domain.memory import searchable_text
from backstory.domain.scope import circles
from backstory.domain.selection import Selection
from backstory.ports.index import Embedded, Unembedded, VectorHit, WordAgreement, check_length
from backstory.ports.models import EmbeddingModel, Vector, WordVectors

_AT_ONCE = 500
"""Parameters of one statement: older versions of SQLite allow 999."""


class SqliteVectorIndex:
    """The VectorIndex over one connection. numpy is imported at the first use.

    Cost: the first search reads all vectors of the model (about 30 ms for 10,000, 0.7 s for 100,000); later ones read
    only what is new and take about 0.3 ms and 10 ms.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._matrices: dict[EmbeddingModel, _Matrix] = {}
        self._replacements = 0

    async def search_vectors(
        self, vector: Vector, selection: Selection, *, model: EmbeddingModel, limit: int
    ) -> list[VectorHit]:
        check_length(vector, model)
        clause = where(selection)

        def work(raw: sqlite3.Connection) -> list[VectorHit]:
            matrix = self._matrix(model)
            matrix.refresh(raw)
            return matrix.nearest(raw, vector, clause, limit, circles(selection.viewer))

        return await self._connection.read(work)

    def _matrix(self, model: EmbeddingModel) -> _Matrix:
        """The matrix of the file that is open now: another one in its place may number its vectors alike."""
        if self._replacements != self._connection.replacements:
            self._matrices.clear()
            self._replacements = self._connection.replacements
        if model not in self._matrices:
            self._matrices[model] = _Matrix(model)
        return self._matrices[model]

    async def unembedded(self, *, model: EmbeddingModel, limit: int) -> list[Unembedded]:
        statement = (
            f"SELECT {COLUMNS} FROM memories m WHERE m.state <> 'deleted' AND m.sensitivity <> 'local-only' "
            "AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.n = m.n AND v.model = ? AND v.dimension = ?) "
            "ORDER BY m.n DESC LIMIT ?"
        )
        parameters = (model.name, model.dimension, limit)

        def work(raw: sqlite3.Connection) -> list[Unembedded]:
            memories = [memory_from_row(row, _tags(raw, row[0])) for row in raw.execute(statement, parameters)]
            return [Unembedded(id=m.id, revision=m.revision, text=searchable_text(m)) for m in memories]

        return await self._connection.read(work)

    async def put_vectors(self, vectors: Sequence[Embedded], *, model: EmbeddingModel) -> int:
        for item in vectors:
            check_length(item.vector, model)
        packed = [(item, pack(item.vector)) for item in vectors]
        return await self._connection.write(lambda raw: sum(_put(raw, item, blob, model) for item, blob in packed))

    async def vectors_of(self, ids: Sequence[MemoryId], *, model: EmbeddingModel) -> Mapping[MemoryId, Vector]:
        def work(raw: sqlite3.Connection) -> dict[MemoryId, Vector]:
            return {memory_id: unpack(blob) for memory_id, blob in _packed(raw, ids, model)}

        return await self._connection.read(work)

    async def compare_words(
        self, words: WordVectors, ids: Sequence[MemoryId], *, model: EmbeddingModel
    ) -> Mapping[MemoryId, WordAgreement]:
        marks = ", ".join("?" * len(ids))
        # CROSS JOIN fixes the order: left to itself, SQLite may walk all vectors of the model (19 ms among 10,000)
        statement = (
            "SELECT m.id, v.words FROM memories m CROSS JOIN vectors v ON v.n = m.n "
            f"WHERE m.id IN ({marks}) AND v.model = ? AND v.dimension = ? AND v.words IS NOT NULL"
        )
        parameters = (*ids, model.name, model.dimension)
        rows = await self._connection.read(lambda raw: raw.execute(statement, parameters).fetchall())
        return agreements(words, {MemoryId(memory_id): matrix for memory_id, matrix in rows})

    async def vector_counts(self) -> Mapping[str, int]:
        statement = "SELECT model, count(*) FROM vectors GROUP BY model"
        return await self._connection.read(lambda raw: {str(name): int(n) for name, n in raw.execute(statement)})

    async def drop_vectors(self, *, model_name: str) -> int:
        statement = "DELETE FROM vectors WHERE model = ?"
        return await self._connection.write(lambda raw: raw.execute(statement, (model_name,)).rowcount)


class _Matrix:
    """All vectors of one model, read from the file once and kept up to date."""

    def __init__(self, model: EmbeddingModel) -> None:
        self._model = model
        self._removals = -1
        self._rows = VectorMatrix(model.dimension)

    def refresh(self, raw: sqlite3.Connection) -> None:
        """Bring the matrix up to date with the file: drop what was removed, read what is new."""
        removals = int(raw.execute("SELECT total FROM vector_removals").fetchone()[0])
        if removals != self._removals:
            living = raw.execute("SELECT seq FROM vectors WHERE model = ?", (self._model.name,))
            self._rows.keep(seq for (seq,) in living)
            self._removals = removals
        new = raw.execute(
            f"SELECT v.seq, v.n, v.vector, {CIRCLE} FROM vectors v JOIN memories m ON m.n = v.n "
            "WHERE v.model = ? AND v.dimension = ? AND v.seq > ? ORDER BY v.seq",
            (self._model.name, self._model.dimension, self._rows.last_seq),
        )
        self._rows.append(new.fetchall())

    def nearest(
        self, raw: sqlite3.Connection, vector: Vector, clause: Where, limit: int, among: frozenset[str] | None
    ) -> list[VectorHit]:
        """The nearest selected memories."""
        return self._rows.nearest(
            vector,
            circles=among,
            selected_among=lambda numbers: _selected_among(raw, numbers, clause),
            all_selected=lambda: _all_selected(raw, clause),
            limit=limit,
        )


def renew_vectors(raw: sqlite3.Connection, n: int) -> None:
    """Put a memory's vectors under new sequence numbers, so that running processes read them again: it has moved to
    another circle."""
    rows = raw.execute("SELECT n, model, dimension, vector, words FROM vectors WHERE n = ?", (n,)).fetchall()
    raw.execute("DELETE FROM vectors WHERE n = ?", (n,))
    raw.executemany("INSERT INTO vectors (n, model, dimension, vector, words) VALUES (?, ?, ?, ?, ?)", rows)


def _put(raw: sqlite3.Connection, item: Embedded, blob: bytes, model: EmbeddingModel) -> int:
    row = raw.execute("SELECT n FROM memories WHERE id = ? AND revision = ?", (item.id, item.revision)).fetchone()
    if row is None:
        return 0
    # deleted rather than replaced: SQLite runs no trigger for a replaced row, and other processes would keep it
    raw.execute("DELETE FROM vectors WHERE n = ? AND model = ?", (row[0], model.name))
    statement = "INSERT INTO vectors (n, model, dimension, vector, words) VALUES (?, ?, ?, ?, ?)"
    words = None if item.words is None else item.words.matrix
    raw.execute(statement, (row[0], model.name, model.dimension, blob, words))
    return 1


def _packed(
    raw: sqlite3.Connection, ids: Sequence[MemoryId], model: EmbeddingModel
) -> Iterator[tuple[MemoryId, bytes]]:
    for start in range(0, len(ids), _AT_ONCE):
        batch = ids[start : start + _AT_ONCE]
        marks = ", ".join("?" * len(batch))
        # CROSS JOIN fixes the order, as where words are compared
        statement = (
            "SELECT m.id, v.vector FROM memories m CROSS JOIN vectors v ON v.n = m.n "
            f"WHERE m.id IN ({marks}) AND v.model = ? AND v.dimension = ?"
        )
        yield from raw.execute(statement, (*batch, model.name, model.dimension))


def _selected_among(raw: sqlite3.Connection, numbers: Sequence[int], clause: Where) -> dict[int, str]:
    found: dict[int, str] = {}
    for start in range(0, len(numbers), _AT_ONCE):
        batch = numbers[start : start + _AT_ONCE]
        marks = ", ".join("?" * len(batch))
        statement = f"SELECT m.n, m.id FROM memories m WHERE m.n IN ({marks}) AND {clause.sql}"
        found.update(raw.execute(statement, (*batch, *clause.parameters)))
    return found


def _all_selected(raw: sqlite3.Connection, clause: Where) -> dict[int, str]:
    return dict(raw.execute(f"SELECT m.n, m.id FROM memories m WHERE {clause.sql}", clause.parameters))


def _tags(raw: sqlite3.Connection, n: int) -> tuple[str, ...]:
    return tuple(tag for (tag,) in raw.execute("SELECT tag FROM memory_tags WHERE n = ? ORDER BY position", (n,)))
