"""``backstory mcp`` before it serves: what it says of itself, and what it refuses."""

from __future__ import annotations

import importlib.util
import json
import re
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from tests.command_line import CommandLine


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, monkeypatch, capsys, name="farm")


def test_the_help_has_what_agents_are_configured_with(line: CommandLine) -> None:
    found = re.findall(r"^    \{.*?^    \}", line.ok("mcp", "--help"), flags=re.DOTALL | re.MULTILINE)
    most, opencode = map(json.loads, found)
    assert most == {"mcpServers": {"backstory": {"command": "backstory", "args": ["mcp"]}}}
    assert opencode == {"mcp": {"backstory": {"type": "local", "command": ["backstory", "mcp"]}}}


def test_a_port_is_for_http_alone(line: CommandLine) -> None:
    done = line.run("mcp", "--port", "4000")
    assert done.returncode == 2
    assert "--http" in done.stderr


@pytest.mark.parametrize(("arguments", "extra"), [((), "backstory[mcp]"), (("--http",), "backstory[mcp,serve]")])
def test_without_the_sdk_it_says_how_to_get_it(
    line: CommandLine, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], extra: str
) -> None:
    find = importlib.util.find_spec

    def without_the_sdk(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "mcp" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without_the_sdk)
    done = line.run("mcp", *arguments)
    assert done.returncode == 6
    assert f"pip install '{extra}'" in done.stderr
