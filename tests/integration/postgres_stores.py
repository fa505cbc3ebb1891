"""Stores on the Postgres server for tests.

Test modules take the fixtures by their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from backstory.domain.history import Edit
from backstory.domain.memory import Memory
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.errors import BackstoryError
from backstory.ports.backend import Backend
from backstory.testing.fakes import ORCHARD, START, sample_change, sample_memory
from backstory.testing.postgres import PostgresForTests, postgres_for_tests

HERE = Selection(viewer=Viewer(project=ORCHARD, audience=Audience.PERSON), now=START)


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
