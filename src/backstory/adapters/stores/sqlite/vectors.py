"""Vectors in SQLite, searched exactly over a matrix that a running process keeps in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from backstory.adapters.stores.sqlite.connection import Connection
from backstory.adapters.stores.sqlite.filters import Where, where
from backstory.adapters.stores.sqlite.rows import COLUMNS, memory_from_row
from backstory.adapters.word_agreement import agreements
from backstory.domain.ids import MemoryId
from backstory.domain.memory import searchable_text
from backstory.domain.selection import Selection
from backstory.ports.index import Embedded, Unembedded, VectorHit, WordAgreement, check_length
from backstory.ports.models import EmbeddingModel, Vector, WordVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FIRST_LOOK = 64  # nearest vectors to test against the selection before looking further
_LOOK_AT_MOST = 2048  # beyond this, asking which rows are selected is cheaper than testing the nearest


class SqliteVectorIndex:
    """The VectorIndex over one connection. numpy is imported at the first use.

    Cost: the first search reads all vectors of the model (about 30 ms for 10,000, 0.7 s for 100,000); later ones read
    only what is new and take about 0.3 ms and 10 ms.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._matrices: dict[EmbeddingModel, _Matrix] = {}

    async def search_vectors(
        self, vector: Vector, selection: Selection, *, model: EmbeddingModel, limit: int
    ) -> list[VectorHit]:
        check_length(vector, model)
        if model not in self._matrices:
            self._matrices[model] = _Matrix(model)
        matrix = self._matrices[model]
        clause = where(selection)

        def work(raw: sqlite3.Connection) -> list[VectorHit]:
            matrix.refresh(raw)
            return matrix.nearest(raw, vector, clause, limit)

        return await self._connection.read(work)

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
        packed = [(item, _pack(item.vector)) for item in vectors]
        return await self._connection.write(lambda raw: sum(_put(raw, item, blob, model) for item, blob in packed))

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
    """All vectors of one model, as a matrix of unit rows beside the numbers of their memories."""

    def __init__(self, model: EmbeddingModel) -> None:
        import numpy

        self._model = model
        self._removals = -1
        self._seqs: NDArray[np.int64] = numpy.empty(0, dtype=numpy.int64)
        self._numbers: NDArray[np.int64] = numpy.empty(0, dtype=numpy.int64)
        self._rows: NDArray[np.float32] = numpy.empty((0, model.dimension), dtype=numpy.float32)

    def refresh(self, raw: sqlite3.Connection) -> None:
        """Bring the matrix up to date with the file: drop what was removed, read what is new."""
        removals = int(raw.execute("SELECT total FROM vector_removals").fetchone()[0])
        if removals != self._removals:
            self._drop_removed(raw)
            self._removals = removals
        self._read_new(raw)

    def nearest(self, raw: sqlite3.Connection, vector: Vector, clause: Where, limit: int) -> list[VectorHit]:
        """The nearest selected memories. Looks further down the order until enough are selected, so it is exact."""
        import numpy

        similarity = self._rows @ numpy.asarray(vector, dtype=numpy.float32)
        order = _nearest_first(similarity)
        selected: dict[int, str] = {}
        looked, look = 0, max(_FIRST_LOOK, 4 * limit)
        while look <= len(order):
            selected |= _selected_among(raw, self._numbers[order[looked:look]].tolist(), clause)
            if len(selected) >= limit:
                return self._hits(similarity, order[:look], selected, limit)
            # as far as the share selected so far promises enough, and a little further
            looked, look = look, 1 + look * 5 * limit // (4 * max(1, len(selected)))
        return self._hits(similarity, numpy.arange(len(similarity)), _all_selected(raw, clause), limit)

    def _hits(
        self, similarity: NDArray[np.float32], among: NDArray[np.intp], selected: Mapping[int, str], limit: int
    ) -> list[VectorHit]:
        import numpy

        numbers = self._numbers[among]
        kept = among[numpy.isin(numbers, numpy.fromiter(selected, dtype=numpy.int64, count=len(selected)))]
        order = numpy.lexsort((-self._numbers[kept], -similarity[kept]))[:limit]
        return [
            VectorHit(id=MemoryId(selected[int(self._numbers[row])]), similarity=float(similarity[row]))
            for row in kept[order]
        ]

    def _drop_removed(self, raw: sqlite3.Connection) -> None:
        import numpy

        living = numpy.fromiter(
            (row[0] for row in raw.execute("SELECT seq FROM vectors WHERE model = ?", (self._model.name,))),
            dtype=numpy.int64,
        )
        keep = numpy.isin(self._seqs, living)
        self._seqs, self._numbers, self._rows = self._seqs[keep], self._numbers[keep], self._rows[keep]

    def _read_new(self, raw: sqlite3.Connection) -> None:
        import numpy

        last = int(self._seqs[-1]) if len(self._seqs) else 0
        rows = raw.execute(
            "SELECT seq, n, vector FROM vectors WHERE model = ? AND dimension = ? AND seq > ? ORDER BY seq",
            (self._model.name, self._model.dimension, last),
        ).fetchall()
        if not rows:
            return
        block = numpy.frombuffer(b"".join(row[2] for row in rows), dtype="<f2").astype(numpy.float32)
        self._seqs = numpy.concatenate([self._seqs, numpy.array([row[0] for row in rows], dtype=numpy.int64)])
        self._numbers = numpy.concatenate([self._numbers, numpy.array([row[1] for row in rows], dtype=numpy.int64)])
        self._rows = numpy.concatenate([self._rows, block.reshape(len(rows), self._model.dimension)])


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


def _nearest_first(similarity: NDArray[np.float32]) -> NDArray[np.intp]:
    """The rows of the greatest similarity in order, at most ``_LOOK_AT_MOST``."""
    import numpy

    if len(similarity) <= _LOOK_AT_MOST:
        return numpy.argsort(-similarity)
    best = numpy.argpartition(-similarity, _LOOK_AT_MOST)[:_LOOK_AT_MOST]
    return best[numpy.argsort(-similarity[best])]


def _selected_among(raw: sqlite3.Connection, numbers: Sequence[int], clause: Where) -> dict[int, str]:
    found: dict[int, str] = {}
    for start in range(0, len(numbers), 500):
        batch = numbers[start : start + 500]
        marks = ", ".join("?" * len(batch))
        statement = f"SELECT m.n, m.id FROM memories m WHERE m.n IN ({marks}) AND {clause.sql}"
        found.update(raw.execute(statement, (*batch, *clause.parameters)))
    return found


def _all_selected(raw: sqlite3.Connection, clause: Where) -> dict[int, str]:
    return dict(raw.execute(f"SELECT m.n, m.id FROM memories m WHERE {clause.sql}", clause.parameters))


def _tags(raw: sqlite3.Connection, n: int) -> tuple[str, ...]:
    return tuple(tag for (tag,) in raw.execute("SELECT tag FROM memory_tags WHERE n = ? ORDER BY position", (n,)))


def _pack(vector: Vector) -> bytes:
    import numpy

    return numpy.asarray(vector, dtype="<f2").tobytes()
