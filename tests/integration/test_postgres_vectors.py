"""Vectors in Postgres: through an index among many, late to get pgvector, and on a server without it."""
# ruff: noqa: E402 - where psycopg is missing, these tests are skipped before the modules that import it

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import anyio
import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("psycopg")
pytest.register_assert_rewrite("backstory.testing.contracts")

from backstory.adapters.stores.postgres import pgvector
from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.filters import roughly_where, where
from backstory.adapters.stores.postgres.store import open_postgres
from backstory.adapters.stores.postgres.vectors import PostgresVectorIndex
from backstory.adapters.stores.postgres.words import reindex_if_stale
from backstory.domain.history import Edit
from backstory.domain.ids import MemoryId, ProjectId
from backstory.domain.memory import Memory
from backstory.domain.scope import Viewer
from backstory.domain.selection import Selection
from backstory.ports.backend import Backend
from backstory.ports.index import Embedded
from backstory.ports.models import EmbeddingModel
from backstory.ports.upkeep import Severity
from backstory.testing.contracts import CONVERSATION_STORE_CHECKS, EVIDENCE_INDEX_CHECKS, VECTOR_INDEX_CHECKS, Check
from backstory.testing.fakes import ORCHARD, START, add_memories, sample_change, sample_memory, ulid
from backstory.testing.postgres import PostgresForTests, postgres_for_tests, why_there_is_none
from tests.integration import plain_postgres

MODEL = EmbeddingModel(name="compass's 1%", dimension=24)  # a name that has to be quoted
CROWD, FEW = 1500, 12
ELSEWHERE = ProjectId(ulid(1, series=2))
HERE = Selection(viewer=Viewer(project=ORCHARD), now=START)
EVERYWHERE = Selection(viewer=Viewer(project=ORCHARD, all_projects=True), now=START)


@pytest.fixture(scope="module")
def server() -> PostgresForTests:
    if (reason := why_there_is_none()) is not None:
        pytest.skip(reason)
    return postgres_for_tests()


@pytest.fixture
def schema(server: PostgresForTests) -> str:
    return server.new_name()


@pytest.fixture
def backend(server: PostgresForTests, schema: str) -> Iterator[Backend]:
    """A store whose vectors get an index from the first thousand on, which serves every selection."""
    connection = Connection(server.dsn(), on_open=reindex_if_stale, schema=schema)
    vectors = PostgresVectorIndex(connection, indexed_from=1000, exact_at_most=0)
    opened = replace(open_postgres(server.dsn(), schema=schema), vectors=vectors)
    yield opened
    anyio.run(opened.memories.close)
    anyio.run(connection.close)


def directions(count: int, *, seed: int, dimension: int = MODEL.dimension) -> NDArray[np.float32]:
    """Unit vectors around a few themes, as embeddings of texts are."""
    random = np.random.default_rng(seed)
    themes = np.random.default_rng(7).standard_normal((40, dimension))
    rows = themes[random.integers(0, len(themes), count)] + 0.6 * random.standard_normal((count, dimension))
    unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


async def filled(backend: Backend, *, model: EmbeddingModel = MODEL) -> tuple[list[Memory], NDArray[np.float32]]:
    """A crowd in another project and a few memories in this one, in that order, with their vectors."""
    crowd = (sample_memory(f"theirs {n}", id=MemoryId(ulid(n, series=3)), project=ELSEWHERE) for n in range(CROWD))
    few = (sample_memory(f"ours {n}") for n in range(FEW))
    change = sample_change(1, *(Edit(before=None, after=memory) for memory in (*crowd, *few)))
    stored = [edit.after for edit in (await backend.memories.commit(change)).edits]
    rows = directions(CROWD + FEW, seed=1, dimension=model.dimension)
    await put(backend, stored, rows, model)
    return stored, rows


async def put(backend: Backend, memories: Sequence[Memory], rows: NDArray[np.float32], model: EmbeddingModel) -> int:
    embedded = [
        Embedded(id=memory.id, revision=memory.revision, vector=row.tolist())
        for memory, row in zip(memories, rows, strict=True)
    ]
    return await backend.vectors.put_vectors(embedded, model=model)


async def nearest(
    backend: Backend, query: NDArray[np.float32], selection: Selection = HERE, *, model: EmbeddingModel = MODEL
) -> list[MemoryId]:
    hits = await backend.vectors.search_vectors(query.tolist(), selection, model=model, limit=10)
    return [hit.id for hit in hits]


def in_order(memories: Sequence[Memory], rows: NDArray[np.float32], query: NDArray[np.float32]) -> list[MemoryId]:
    """The ten nearest, compared one by one."""
    return [memories[int(row)].id for row in np.argsort(-(rows @ query))[:10]]


def indexes(server: PostgresForTests, schema: str) -> int:
    """How many HNSW indexes the schema has."""
    counted = server.run(
        f"SELECT count(*) FROM pg_indexes WHERE schemaname = '{schema}' AND indexdef LIKE '%USING hnsw%'"
    )
    return int(counted[0][0])


def test_a_small_project_among_a_large_one_is_not_starved_by_the_index(
    server: PostgresForTests, schema: str, backend: Backend
) -> None:
    async def check() -> None:
        memories, rows = await filled(backend)
        assert indexes(server, schema) == 1
        for query in directions(5, seed=2):
            assert await nearest(backend, query) == in_order(memories[CROWD:], rows[CROWD:], query)

    anyio.run(check)


def test_a_selection_that_the_planner_takes_for_a_large_one_is_not_starved_either(backend: Backend) -> None:
    async def check() -> None:
        memories, rows = await filled(backend)
        few = replace(EVERYWHERE, contains="ours")
        for query in directions(5, seed=5):
            assert await nearest(backend, query, few) == in_order(memories[CROWD:], rows[CROWD:], query)

    anyio.run(check)


def test_a_project_is_estimated_once_and_not_squared(server: PostgresForTests, schema: str, backend: Backend) -> None:
    async def check() -> tuple[int, int]:
        eighths = [ProjectId(ulid(n, series=5)) for n in range(8)]
        memories = (sample_memory(f"plum {n}", project=eighths[n % 8]) for n in range(CROWD))
        await backend.memories.commit(sample_change(1, *(Edit(before=None, after=memory) for memory in memories)))
        one = Selection(viewer=Viewer(project=eighths[3]), now=START)
        connection = Connection(server.dsn(), on_open=reindex_if_stale, schema=schema)
        try:
            exactly = await connection.read(lambda raw: pgvector.estimate(raw, where(one)))
            return exactly, await connection.read(lambda raw: pgvector.estimate(raw, roughly_where(one)))
        finally:
            await connection.close()

    exactly, roughly = anyio.run(check)
    assert exactly < CROWD / 8 / 2
    assert CROWD / 8 * 0.8 < roughly < CROWD / 8 * 1.25


def test_an_import_makes_the_index_when_it_has_all_its_vectors(
    server: PostgresForTests, schema: str, backend: Backend
) -> None:
    async def check() -> None:
        assert isinstance(backend.vectors, PostgresVectorIndex)
        async with backend.vectors.importing():
            memories, rows = await filled(backend)
            assert indexes(server, schema) == 0
        assert indexes(server, schema) == 1
        assert backend.upkeep is not None
        found_wrong = [found for found in await backend.upkeep.verify(full=True) if found.severity is not Severity.NOTE]
        assert found_wrong == []
        for query in directions(3, seed=6):
            found = await nearest(backend, query, EVERYWHERE)
            assert len({*found} & {*in_order(memories, rows, query)}) >= 8

    anyio.run(check)


def test_the_planner_knows_of_a_large_change_at_once(server: PostgresForTests, schema: str, backend: Backend) -> None:
    anyio.run(filled, backend)
    tables = ("memories", "change_edits", "embeddings")  # others take fewer pages than are worth a look
    for table in tables:
        ((rows,),) = server.run(f"SELECT reltuples FROM pg_class WHERE oid = '{schema}.{table}'::regclass")
        assert rows >= CROWD, table


def test_the_index_finds_nearly_all_of_the_nearest(server: PostgresForTests, schema: str, backend: Backend) -> None:
    async def check() -> None:
        memories, rows = await filled(backend)
        server.run(f"ANALYZE {schema}.embeddings, {schema}.memories")
        queries = directions(10, seed=3)
        found = [len({*await nearest(backend, q, EVERYWHERE)} & {*in_order(memories, rows, q)}) for q in queries]
        assert sum(found) >= 0.97 * 10 * len(queries)

    anyio.run(check)


def test_each_model_and_dimension_has_an_index_of_its_own(
    server: PostgresForTests, schema: str, backend: Backend
) -> None:
    wider, other = replace(MODEL, dimension=32), replace(MODEL, name="sextant")

    async def check() -> None:
        memories, rows = await filled(backend)
        query = rows[0]
        assert (await nearest(backend, query, EVERYWHERE))[0] == memories[0].id
        assert await nearest(backend, query, EVERYWHERE, model=other) == []
        await put(backend, memories, rows[::-1], other)
        assert indexes(server, schema) == 2
        assert (await nearest(backend, query, EVERYWHERE, model=other))[0] == memories[-1].id
        assert (await nearest(backend, query, EVERYWHERE))[0] == memories[0].id
        await put(backend, memories, directions(len(memories), seed=5, dimension=32), wider)
        assert indexes(server, schema) == 3
        assert len(await nearest(backend, directions(1, seed=6, dimension=32)[0], EVERYWHERE, model=wider)) == 10
        assert await nearest(backend, query, EVERYWHERE) == []
        assert await backend.vectors.drop_vectors(model_name=MODEL.name) == len(memories)
        assert await backend.vectors.vector_counts() == {"sextant": len(memories)}
        assert (await nearest(backend, query, EVERYWHERE, model=other))[0] == memories[-1].id

    anyio.run(check)


def test_each_tenant_has_an_index_of_its_own(server: PostgresForTests, schema: str, backend: Backend) -> None:
    connection = Connection(server.dsn(), on_open=reindex_if_stale, schema=schema, tenant="other team")
    vectors = PostgresVectorIndex(connection, indexed_from=1000, exact_at_most=0)
    theirs = replace(open_postgres(server.dsn(), schema=schema, tenant="other team"), vectors=vectors)

    async def check() -> None:
        _, rows = await filled(backend)
        assert await nearest(theirs, rows[0], EVERYWHERE) == []
        memories, _ = await filled(theirs)
        assert indexes(server, schema) == 2
        assert (await nearest(theirs, rows[0], EVERYWHERE))[0] == memories[0].id
        await theirs.memories.close()
        await connection.close()

    anyio.run(check)


def test_a_vector_that_pgvector_refuses_harms_no_other(backend: Backend) -> None:
    async def check() -> None:
        memories = await add_memories(backend.memories, sample_memory("one"), sample_memory("two"))
        rows = directions(2, seed=1)
        rows[0, 0] = np.nan
        assert await put(backend, memories, rows, MODEL) == 2
        assert await nearest(backend, rows[1]) == [memories[1].id]

    anyio.run(check)


def test_a_server_that_gets_pgvector_later_has_all_vectors_in_it(server: PostgresForTests) -> None:
    database, schema = server.new_name("database"), server.new_name()
    role = server.new_role()
    server.run(f"CREATE DATABASE {database}")
    server.run(f"GRANT CREATE ON DATABASE {database} TO {role}")

    def opened(tenant: str) -> tuple[Backend, Connection]:
        dsn = server.dsn(user=role, database=database)
        connection = Connection(dsn, on_open=reindex_if_stale, schema=schema, tenant=tenant)
        return replace(
            open_postgres(dsn, schema=schema, tenant=tenant), vectors=PostgresVectorIndex(connection)
        ), connection

    async def look(tenant: str, *, fill: bool) -> list[MemoryId]:
        backend, connection = opened(tenant)
        if fill:
            await filled(backend)
        found = await nearest(backend, directions(1, seed=4)[0], EVERYWHERE)
        assert connection.has_vector is not fill
        await backend.memories.close()
        await connection.close()
        return found

    before = [anyio.run(partial(look, tenant, fill=True)) for tenant in ("ours", "theirs")]
    server.run("CREATE EXTENSION vector", database=database)
    assert [anyio.run(partial(look, tenant, fill=False)) for tenant in ("ours", "theirs")] == before
    copies = f"SELECT tenant, count(*) FROM {schema}.embeddings GROUP BY 1 ORDER BY 1"
    assert server.run(copies, database=database) == [("ours", CROWD + FEW), ("theirs", CROWD + FEW)]


@pytest.fixture(scope="module")
def plain_server() -> Iterator[str]:
    if (reason := plain_postgres.why_there_is_none()) is not None:
        pytest.skip(reason)
    with plain_postgres.running() as dsn:
        yield dsn


@pytest.fixture
def open_plain(plain_server: str) -> Iterator[Callable[[], Backend]]:
    opened: list[Backend] = []

    def make() -> Backend:
        opened.append(open_postgres(plain_server, schema=f"plain_{next(NUMBERS)}"))
        return opened[-1]

    yield make
    for backend in opened:
        anyio.run(backend.memories.close)


NUMBERS = itertools.count(1)


@pytest.mark.parametrize(
    "check",
    [*VECTOR_INDEX_CHECKS, *CONVERSATION_STORE_CHECKS, *EVIDENCE_INDEX_CHECKS],
    ids=lambda check: check.__name__,
)
def test_a_server_without_pgvector_keeps_the_contract(open_plain: Callable[[], Backend], check: Check) -> None:
    anyio.run(check, open_plain)


def test_two_processes_on_a_server_without_pgvector_see_each_others_vectors(plain_server: str) -> None:
    schema = f"plain_{next(NUMBERS)}"

    async def check() -> None:
        first, second = (open_postgres(plain_server, schema=schema) for _ in range(2))
        memories, rows = await filled(first)
        query = rows[-1]
        assert await nearest(second, query) == in_order(memories[CROWD:], rows[CROWD:], query)
        await put(first, memories[-1:], -rows[-1:], MODEL)
        rows[-1] *= -1
        assert await nearest(second, query) == in_order(memories[CROWD:], rows[CROWD:], query)
        assert await first.vectors.drop_vectors(model_name=MODEL.name) == len(memories)
        assert await nearest(second, query) == []
        await first.memories.close()
        await second.memories.close()

    anyio.run(check)
