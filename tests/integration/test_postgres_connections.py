"""Connections that wait, break, are forked, are refused or fail in the midst of a change."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backstory.domain.history import Edit
from backstory.errors import StoreBusy, StoreError, StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.store import Use
from backstory.testing.fakes import START, sample_change, sample_memory
from backstory.testing.opencode import wait_for
from backstory.testing.postgres import PostgresForTests, why_there_is_none
from tests.integration.postgres_proxy import Proxy
from tests.integration.postgres_stores import HERE, add, count, failure, run
from tests.integration.postgres_stores import open_store as open_store
from tests.integration.postgres_stores import server as server

pytestmark = pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))


SECRET = "hunter2-correct-horse"


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
        assert time.monotonic() - begun < 8, "it would wait for 10 s"
        assert count(backend) == 1  # readers never wait
    assert add(backend, "two", n=2).n == 2


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
    [(loaded,)] = server.run("SELECT pg_conf_load_time()")
    server.run("SELECT pg_reload_conf()")
    assert wait_for(lambda: server.run("SELECT pg_conf_load_time()") != [(loaded,)])
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
        assert time.monotonic() - begun < 30
