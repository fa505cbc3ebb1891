"""The real OpenCode as a client of the Model Context Protocol, without our plugin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from backstory.testing.opencode import OpenCode, wait_for
from backstory.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.opencode

Json = Any


def home(base: Path, model: ScriptedModel, binary: Path) -> OpenCode:
    """A home whose configuration names the server as the documentation says."""
    environment = {"BACKSTORY_HOME": str(base / "memory"), "BACKSTORY_EMBEDDER_PROVIDER": "none"}
    server = {
        "type": "local",
        "command": [sys.executable, "-m", "backstory", "mcp"],
        "environment": environment,
        "timeout": 30_000,
    }
    config = {"snapshot": False, "mcp": {"backstory": server}}
    return OpenCode(base / "opencode", model.url, binary=binary, config=config)


def test_opencode_calls_the_tools_over_mcp_in_the_project_it_runs_in(
    tmp_path: Path, scripted: ScriptedModel, opencode_binary: Path
) -> None:
    opencode = home(tmp_path, scripted, opencode_binary)
    shop, mill = opencode.project("shop"), opencode.project("mill")
    scripted.forget_rules()
    scripted.forget_requests()
    with opencode.serve(cwd=shop) as server:

        def tool(folder: Path, name: str, **arguments: Json) -> str:
            offered = f"backstory_{name}"
            scripted.when(last_role="user", offers=offered, times=1).call(offered, **arguments)
            session = server.create_session(directory=folder)
            server.prompt(session, "use the tool, please", directory=folder)
            return scripted.requests("chat", session=session)[-1].texts("tool")[-1]

        assert "Stored as #1" in tool(shop, "memory_remember", content="The till takes coins.", tags="shop, till")
        assert "coins" in tool(shop, "memory_recall", query="till")
        assert "Nothing found" in tool(mill, "memory_recall", query="till")
    assert "backstory_session_recall" in scripted.requests("chat")[-1].tool_names()
    assert wait_for(lambda: not _left_over(tmp_path / "memory")), "a server outlived its OpenCode"


def _left_over(memory: Path) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"BACKSTORY_HOME={memory}".encode() in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
        except OSError:  # it ended, or is not ours
            continue
    return found
