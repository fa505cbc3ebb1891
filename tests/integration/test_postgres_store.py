"""What only a real Postgres can show: tenants, roles, lost connections, other processes, other formats."""

from __future__ import annotations

import contextlib
import math
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.domain.history import Edit
from backstory.domain.memory import Memory
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.domain.text import analyse_query
from backstory.errors import (
    BackstoryError,
    Conflict,
    InputError,
    SchemaTooNew,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreUnavailable,
)
from backstory.ports.backend import Backend
from backstory.ports.index import TextHit, TextSearch
from backstory.ports.store import Use
from backstory.testing.fakes import ORCHARD, START, add_memories, sample_change, sample_memory
from backstory.testing.postgres import PostgresForTests, postgres_for_tests, why_there_is_none
from tests.integration.postgres_proxy import Proxy

pytestmark = pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))

HERE = Selection(viewer=Viewer(project=ORCHARD, audience=Audience.PERSON), now=START)
SECRET = "hunter2-correct-horse"


@pytest.fixture
def server() -> PostgresForTests:
    return postgres_for_tests()


@pytest.fixture
def open_store(server: PostgresForTests) -> Iterator[Callable[..., Backend]]:
    from backstory.adapters.stores.postgres.store import open_postgres

    opened: list[Backend] = []

    def make(dsn: str | None = None, **options: Any) -> Backend:
        opened.append(open_postgres(dsn or server.dsn(), **options))
        return opened[-1]

    yield make
    for backend in opened:
        run(backend.memories.close)


def run(call: Callable[..., Any], *arguments: Any) -> Any:
    return anyio.run(call, *arguments)


def add(backend: Backend, content: str, *, n: int = 1, **fields: Any) -> Memory:
    change = sample_change(n, Edit(before=None, after=sample_memory(content, **fields)))
    stored: Memory = run(backend.memories.commit, change).edits[0].after
    return stored


def count(backend: Backend) -> int:
    return int(run(backend.memories.count, HERE))


def failure(call: Callable[..., Any], *arguments: Any) -> BackstoryError:
    with pytest.raises(BackstoryError) as caught:
        run(call, *arguments)
    return caught.value


# --- tenants and roles ------------------------------------------------------------------------------------------------


def test_a_query_without_any_condition_sees_only_its_own_tenant(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    import psycopg

    schema = server.new_name()
    for tenant, content in (("red", "apples are red"), ("green", "pears are green")):
        add(open_store(schema=schema, tenant=tenant), content)
    with psycopg.connect(server.dsn()) as raw:
        for tenant, content in (("red", "apples are red"), ("green", "pears are green")):
            raw.execute("SELECT set_config('backstory.tenant', %s, true)", (tenant,))
            assert raw.execute(f"SELECT content FROM {schema}.memories").fetchall() == [(content,)]
            assert raw.execute(f"UPDATE {schema}.memories SET weight = 1").rowcount == 1
        raw.execute("SELECT set_config('backstory.tenant', '', true)")
        assert raw.execute(f"SELECT content FROM {schema}.memories").fetchall() == []


def test_no_row_can_be_written_for_another_tenant(server: PostgresForTests, open_store: Callable[..., Backend]) -> None:
    import psycopg

    schema = server.new_name()
    add(open_store(schema=schema, tenant="red"), "apples are red")
    with psycopg.connect(server.dsn()) as raw:
        raw.execute("SELECT set_config('backstory.tenant', 'red', true)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            raw.execute(f"INSERT INTO {schema}.memory_tags (tenant, n, position, tag) VALUES ('green', 1, 0, 'x')")


def test_every_table_with_a_tenant_is_protected_even_from_its_owner(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    schema = server.new_name()
    add(open_store(schema=schema), "anything")
    protected = server.run(
        "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity FROM pg_class c JOIN pg_attribute a"
        f" ON a.attrelid = c.oid WHERE c.relnamespace = '{schema}'::regnamespace AND c.relkind = 'r'"
        " AND a.attname = 'tenant'"
    )
    assert {name for name, _ in protected} >= {"memories", "changes", "vectors", "messages", "passages", "projects"}
    assert all(is_protected for _, is_protected in protected)
    unprotected = server.run(
        f"SELECT c.relname FROM pg_class c WHERE c.relnamespace = '{schema}'::regnamespace AND c.relkind = 'r'"
        " AND NOT c.relrowsecurity ORDER BY 1"
    )
    assert unprotected == [("schema_options",), ("schema_version",)]


def test_a_superuser_whom_row_security_spares_sees_one_tenant_too(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    schema, dsn = server.new_name(), server.dsn(user="postgres")
    red, green = (open_store(dsn, schema=schema, tenant=tenant) for tenant in ("red", "green"))
    apple, pear = add(red, "the fruit is red", tags=("a",)), add(green, "the fruit is green", tags=("b",))
    assert (apple.n, pear.n) == (1, 1)
    for backend, memory in ((red, apple), (green, pear)):
        assert run(backend.memories.by_number, 1) == memory
        assert run(lambda backend=backend: backend.memories.select(HERE, limit=9)) == [memory]
        assert run(lambda backend=backend: backend.memories.tag_counts(HERE, limit=9)) == [(memory.tags[0], 1)]
        search = run(lambda backend=backend: backend.text.search_text(["fruit"], HERE, limit=9))
        assert ([hit.id for hit in search.hits], search.documents) == ([memory.id], 1)
        assert len(run(backend.memories.history)) == 1


def test_a_role_that_owns_nothing_works_with_a_few_grants(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    schema, role = server.new_name(), server.new_role()
    add(open_store(schema=schema), "made by the owner")
    server.run(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    guest = open_store(server.dsn(user=role), schema=schema)
    refused = failure(guest.memories.count, HERE)
    assert isinstance(refused, StoreUnavailable)
    assert "rights" in str(refused)
    server.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}")
    add(guest, "made by a guest", n=2)
    assert count(guest) == 2


# --- formats ----------------------------------------------------------------------------------------------------------


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


# --- many writers -----------------------------------------------------------------------------------------------------

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
    told = [writer.communicate(timeout=60)[0].split() for writer in writers]
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


def test_waiting_too_long_for_another_writer_is_told(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    import psycopg

    schema = server.new_name()
    backend = open_store(schema=schema, timeout=timedelta(milliseconds=300))
    add(backend, "one")
    with psycopg.connect(server.dsn(user="postgres")) as raw:
        raw.execute(f"SELECT * FROM {schema}.tenants FOR UPDATE")
        begun = time.monotonic()
        change = sample_change(2, Edit(before=None, after=sample_memory("two")))
        assert isinstance(failure(backend.memories.commit, change), StoreBusy)
        assert time.monotonic() - begun < 2
        assert count(backend) == 1  # readers never wait
    assert add(backend, "two", n=2).n == 2


# --- lost connections -------------------------------------------------------------------------------------------------


@pytest.fixture
def proxy(server: PostgresForTests) -> Iterator[Proxy]:
    between = Proxy(server.socket_folder)
    yield between
    between.close()


@pytest.mark.parametrize("forward", [False, True], ids=["lost before the server got it", "lost on the way back"])
def test_a_commit_whose_answer_is_lost_is_there_exactly_once(
    server: PostgresForTests, open_store: Callable[..., Backend], proxy: Proxy, forward: bool
) -> None:
    backend = open_store(server.dsn(hostaddr="127.0.0.1", port=str(proxy.port)), schema=server.new_name())
    add(backend, "one")
    proxy.cut_at(b"COMMIT\x00", forward=forward)
    assert add(backend, "two", n=2).n == 2
    assert proxy.has_cut
    assert [len(run(backend.memories.history)), count(backend)] == [2, 2]


def test_a_count_whose_answer_is_lost_is_not_made_twice(
    server: PostgresForTests, open_store: Callable[..., Backend], proxy: Proxy
) -> None:
    backend = open_store(server.dsn(hostaddr="127.0.0.1", port=str(proxy.port)), schema=server.new_name())
    memory = add(backend, "one")
    proxy.cut_at(b"COMMIT\x00", forward=True)
    use = Use(memories=(memory.id,), at=START, session=None, surfaced=True)
    lost = failure(backend.memories.record_use, use)
    assert isinstance(lost, StoreUnavailable)
    assert "commit" in str(lost)
    assert run(backend.memories.by_number, 1).counters.surfaced == 1


def test_a_connection_lost_in_the_middle_of_a_change_is_replaced(
    server: PostgresForTests, open_store: Callable[..., Backend], proxy: Proxy
) -> None:
    backend = open_store(server.dsn(hostaddr="127.0.0.1", port=str(proxy.port)), schema=server.new_name())
    add(backend, "one")
    proxy.cut_at(b"INSERT INTO changes")
    assert add(backend, "two", n=2).n == 2
    proxy.cut_at(b"SELECT count(*)")
    assert count(backend) == 2


def test_connections_that_the_server_ended_are_replaced_at_the_next_use(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    backend = open_store(schema=server.new_name())
    add(backend, "one")
    for n in (2, 3):
        with ThreadPoolExecutor(4) as threads:  # so that several wait in the pool
            list(threads.map(lambda _: count(backend), range(8)))
        server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'backstory'")
        add(backend, str(n), n=n)
    assert count(backend) == 3


def test_a_child_of_a_fork_uses_connections_of_its_own(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    backend = open_store(schema=server.new_name())
    add(backend, "one")
    child = os.fork()
    if child == 0:
        ok = False
        try:
            add(backend, "two", n=2)
            ok = count(backend) == 2
        finally:
            os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert add(backend, "three", n=3).n == 3


def test_a_store_that_is_read_only_for_now_answers_and_can_be_written_later(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    schema, role = server.new_name(), server.new_role()
    add(open_store(schema=schema), "one")
    server.run(
        f"GRANT team TO {role}; ALTER ROLE {role} SET default_transaction_read_only = on;"
        f" GRANT USAGE ON SCHEMA {schema} TO {role}"
    )
    standby = open_store(server.dsn(user=role), schema=schema)
    assert count(standby) == 1
    assert standby.memories.capabilities.read_only
    change = sample_change(2, Edit(before=None, after=sample_memory("two")))
    assert "read-only" in str(failure(standby.memories.commit, change))
    server.run(f"ALTER ROLE {role} RESET default_transaction_read_only")
    assert run(standby.memories.commit, change).edits[0].after.n == 2
    assert not standby.memories.capabilities.read_only


def test_nothing_of_a_call_stays_on_the_connection(server: PostgresForTests) -> None:
    from backstory.adapters.stores.postgres.connection import Connection
    from backstory.adapters.stores.postgres.opening import connect, parse_address

    schema = server.new_name()
    connection = Connection(server.dsn(), on_open=lambda raw: None, schema=schema, tenant="red")
    assert run(connection.read, lambda raw: raw.execute("SHOW backstory.tenant").fetchone()) == ("red",)
    with connection._pool.connection(until=time.monotonic() + 1) as raw:
        for name in ("search_path", "statement_timeout", "lock_timeout"):
            assert raw.execute(f"SELECT source FROM pg_settings WHERE name = '{name}'").fetchone() == ("default",)
        assert raw.execute("SELECT current_setting('backstory.tenant', true)").fetchone() == ("",)
    run(connection.close)
    address = parse_address("postgresql://a:secret@one,two/db", schema="s", tenant="t", timeout=timedelta(seconds=1))
    assert address.parameters["target_session_attrs"] == "read-write"
    assert "secret" not in repr(address)
    assert callable(connect)


def test_a_statement_that_failed_in_secret_is_no_commit(server: PostgresForTests) -> None:
    import psycopg

    from backstory.adapters.stores.postgres.connection import Connection

    connection = Connection(server.dsn(), on_open=lambda raw: None, schema=server.new_name())

    def careless(raw: psycopg.Connection[Any]) -> str:
        with contextlib.suppress(psycopg.Error):
            raw.execute("SELECT 1 / 0")
        return "done"

    assert isinstance(failure(connection.write, careless), StoreError)
    run(connection.close)


# --- what is told -----------------------------------------------------------------------------------------------------


def _everything_said(error: BaseException) -> str:
    said = ""
    link: BaseException | None = error
    while link is not None:
        said += f"{link} {link!r} {link.args} "
        link = link.__cause__ or link.__context__
    return said


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://me:{SECRET}@127.0.0.1:1/db",
        f"postgresql://me:{SECRET}@nowhere.invalid/db",
        f"postgresql://me:{SECRET}@[half/db",
        f"postgresql://me:{SECRET}@127.0.0.1:port/db",
        f"postgresql://me@127.0.0.1:1/db?password={SECRET}&nonsense=1",
        f"host=127.0.0.1 password {SECRET}",
        f"host=127.0.0.1 port=1 password={SECRET} '",
    ],
)
def test_a_password_is_in_no_error_and_no_location(open_store: Callable[..., Backend], dsn: str) -> None:
    async def use() -> None:
        backend = open_store(dsn, timeout=timedelta(seconds=2))
        assert SECRET not in backend.memories.capabilities.location
        await backend.memories.count(HERE)

    assert SECRET not in _everything_said(failure(use))


def test_a_refused_password_and_a_missing_database_are_told_apart(
    server: PostgresForTests, open_store: Callable[..., Backend], proxy: Proxy
) -> None:
    role = server.new_role(options=f"LOGIN PASSWORD '{SECRET}'")
    [(rules,)] = server.run("SHOW hba_file")
    old = Path(rules).read_text()
    Path(rules).write_text(f"local all {role} scram-sha-256\n{old}")
    server.run("SELECT pg_reload_conf()")
    time.sleep(0.2)
    wrong = failure(open_store(server.dsn(user=role, password=SECRET + "x")).memories.count, HERE)
    assert "password" in str(wrong)
    assert SECRET not in _everything_said(wrong)
    server.run(f"GRANT CREATE ON DATABASE backstory TO {role}")
    assert count(open_store(server.dsn(user=role, password=SECRET), schema=server.new_name())) == 0
    missing = failure(open_store(server.dsn(database="no_such")).memories.count, HERE)
    assert "database" in str(missing)
    for told in (wrong, missing):
        assert isinstance(told, StoreUnavailable)
        assert role not in str(told)
        assert server.socket_folder not in str(told)


def test_a_server_that_never_answers_is_given_up_in_time(open_store: Callable[..., Backend]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        backend = open_store(f"host=127.0.0.1 port={port} user=me dbname=db", timeout=timedelta(seconds=1))
        begun = time.monotonic()
        assert isinstance(failure(backend.memories.count, HERE), StoreUnavailable)
        assert time.monotonic() - begun < 5


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
