"""The inspector of the protocol's authors, by its command line, against ``backstory mcp``.

It is installed by ``make inspector``; elsewhere name its command in MCP_INSPECTOR.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

INSTALLED = Path(__file__).parents[2] / "build" / "inspector" / "node_modules" / ".bin" / "mcp-inspector"


@pytest.fixture(scope="module")
def inspector() -> str:
    command = os.environ.get("MCP_INSPECTOR") or str(INSTALLED)
    if not Path(command).exists():
        pytest.skip("the MCP inspector is not installed; `make inspector` does it")
    return command


def test_the_inspector_lists_calls_and_reads(inspector: str, tmp_path: Path) -> None:
    settings = (f"BACKSTORY_HOME={tmp_path / 'home'}", "BACKSTORY_RECALL_MODE=lexical")
    folder = tmp_path / "shop"
    folder.mkdir()

    def ask(*words: str) -> Any:  # Any: JSON
        given = [word for setting in settings for word in ("-e", setting)]  # it hands on no others
        command = [inspector, "--cli", *given, sys.executable, "-m", "backstory", "mcp", *words]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    tools = {tool["name"]: tool for tool in ask("--method", "tools/list")["tools"]}
    assert tools["memory_recall"]["annotations"]["readOnlyHint"] is True
    call = ("--method", "tools/call", "--tool-name")
    stored = ask(
        *call, "memory_remember", "--tool-arg", "content=The till takes coins.", "--tool-arg", "tags=shop,till"
    )
    assert stored["content"][0]["text"].startswith("Stored as #1")
    found = ask(*call, "memory_recall", "--tool-arg", "query=till", "--tool-arg", "limit=3")
    assert "coins" in found["content"][0]["text"]
    assert ask("--method", "resources/list")["resources"][0]["uri"] == "backstory://memory/1"
    assert "coins" in ask("--method", "resources/read", "--uri", "backstory://memory/1")["contents"][0]["text"]
    prompt = ask("--method", "prompts/get", "--prompt-name", "recall", "--prompt-args", "query=till")
    assert "coins" in prompt["messages"][0]["content"]["text"]
