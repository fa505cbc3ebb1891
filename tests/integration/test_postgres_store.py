"""What only a real Postgres can show: tenants, roles, lost connections, other processes, other formats."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backstory.domain.history import Edit
from backstory.domain.text import analyse_query
from backstory.errors import Conflict, InputError, SchemaTooNew, StoreDamaged, StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.index import TextHit, TextSearch
from backstory.ports.store import Use
from backstory.testing.fakes import START, add_memories, sample_change, sample_memory
from backstory.testing.postgres import PostgresForTests, why_there_is_none
from tests.integration.postgres_stores import HERE, add, count, failure, run
from tests.integration.postgres_stores import open_store as open_store
from tests.integration.postgres_stores import server as server

pytestmark = pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))


def _shape(server: PostgresForTests, schema: str) -> list[tuple[Any, ...]]:
    return server.run(
        "SELECT table_name, column_name, data_type FROM information_schema.columns"
        f" WHERE table_schema = '{schema}' ORDER BY 1, 2"
    ) + server.run(f"SELECT version, applied_at FROM {schema}.schema_version ORDER BY 1")


def test_a_newer_format_is_refused_and_left_as_it_is(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    schema = server.new_name()
    add(open_store(schema=schema), "anything")
    server.run(f"INSERT INTO {schema}.schema_version (version, name) VALUES (999, 'later')")
    before = _shape(server, schema)
    assert isinstance(failure(open_store(schema=schema).memories.count, HERE), SchemaTooNew)
    assert _shape(server, schema) == before


def test_opening_again_changes_nothing(server: PostgresForTests, open_store: Callable[..., Backend]) -> None:
    schema = server.new_name()
    first = add(open_store(schema=schema), "anything")
    before = _shape(server, schema)
    again = open_store(schema=schema)
    assert run(again.memories.by_number, 1) == first
    assert _shape(server, schema) == before


def test_another_programs_schema_is_left_alone(server: PostgresForTests, open_store: Callable[..., Backend]) -> None:
    schema = server.new_name()
    server.run(f"CREATE SCHEMA {schema} AUTHORIZATION team; CREATE TABLE {schema}.orders (id int)")
    assert isinstance(failure(open_store(schema=schema).memories.count, HERE), StoreDamaged)
    assert server.run(f"SELECT relname FROM pg_class WHERE relnamespace = '{schema}'::regnamespace") == [("orders",)]


def test_a_store_that_is_not_there_is_made_only_if_wanted(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    schema = server.new_name()
    assert isinstance(failure(open_store(schema=schema, create=False).memories.count, HERE), StoreUnavailable)
    assert server.run(f"SELECT 1 FROM pg_namespace WHERE nspname = '{schema}'") == []
    assert count(open_store(schema=schema)) == 0
    assert count(open_store(schema=schema, create=False)) == 0


def test_a_schema_that_is_replaced_under_a_running_process_is_found_again(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    schema = server.new_name()
    backend = open_store(schema=schema)
    add(backend, "one")
    server.run(f"ALTER SCHEMA {schema} RENAME TO {schema}_before")
    assert isinstance(failure(backend.memories.count, HERE), StoreUnavailable)
    server.run(f"ALTER SCHEMA {schema}_before RENAME TO {schema}")
    assert count(backend) == 1


def test_eight_callers_can_make_the_same_store_at_once(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    schema = server.new_name('with "quotes" and ; signs')
    backends = [open_store(schema=schema, tenant="it's\\ours") for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(count, backends)) == [0] * 8
    assert count(backends[0]) == 0


def test_a_server_without_pgvector_keeps_vectors_too(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    role, database, schema = server.new_role(), server.new_name("database"), server.new_name()
    server.run(f"CREATE DATABASE {database}")
    server.run(f"CREATE SCHEMA {schema} AUTHORIZATION {role}", database=database)
    backend = open_store(server.dsn(user=role, database=database), schema=schema)
    assert count(backend) == 0
    assert run(backend.vectors.vector_counts) == {}
    names = server.run(
        f"SELECT relname FROM pg_class WHERE relnamespace = '{schema}'::regnamespace AND relkind = 'r'",
        database=database,
    )
    assert ("vectors",) in names
    assert ("embeddings",) not in names


_WRITER = """
import asyncio, sys
from dataclasses import replace
from backstory.adapters.stores.postgres.store import open_postgres
from backstory.domain.history import Edit
from backstory.testing.fakes import sample_change, sample_memory
dsn, schema, n = sys.argv[1], sys.argv[2], int(sys.argv[3])

async def main():
    store = open_postgres(dsn, schema=schema).memories
    for turn in range(5):
        keyed, free = (Edit(before=None, after=sample_memory(f"{n} {turn} {how}")) for how in ("keyed", "free"))
        print((await store.commit(sample_change(100 * n + turn, keyed, key=f"turn {turn}"))).id)
        await store.commit(sample_change(5000 + 100 * n + turn, free))
    await store.close()

asyncio.run(main())
"""


def test_eight_processes_write_every_key_once_and_no_number_twice(
    server: PostgresForTests, open_store: Callable[..., Backend], tmp_path: Path
) -> None:
    schema = server.new_name()
    script = tmp_path / "writer.py"
    script.write_text(_WRITER)
    writers = [
        subprocess.Popen([sys.executable, script, server.dsn(), schema, str(n)], stdout=subprocess.PIPE, text=True)
        for n in range(1, 9)
    ]
    told = [writer.communicate(timeout=240)[0].split() for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 8
    assert all(ids == told[0] for ids in told)
    memories = run(lambda: open_store(schema=schema).memories.select(HERE, limit=999))
    assert sorted(memory.n for memory in memories) == list(range(1, 46))
    assert sum(memory.content.endswith("keyed") for memory in memories) == 5


def test_only_one_of_many_guarded_adds_gets_through(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    backend = open_store(schema=server.new_name())

    def attempt(n: int) -> bool:
        change = sample_change(n, Edit(before=None, after=sample_memory("use tabs")))
        try:
            run(lambda: backend.memories.commit(change, absent=replace(HERE, same_text="Use tabs")))
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(attempt, range(1, 9))) == 1
    assert count(backend) == 1


def test_uses_that_cross_each_other_are_all_counted(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    backend = open_store(schema=server.new_name())
    one, two = add(backend, "one"), add(backend, "two", n=2)

    def use(n: int) -> None:
        ids = (one.id, two.id) if n % 2 else (two.id, one.id)
        run(backend.memories.record_use, Use(memories=ids, at=START, session=None, surfaced=True))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(use, range(40)))
    found = run(backend.memories.get, [one.id, two.id])
    assert [memory.counters.surfaced for memory in found.values()] == [40, 40]


def test_texts_that_postgres_cannot_hold_are_refused_by_the_name_of_their_field(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    backend = open_store(schema=server.new_name())
    memory = add(backend, "plain")
    for field, value in (("content", "a\x00b"), ("area", "half \ud83d"), ("issue", "\x00")):
        broken = replace(memory, **{field: value})  # type: ignore[arg-type]  # fields of Memory
        change = sample_change(2, Edit(before=None, after=sample_memory("fine")), Edit(before=memory, after=broken))
        refused = failure(backend.memories.commit, change)
        assert isinstance(refused, InputError)
        assert refused.field == field
    assert (count(backend), len(run(backend.memories.history))) == (1, 1)
    search = run(lambda: backend.text.search_text(["a\x00b", "\ud83d", "plain"], HERE, limit=9))
    assert [hit.id for hit in search.hits] == [memory.id]
    assert search.frequency == {"a\x00b": 0, "\ud83d": 0, "plain": 1}
    assert isinstance(failure(backend.memories.count, replace(HERE, contains="a\x00b")), InputError)


def test_no_event_loop_is_needed(server: PostgresForTests, open_store: Callable[..., Backend]) -> None:
    call = open_store(schema=server.new_name()).memories.count(HERE)
    with pytest.raises(StopIteration) as done:
        call.send(None)  # a coroutine
    assert done.value.value == 0


def test_the_same_words_find_the_same_memories_as_in_sqlite(
    server: PostgresForTests, open_store: Callable[..., Backend], tmp_path: Path
) -> None:
    from backstory.adapters.stores.sqlite.store import open_sqlite

    dice = random.Random(20)
    words = [f"word{n}" for n in range(60)] + ["getUserById", "naïve", "C++", "身份", "🚀", "can't", "a.b.c"]
    texts = [" ".join(dice.choices(words, k=dice.randint(2, 30))) for _ in range(150)]
    stores = [open_store(schema=server.new_name()), open_sqlite(tmp_path / "memory.db")]
    memories = [sample_memory(text) for text in texts]

    async def answers(backend: Backend) -> list[TextSearch]:
        await add_memories(backend.memories, *memories)
        found = []
        asked = random.Random(21)
        for _ in range(40):
            tokens = [term.token for term in analyse_query(" ".join(asked.choices(words, k=asked.randint(1, 6))))]
            found.append(await backend.text.search_text(tokens, HERE, limit=len(texts)))
            few = await backend.text.search_text(tokens, HERE, limit=20)
            assert list(few.hits) == list(found[-1].hits)[:20]
        return found

    def rarity(search: TextSearch, hit: TextHit) -> float:
        return round(
            sum(math.log(1 + (150 - search.frequency[t] + 0.5) / (search.frequency[t] + 0.5)) for t in hit.matched), 5
        )

    for in_postgres, in_sqlite in zip(*(run(answers, backend) for backend in stores), strict=True):
        order = [rarity(in_postgres, hit) for hit in in_postgres.hits]
        assert order == [rarity(in_sqlite, hit) for hit in in_sqlite.hits] == sorted(order, reverse=True)
        same_order = sorted(in_postgres.hits, key=lambda hit: hit.id), sorted(in_sqlite.hits, key=lambda hit: hit.id)
        assert replace(in_postgres, hits=same_order[0]) == replace(in_sqlite, hits=same_order[1])
