"""A Postgres that dies, falls silent or is held up: everybody is told in time, and nothing is stored twice or lost."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.adapters.deadline import waiting
from backstory.domain.history import Edit
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.entrypoints.opencode.server import CLOSE_WITHIN_S, DRAIN_WITHIN_S
from backstory.errors import StoreBusy, StoreUnavailable
from backstory.ports.backend import Backend
from backstory.testing.fakes import ORCHARD, START, sample_change, sample_memory
from backstory.testing.opencode import wait_for
from backstory.testing.postgres import OWNER, PostgresForTests, postgres_for_tests, why_there_is_none
from tests.integration.bridge_process import HASTY, BridgeProcess
from tests.integration.postgres_proxy import Proxy

pytestmark = pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))

HERE = Selection(viewer=Viewer(project=ORCHARD, audience=Audience.PERSON), now=START)
GRACE_S = 2.0
LATE_S = 4.0  # for a machine with much else to do; who waits without a limit waits for 10 s, or for ever
Open = Callable[..., Backend]


@pytest.fixture
def server() -> PostgresForTests:
    return postgres_for_tests()


@pytest.fixture
def proxy(server: PostgresForTests) -> Iterator[Proxy]:
    between = Proxy(server.socket_folder)
    yield between
    between.answer_again()
    between.close()


@pytest.fixture
def behind(server: PostgresForTests, proxy: Proxy) -> str:
    """The address of the server, by way of the proxy."""
    return server.dsn(hostaddr="127.0.0.1", port=str(proxy.port))


@pytest.fixture
def open_store(server: PostgresForTests) -> Iterator[Open]:
    from backstory.adapters.stores.postgres.store import open_postgres

    opened: list[Backend] = []

    def make(dsn: str, **options: Any) -> Backend:
        opened.append(open_postgres(dsn, **{"schema": server.new_name(), **options}))
        return opened[-1]

    yield make
    for backend in opened:
        anyio.run(backend.memories.close)


def add(backend: Backend, content: str, *, n: int, key: str | None = None) -> int:
    """The number under which it is stored."""
    change = sample_change(n, Edit(before=None, after=sample_memory(content)), key=key)
    return anyio.run(backend.memories.commit, change).edits[0].after.n


def count(backend: Backend) -> int:
    return anyio.run(backend.memories.count, HERE)


def told(call: Callable[[], object]) -> tuple[StoreUnavailable, float]:
    """What a call fails with, and after how many seconds."""
    begun = time.monotonic()
    with pytest.raises(StoreUnavailable) as caught:
        call()
    return caught.value, time.monotonic() - begun


# --- a server that says nothing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tenant", ["default", "SET LOCAL statement_timeout TO 0"])
def test_a_silent_server_is_given_up_in_time_and_the_next_use_connects_anew(
    open_store: Open, proxy: Proxy, behind: str, tenant: str
) -> None:
    backend = open_store(behind, tenant=tenant, timeout=timedelta(seconds=1))
    add(backend, "one", n=1)
    proxy.fall_silent()
    error, took_s = told(lambda: count(backend))
    assert "has not answered in time" in str(error)
    assert took_s < 1 + GRACE_S + LATE_S
    proxy.answer_again()
    lines = proxy.accepted
    assert count(backend) == 1
    assert proxy.accepted == lines + 1


def test_a_server_that_is_silent_from_the_first_use_on_is_given_up_in_time(
    open_store: Open, proxy: Proxy, behind: str
) -> None:
    backend = open_store(behind, timeout=timedelta(seconds=1))
    proxy.fall_silent()
    _, took_s = told(lambda: count(backend))
    assert took_s < 1 + GRACE_S + LATE_S
    proxy.answer_again()
    assert count(backend) == 0


@pytest.mark.parametrize("statement", [b"CREATE TABLE", b"SELECT analyser", b"COMMIT"])
def test_a_server_that_falls_silent_while_the_store_is_made_leaves_one_that_can_be_made(
    open_store: Open, proxy: Proxy, behind: str, server: PostgresForTests, statement: bytes
) -> None:
    schema = server.new_name()
    if statement == b"CREATE TABLE":  # a migration takes as long as it takes: the line has to end
        proxy.cut_at(statement)
        error, _ = told(lambda: count(open_store(behind, schema=schema, timeout=timedelta(milliseconds=500))))
    else:
        count(open_store(behind, schema=schema))
        backend = open_store(behind, schema=schema, timeout=timedelta(milliseconds=500))
        proxy.fall_silent(statement)
        error, took_s = told(lambda: count(backend))
        assert took_s < 0.5 + GRACE_S + LATE_S + 2  # one more second or two to find that the next line is silent too
    assert isinstance(error, StoreUnavailable)
    proxy.answer_again()
    assert count(open_store(behind, schema=schema)) == 0


def test_a_commit_without_an_answer_is_told_as_such_and_its_key_makes_the_next_try_harmless(
    open_store: Open, proxy: Proxy, behind: str
) -> None:
    backend = open_store(behind, timeout=timedelta(milliseconds=500))
    add(backend, "one", n=1)
    proxy.fall_silent(b"INSERT INTO changes", b"COMMIT", forward=True)
    error, took_s = told(lambda: add(backend, "two", n=2, key="capture:msg_2:0"))
    assert "during a commit; look whether it went through" in str(error)
    assert took_s < 0.5 + GRACE_S + LATE_S
    proxy.answer_again()
    assert add(backend, "two", n=3, key="capture:msg_2:0") == 2
    assert count(backend) == 2


def test_a_caller_who_is_cancelled_leaves_at_once(open_store: Open, proxy: Proxy, behind: str) -> None:
    backend = open_store(behind, timeout=timedelta(seconds=1))
    add(backend, "one", n=1)
    proxy.fall_silent()

    async def leave_after(seconds: float) -> tuple[float, float]:
        took_s = []
        for call in (
            lambda: backend.memories.count(HERE),
            lambda: backend.memories.commit(sample_change(2, Edit(before=None, after=sample_memory("two")))),
        ):
            begun = time.monotonic()
            with anyio.move_on_after(seconds) as scope:
                await call()
            assert scope.cancelled_caught
            took_s.append(time.monotonic() - begun)
        return took_s[0], took_s[1]

    assert max(anyio.run(leave_after, 0.1)) < 0.1 + LATE_S
    proxy.answer_again()
    assert count(backend) == 1


def test_closing_does_not_wait_for_a_server_that_is_silent_while_it_is_opened(
    open_store: Open, proxy: Proxy, behind: str
) -> None:
    backend = open_store(behind, timeout=timedelta(seconds=5))
    proxy.fall_silent()
    with ThreadPoolExecutor(1) as threads:
        opening = threads.submit(told, lambda: count(backend))
        assert wait_for(lambda: proxy.accepted)
        anyio.run(backend.memories.close)
        assert not opening.done()
        opening.result()


def test_who_takes_the_servers_limit_away_is_waited_for(
    open_store: Open, behind: str, server: PostgresForTests
) -> None:
    from backstory.adapters.stores.postgres.connection import Connection

    connection = Connection(behind, on_open=lambda raw: None, schema=server.new_name(), timeout=timedelta(seconds=1))

    def long(raw: Any) -> Any:  # Any: the driver's connection and row
        raw.execute("SET LOCAL statement_timeout TO 0")
        return raw.execute("SELECT pg_sleep(3.5), 7").fetchone()[1]

    assert anyio.run(connection.read, long) == 7
    anyio.run(connection.close)


# --- a deadline over all uses together --------------------------------------------------------------------------------


def test_waiting_bounds_the_wait_for_another_writer(open_store: Open, server: PostgresForTests) -> None:
    import psycopg

    schema = server.new_name()
    backend = open_store(server.dsn(), schema=schema)
    add(backend, "one", n=1)
    with psycopg.connect(server.dsn(user="postgres")) as raw:
        raw.execute(f"SELECT * FROM {schema}.tenants FOR UPDATE")
        with waiting(timedelta(milliseconds=200)):
            error, took_s = told(lambda: add(backend, "two", n=2))
            assert isinstance(error, StoreBusy)
            assert 0.1 < took_s < 0.2 + LATE_S
            time.sleep(max(0.0, 0.2 - took_s))
            _, took_s = told(lambda: add(backend, "two", n=2))  # too late already, and yet tried
            assert took_s < LATE_S
            assert count(backend) == 1
    assert add(backend, "two", n=2) == 2


def test_waiting_bounds_a_statement_and_the_wait_for_a_connection(server: PostgresForTests) -> None:
    from backstory.adapters.stores.postgres.connection import POOL_SIZE, Connection

    connection = Connection(server.dsn(), on_open=lambda raw: None, schema=server.new_name())

    def sleep(seconds: float) -> None:
        anyio.run(connection.read, lambda raw: raw.execute("SELECT pg_sleep(%s)", (seconds,)))

    sleep(0)
    with waiting(timedelta(milliseconds=300)):
        error, took_s = told(lambda: sleep(5))
        assert isinstance(error, StoreBusy)
        assert took_s < 0.3 + LATE_S
    with ThreadPoolExecutor(POOL_SIZE) as threads:
        all_in_use = [threads.submit(sleep, 10) for _ in range(POOL_SIZE)]
        asleep = "FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep($1)'"
        assert wait_for(lambda: server.run(f"SELECT count(*) {asleep}") == [(POOL_SIZE,)])
        with waiting(timedelta(milliseconds=100)):
            error, took_s = told(lambda: sleep(0))
        assert "all connections of this process" in str(error)
        assert took_s < 0.1 + LATE_S
        server.run(f"SELECT pg_cancel_backend(pid) {asleep}")
        for one in all_in_use:
            assert isinstance(one.exception(), StoreUnavailable)
    anyio.run(connection.close)


def test_waiting_never_makes_a_wait_longer(open_store: Open, proxy: Proxy, behind: str) -> None:
    backend = open_store(behind, timeout=timedelta(milliseconds=500))
    add(backend, "one", n=1)
    proxy.fall_silent()
    with waiting(timedelta(minutes=1)):
        _, took_s = told(lambda: count(backend))
    assert took_s < 0.5 + GRACE_S + LATE_S


# --- several servers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dsn", "seconds"),
    [
        ("postgresql://me@one/db", 10),
        ("postgresql://me@one,two,three/db", 2),
        ("host=one,two connect_timeout=7", "7"),
    ],
)
def test_one_dead_host_of_several_costs_two_seconds_unless_the_address_says_otherwise(
    dsn: str, seconds: object
) -> None:
    from backstory.adapters.stores.postgres.opening import parse_address

    address = parse_address(dsn, schema="s", tenant="t", timeout=timedelta(seconds=10))
    assert address.parameters["connect_timeout"] == seconds


def test_a_cluster_without_a_leader_is_told_as_such_and_tried_again(open_store: Open, server: PostgresForTests) -> None:
    role, schema = server.new_role(), server.new_name()
    server.run(f"GRANT CREATE ON DATABASE backstory TO {role}")
    place = f"host={server.socket_folder},{server.socket_folder} user={role} dbname=backstory"
    backend = open_store(place, schema=schema)
    add(backend, "one", n=1)
    server.run(f"ALTER ROLE {role} SET default_transaction_read_only TO on")
    server.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'")
    error, _ = told(lambda: add(backend, "two", n=2))
    assert "no server takes writes right now; try again" in str(error)
    server.run(f"ALTER ROLE {role} RESET default_transaction_read_only")
    assert add(backend, "two", n=2) == 2


# --- the bridge -------------------------------------------------------------------------------------------------------


@pytest.fixture
def start(server: PostgresForTests, proxy: Proxy, tmp_path: Path) -> Iterator[Callable[[str], BridgeProcess]]:
    """Starts a bridge whose store is behind the proxy, in a schema of its own."""
    folder = tmp_path / "shop"
    folder.mkdir()
    running: list[BridgeProcess] = []

    def start(schema: str) -> BridgeProcess:
        environ = {
            "BACKSTORY_STORE": f"postgresql://{OWNER}@127.0.0.1:{proxy.port}/backstory",
            "BACKSTORY_STORE_SCHEMA": schema,
            "BACKSTORY_EMBEDDER_PROVIDER": "none",
            **HASTY,
        }
        running.append(BridgeProcess(tmp_path / "home", directory=folder, environ=environ))
        running[-1].ask("hello", protocol=1, plugin_version="0", api=1, pid=os.getpid())
        return running[-1]

    yield start
    for bridge in running:
        bridge.process.kill()
        bridge.process.wait()


@pytest.mark.parametrize(
    ("after", "forward"),
    [((), False), ((b"INSERT INTO changes", b"COMMIT"), True)],
    ids=["nothing reaches the server", "the commit reaches it, the answer does not come"],
)
def test_a_prompt_over_a_silent_server_is_answered_in_time_and_its_wish_kept_once(
    start: Callable[[str], BridgeProcess],
    server: PostgresForTests,
    proxy: Proxy,
    after: tuple[bytes, ...],
    forward: bool,
) -> None:
    schema = server.new_name()
    bridge = start(schema)
    assert "#1" in bridge.tool("memory_remember", content="Invoices are sent on Mondays.")
    proxy.fall_silent(*after, forward=forward)
    for number in (2, 3):  # the second one finds connections that hang already
        begun = time.monotonic()
        wish = f"remember that queue {number} is called billing-{number}"
        answer = bridge.ask("chat.message", session="ses_1", message=f"msg_{number}", text=wish)
        assert time.monotonic() - begun < LATE_S, "the plugin gives up after 0.8 s"
        assert "could NOT be stored: memory is not available" in answer["block"]
        assert answer["withheld"] == []
    begun = time.monotonic()
    assert bridge.prompt("When are invoices sent?", message="msg_4") is None
    assert time.monotonic() - begun < LATE_S
    time.sleep(1)  # for whatever goes on in the bridge with the old connections
    proxy.answer_again()
    stored = f"SELECT content FROM {schema}.memories WHERE content LIKE '%billing%' ORDER BY content"
    assert wait_for(lambda: len(server.run(stored)) == 2, timeout_s=30)
    assert wait_for(lambda: "stored after all" in str(bridge.prompt("hello", message=f"msg_{time.monotonic_ns()}")))
    assert [content for (content,) in server.run(stored)] == [
        "queue 2 is called billing-2",
        "queue 3 is called billing-3",
    ]


def test_a_bridge_ends_in_time_over_a_silent_server(
    start: Callable[[str], BridgeProcess], server: PostgresForTests, proxy: Proxy
) -> None:
    bridge = start(server.new_name())
    bridge.prompt("remember that invoices are sent on Mondays", message="msg_1")
    proxy.fall_silent()
    bridge.prompt("remember that the queue is called billing-out", message="msg_2")
    begun = time.monotonic()
    bridge.close()
    assert time.monotonic() - begun < DRAIN_WITHIN_S + CLOSE_WITHIN_S, "it tries to keep the wish, and not for ever"
