"""Every store, opened new and empty for a test: what holds for one must hold for all."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from backstory.ports.backend import Backend


def open_in_memory(folder: Path) -> Backend:
    """A dict."""
    from backstory.adapters.stores.memory import open_memory_store

    return open_memory_store()


def open_file(folder: Path) -> Backend:
    """A SQLite file in the folder."""
    from backstory.adapters.stores.sqlite.store import open_sqlite

    return open_sqlite(folder / "memory.db")


def open_server(folder: Path) -> Backend:
    """A new tenant on the server for tests, all in one schema, as a role that row-level security binds.

    Skips the test where there can be no server.
    """
    from backstory.testing.postgres import postgres_for_tests, why_there_is_none

    if (reason := why_there_is_none()) is not None:
        import pytest

        pytest.skip(reason)
    from backstory.adapters.stores.postgres.store import open_postgres

    server = postgres_for_tests()
    return open_postgres(server.dsn(), schema="contracts", tenant=server.new_name("tenant"))


def open_repository(folder: Path) -> Backend:
    """A new repository in the folder, with its local store beside it."""
    from backstory.adapters.stores.gitbranch.store import open_git

    subprocess.run(["git", "init", "-q", str(folder / "repository")], check=True, capture_output=True)
    return open_git(folder / "repository", index=folder / "local.db")


STORES: dict[str, Callable[[Path], Backend]] = {
    "memory": open_in_memory,
    "sqlite": open_file,
    "postgres": open_server,
    "git": open_repository,
}
"""By the names that ``Capabilities`` has for them."""
