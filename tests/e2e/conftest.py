"""What the tests of the real plugin with the real bridge share: a scripted model, and homes with both installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backstory.testing.opencode_binary import OpenCodeMissing, find_opencode
from backstory.testing.scripted_model import ScriptedModel
from tests.e2e.installation import Installation


@pytest.fixture(scope="session")
def opencode_binary() -> Path:
    try:
        return find_opencode()
    except OpenCodeMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture(scope="module")
def installation(
    tmp_path_factory: pytest.TempPathFactory, scripted: ScriptedModel, opencode_binary: Path
) -> Installation:
    """One home for the tests of a module."""
    return Installation(tmp_path_factory.mktemp("opencode"), scripted, opencode_binary)


@pytest.fixture
def fresh(tmp_path: Path, scripted: ScriptedModel, opencode_binary: Path) -> Iterator[Callable[..., Installation]]:
    """Makes a home of its own, for what must not be shared; takes the options of ``Installation``."""
    made: list[Installation] = []

    def make(**options: object) -> Installation:
        root = tmp_path / f"opencode-{len(made)}"
        root.mkdir()
        made.append(Installation(root, scripted, opencode_binary, **options))  # type: ignore[arg-type]
        return made[-1]

    scripted.forget_rules()
    scripted.forget_requests()
    yield make
    for one in made:
        assert not one.left_over(), "a bridge outlived its OpenCode"
