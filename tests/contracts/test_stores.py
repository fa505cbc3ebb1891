"""Every backend keeps every contract."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

pytest.register_assert_rewrite("backstory.testing.contracts")

from backstory.adapters.stores.memory import open_memory_store  # noqa: E402
from backstory.adapters.stores.sqlite.store import open_sqlite  # noqa: E402
from backstory.ports.backend import Backend  # noqa: E402
from backstory.testing.contracts import BACKEND_CHECKS, Check  # noqa: E402
from backstory.testing.postgres import postgres_for_tests, why_there_is_none  # noqa: E402


def open_postgres_store(folder: Path) -> Backend:
    """A new tenant each time, in one schema for them all, opened as a role that row-level security binds."""
    if (reason := why_there_is_none()) is not None:
        pytest.skip(reason)
    from backstory.adapters.stores.postgres.store import open_postgres

    server = postgres_for_tests()
    return open_postgres(server.dsn(), schema="contracts", tenant=server.new_name("tenant"))


def open_git_store(folder: Path) -> Backend:
    """A new repository each time, with its local store beside it."""
    from backstory.adapters.stores.gitbranch.store import open_git

    subprocess.run(["git", "init", "-q", str(folder / "repository")], check=True, capture_output=True)
    return open_git(folder / "repository", index=folder / "local.db")


STORES: dict[str, Callable[[Path], Backend]] = {
    "memory": lambda folder: open_memory_store(),
    "sqlite": lambda folder: open_sqlite(folder / "memory.db"),
    "postgres": open_postgres_store,
    "git": open_git_store,
}


@pytest.fixture(params=STORES.values(), ids=list(STORES))
def open_backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Backend]]:
    opened: list[Backend] = []

    def make() -> Backend:
        folder = tmp_path / str(len(opened))
        opened.append(request.param(folder))
        return opened[-1]

    yield make
    for backend in opened:
        anyio.run(backend.memories.close)


@pytest.mark.parametrize("check", BACKEND_CHECKS, ids=lambda check: check.__name__)
def test_a_backend_keeps_its_contract(open_backend: Callable[[], Backend], check: Check) -> None:
    anyio.run(check, open_backend)
