"""What the tests of the protocol share: an app without a model, both ways to connect, and two projects."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from backstory.bootstrap import App
from tests.unit.entrypoints.mcp.talking import MODES, Mode, new_app


@pytest.fixture
def app() -> App:
    return new_app()


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Mode:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return repository(tmp_path / "shop")


@pytest.fixture
def mill(tmp_path: Path) -> Path:
    return repository(tmp_path / "mill")


def repository(folder: Path) -> Path:
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder
