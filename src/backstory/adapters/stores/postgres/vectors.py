"""Vectors in Postgres: compared by pgvector where the server has it, else in this process, exactly."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import psycopg

from backstory.adapters.stores.postgres import pgvector, planner
from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.filters import Where, roughly_where, where
from backstory.adapters.stores.postgres.importing import settle
from backstory.adapters.stores.postgres.tenancy import TENANT, lock_tenant
from backstory.adapters.stores.sqlite.rows import COLUMNS, memory_from_row
from backstory.adapters.stores.vector_matrix import VectorMatrix, pack, unpack
from backstory.adapters.word_agreement import agreements
from backstory.domain.ids import MemoryId
from backstory.domain.memory import searchable_text
from backstory.domain.selection import Selection
from backstory.errors import StoreUnavailable
from backstory.ports.index import Embedded, Unembedded, VectorHit, WordAgreement, check_length
from backstory.ports.models import EmbeddingModel, Vector, WordVectors

_Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects
_MANY = 100  # vectors at a time after which the planner may know too little


class PostgresVectorIndex:
    """The VectorIndex over one store. numpy is imported at the first use.

    Cost with pgvector: about 10 us for each memory that is compared, 5 to 10 ms through an index over 100,000, which
    may miss one or another. Without it every search is exact; the first reads all vectors of the model, later ones only
    what is new, as with SQLite, and each asks once or twice which of the nearest are selected.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        indexed_from: int = pgvector.INDEXED_FROM,
        exact_at_most: int = pgvector.EXACT_AT_MOST,
    ) -> None:
        """With pgvector, ``indexed_from`` vectors of a model get an index (at least 1,000), and selections of up to
        about ``exact_at_most`` memories are searched without it."""
        self._connection = connection
        self._indexed_from = indexed_from
        self._exact_at_most = exact_at_most
        self._importing = False
        self._matrices: dict[EmbeddingModel, _Matrix] = {}

    async def search_vectors(
        self, vector: Vector, selection: Selection, *, model: EmbeddingModel, limit: int
    ) -> list[VectorHit]:
        check_length(vector, model)
        clause, roughly = where(selection), roughly_where(selection)

        def work(raw: _Raw) -> list[VectorHit]:
            if self._connection.has_vector:
                return pgvector.nearest(
                    raw,
                    vector,
                    clause,
                    roughly=roughly,
                    model=model,
                    limit=limit,
                    version=self._connection.vector_version,
                    exact_at_most=self._exact_at_most,
                )
            return self._matrices.setdefault(model, _Matrix(model)).nearest(raw, vector, clause, limit)

        return await self._connection.read(work)

    async def unembedded(self, *, model: EmbeddingModel, limit: int) -> list[Unembedded]:
        tags = "ARRAY(SELECT t.tag FROM memory_tags t WHERE t.tenant = m.tenant AND t.n = m.n ORDER BY t.position)"
        statement = (
            f"SELECT {tags}, {COLUMNS} FROM memories m "
            f"WHERE m.tenant = {TENANT} AND m.state <> 'deleted' AND m.sensitivity <> 'local-only' "
            "AND NOT EXISTS (SELECT 1 FROM vectors v "
            "WHERE v.tenant = m.tenant AND v.n = m.n AND v.model = %s AND v.dimension = %s) "
            "ORDER BY m.n DESC LIMIT %s"
        )
        parameters = (model.name, model.dimension, limit)
        rows = await self._connection.read(lambda raw: raw.execute(statement, parameters).fetchall())
        memories = [memory_from_row(row, tuple(held)) for held, *row in rows]
        return [Unembedded(id=m.id, revision=m.revision, text=searchable_text(m)) for m in memories]

    async def put_vectors(self, vectors: Sequence[Embedded], *, model: EmbeddingModel) -> int:
        for item in vectors:
            check_length(item.vector, model)
        packed = {(item.id, item.revision): (pack(item.vector), item.words) for item in vectors}

        def work(raw: _Raw) -> set[tuple[MemoryId, int]]:
            return _put(raw, packed, model)

        stored = await self._connection.write(work, again=work)
        if len(stored) >= _MANY:
            await planner.keep_informed(self._connection, planner.OF_VECTORS)
        if stored and self._connection.has_vector and not self._importing:
            await self._keep_indexed(model)
        return sum((item.id, item.revision) in stored for item in vectors)

    @contextlib.asynccontextmanager
    async def importing(self) -> AsyncIterator[None]:
        """While a large import puts its vectors: an index that is not there yet is made when all are, which takes a
        fifth of what it costs to add them one by one."""
        self._importing = True
        try:
            yield
        finally:
            self._importing = False
        await settle(self._connection, indexed_from=self._indexed_from)

    async def _keep_indexed(self, model: EmbeddingModel) -> None:
        """In a transaction of its own: one that holds rows of the table would deadlock with another that indexes."""
        with contextlib.suppress(StoreUnavailable):  # slower but right without; the next vectors try again
            await self._connection.write(lambda raw: pgvector.keep_indexed(raw, model, least=self._indexed_from))

    async def vectors_of(self, ids: Sequence[MemoryId], *, model: EmbeddingModel) -> Mapping[MemoryId, Vector]:
        statement = (
            "SELECT m.id, v.vector FROM memories m JOIN vectors v ON v.tenant = m.tenant AND v.n = m.n "
            f"WHERE m.tenant = {TENANT} AND m.id = ANY(%s) AND v.model = %s AND v.dimension = %s"
        )
        parameters = (list(ids), model.name, model.dimension)
        rows = await self._connection.read(lambda raw: raw.execute(statement, parameters).fetchall())
        return {MemoryId(memory_id): unpack(packed) for memory_id, packed in rows}

    async def compare_words(
        self, words: WordVectors, ids: Sequence[MemoryId], *, model: EmbeddingModel
    ) -> Mapping[MemoryId, WordAgreement]:
        statement = (
            "SELECT m.id, v.words FROM memories m JOIN vectors v ON v.tenant = m.tenant AND v.n = m.n "
            f"WHERE m.tenant = {TENANT} AND m.id = ANY(%s) AND v.model = %s AND v.dimension = %s "
            "AND v.words IS NOT NULL"
        )
        parameters = (list(ids), model.name, model.dimension)
        rows = await self._connection.read(lambda raw: raw.execute(statement, parameters).fetchall())
        return agreements(words, {MemoryId(memory_id): matrix for memory_id, matrix in rows})

    async def vector_counts(self) -> Mapping[str, int]:
        statement = f"SELECT model, count(*) FROM vectors WHERE tenant = {TENANT} GROUP BY model"
        return await self._connection.read(lambda raw: dict(raw.execute(statement).fetchall()))

    async def drop_vectors(self, *, model_name: str) -> int:
        def work(raw: _Raw) -> int:
            lock_tenant(raw)
            dimensions = f"SELECT DISTINCT dimension FROM vectors WHERE tenant = {TENANT} AND model = %s"
            if self._connection.has_vector:
                for (dimension,) in raw.execute(dimensions, (model_name,)).fetchall():
                    pgvector.unindex(raw, EmbeddingModel(name=model_name, dimension=dimension))
            statement = f"DELETE FROM vectors WHERE tenant = {TENANT} AND model = %s"
            return raw.execute(statement, (model_name,)).rowcount

        return await self._connection.write(work)


class _Matrix:
    """All vectors of one model, read from the server once and kept up to date. Used by one thread at a time."""

    def __init__(self, model: EmbeddingModel) -> None:
        self._model = model
        self._removals = 0
        self._rows = VectorMatrix(model.dimension)
        self._turn = threading.Lock()

    def nearest(self, raw: _Raw, vector: Vector, clause: Where, limit: int) -> list[VectorHit]:
        """The nearest memories that ``clause`` selects."""
        with self._turn:
            self._refresh(raw)
            return self._rows.nearest(
                vector,
                circles=None,
                selected_among=lambda numbers: _selected(raw, clause, "AND m.n = ANY(%s)", list(numbers)),
                all_selected=lambda: _selected(raw, clause),
                limit=limit,
            )

    def _refresh(self, raw: _Raw) -> None:
        """Drop what was removed, read what is new. Sequence numbers rise in the order of commits (``lock_tenant``)."""
        row = raw.execute(f"SELECT total FROM vector_removals WHERE tenant = {TENANT}").fetchone()
        removals = 0 if row is None else int(row[0])
        if removals != self._removals:
            living = f"SELECT seq FROM vectors WHERE tenant = {TENANT} AND model = %s"
            self._rows.keep(seq for (seq,) in raw.execute(living, (self._model.name,)))
            self._removals = removals
        new = raw.execute(
            f"SELECT seq, n, vector, '' FROM vectors WHERE tenant = {TENANT} AND model = %s AND dimension = %s "
            "AND seq > %s ORDER BY seq",
            (self._model.name, self._model.dimension, self._rows.last_seq),
        )
        self._rows.append(new.fetchall())


def _selected(raw: _Raw, clause: Where, condition: str = "", *parameters: object) -> dict[int, str]:
    statement = f"SELECT m.n, m.id FROM memories m WHERE {clause.sql} {condition}"
    return dict(raw.execute(statement, (*clause.parameters, *parameters)).fetchall())


def _put(
    raw: _Raw, packed: Mapping[tuple[MemoryId, int], tuple[bytes, WordVectors | None]], model: EmbeddingModel
) -> set[tuple[MemoryId, int]]:
    """Store the vectors of memories that are still at their revision; returns which."""
    lock_tenant(raw)
    ids, revisions = [memory_id for memory_id, _ in packed], [revision for _, revision in packed]
    found = raw.execute(
        "SELECT m.n, m.id, m.revision FROM unnest(%s::text[], %s::bigint[]) AS given (id, revision) "
        f"JOIN memories m ON m.tenant = {TENANT} AND m.id = given.id AND m.revision = given.revision",
        (ids, revisions),
    ).fetchall()
    numbers = [n for n, _, _ in found]
    given = [packed[MemoryId(memory_id), revision] for _, memory_id, revision in found]
    # deleted rather than updated: a new number in the sequence tells other processes
    raw.execute(f"DELETE FROM vectors WHERE tenant = {TENANT} AND model = %s AND n = ANY(%s)", (model.name, numbers))
    raw.execute(
        "INSERT INTO vectors (n, model, dimension, vector, words) "
        "SELECT n, %s, %s, vector, words "
        "FROM unnest(%s::bigint[], %s::bytea[], %s::bytea[]) AS given (n, vector, words)",
        (
            model.name,
            model.dimension,
            numbers,
            [vector for vector, _ in given],
            [None if words is None else words.matrix for _, words in given],
        ),
    )
    return {(MemoryId(memory_id), revision) for _, memory_id, revision in found}
