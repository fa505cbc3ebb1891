"""Every backend keeps every contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

pytest.register_assert_rewrite("backstory.testing.contracts")

from backstory.ports.backend import Backend  # noqa: E402
from backstory.testing.contracts import BACKEND_CHECKS, Check  # noqa: E402
from tests.stores import STORES  # noqa: E402


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
