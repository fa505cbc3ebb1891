"""Every backend that can be verified and copied keeps the contract of that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

pytest.register_assert_rewrite("backstory.testing.contracts")

from backstory.ports.backend import Backend  # noqa: E402
from backstory.testing.contracts.checks import Check  # noqa: E402
from backstory.testing.contracts.store_upkeep import STORE_UPKEEP_CHECKS  # noqa: E402
from tests.stores import STORES  # noqa: E402


@pytest.mark.parametrize("open_store", STORES.values(), ids=list(STORES))
@pytest.mark.parametrize("check", STORE_UPKEEP_CHECKS, ids=lambda check: check.__name__)
def test_upkeep_keeps_its_contract(open_store: Callable[[Path], Backend], check: Check, tmp_path: Path) -> None:
    anyio.run(check, lambda: open_store(tmp_path))
