"""A deadline over several uses of a store, and SQLite under it; Postgres is in test_postgres_deadlines.py."""

from __future__ import annotations

import sqlite3
import threading
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from backstory.adapters.blocking import run_blocking
from backstory.adapters.deadline import waiting, waiting_until
from backstory.adapters.stores.sqlite.connection import Connection


def test_the_inner_deadline_holds_until_it_ends() -> None:
    assert waiting_until() is None
    with waiting(timedelta(minutes=1)):
        outer = waiting_until() or 0.0
        with waiting(timedelta(seconds=1)):
            inner = waiting_until() or 0.0
        assert waiting_until() == outer
    assert outer - inner == pytest.approx(59, abs=1)
    assert waiting_until() is None


def test_a_worker_thread_keeps_the_deadline_of_its_caller() -> None:
    async def ask() -> bool:
        with waiting(timedelta(seconds=1)):
            return await run_blocking(waiting_until) == waiting_until()

    assert anyio.run(ask)


def test_a_cancelled_caller_of_a_file_that_hangs_leaves_at_once_and_the_next_one_waits_its_turn(tmp_path: Path) -> None:
    begun, left = threading.Event(), threading.Event()

    def slow(raw: sqlite3.Connection) -> None:
        begun.set()
        assert left.wait(60), "it is not left before this ends"
        raw.execute("INSERT INTO pages VALUES (1)")

    connection = Connection(tmp_path / "store.db", on_open=lambda raw, writable: None)

    async def leave() -> int:
        await connection.write(lambda raw: raw.execute("CREATE TABLE pages (n INTEGER)"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.write, slow)
            assert await run_blocking(lambda: begun.wait(60))
            tasks.cancel_scope.cancel()
        left.set()
        [(pages,)] = await connection.read(lambda raw: raw.execute("SELECT count(*) FROM pages").fetchall())
        await connection.close()
        return int(pages)

    assert anyio.run(leave) == 1, "what was under way is done, as the next reader sees"
