"""What several files here share: the store with a canary in everything that must not be seen everywhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.canaries import Boathouse, filled


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Boathouse]:
    made = filled(tmp_path_factory.mktemp("boathouse"))
    yield made
    made.close()
