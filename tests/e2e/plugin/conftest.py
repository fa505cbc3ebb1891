"""What the tests of the plugin file share: it in the real OpenCode, a scripted model, and a stub as its Python side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backstory.testing.opencode import OpenCode
from backstory.testing.opencode_server import Server
from backstory.testing.scripted_model import ScriptedModel
from tests.e2e.stub import PLUGIN, Stub


@pytest.fixture(scope="module", autouse=True)
def binary(opencode_binary: Path) -> Path:
    """Without OpenCode no test of these modules runs."""
    return opencode_binary


@pytest.fixture(scope="module")
def model(scripted: ScriptedModel) -> ScriptedModel:
    return scripted


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Stub:
    return Stub(tmp_path_factory.mktemp("stub"))


@pytest.fixture(scope="module")
def opencode(tmp_path_factory: pytest.TempPathFactory, model: ScriptedModel, stub: Stub) -> OpenCode:
    opencode = OpenCode(tmp_path_factory.mktemp("opencode"), model.url, environ=_log_to(stub))
    opencode.install_plugin(PLUGIN, stub.sidecar())
    return opencode


@pytest.fixture(scope="module")
def project(opencode: OpenCode) -> Path:
    hostile = "raise SystemExit('imported from the project')"
    return opencode.project(files={"json.py": hostile, "pathlib.py": hostile})


@pytest.fixture(scope="module")
def shared_server(opencode: OpenCode, project: Path) -> Iterator[Server]:
    with opencode.serve(cwd=project) as server:
        yield server


@pytest.fixture
def server(shared_server: Server, model: ScriptedModel, stub: Stub) -> Iterator[Server]:
    """The one server most tests share, with a clean script and record."""
    model.forget_rules()
    model.forget_requests()
    stub.script()
    yield shared_server
    stub.script()


@pytest.fixture
def fresh(tmp_path: Path, model: ScriptedModel) -> Callable[..., tuple[OpenCode, Stub]]:
    """Makes an OpenCode of its own, with its own stub, for tests that need another installation."""

    def make(**sidecar: object) -> tuple[OpenCode, Stub]:
        (tmp_path / "stub").mkdir()
        stub = Stub(tmp_path / "stub")
        opencode = OpenCode(tmp_path / "opencode", model.url, environ=_log_to(stub))
        opencode.install_plugin(PLUGIN, stub.sidecar(**sidecar))  # type: ignore[arg-type]  # deadlines and a command
        return opencode, stub

    model.forget_rules()
    model.forget_requests()
    return make


def _log_to(stub: Stub) -> dict[str, str]:
    return {"BACKSTORY_PLUGIN_LOG": str(stub.folder / "plugin.log")}
