"""``backstory tools``, and the command /memory that ``install`` writes on request."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from backstory.entrypoints.tools import TOOLSETS, tools_of
from tests.command_line import CommandLine


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return CommandLine(tmp_path, monkeypatch, capsys, name="gate")


def test_the_tools_of_the_settings_are_listed_with_a_line_each(shell: CommandLine) -> None:
    lines = shell.ok("tools").splitlines()
    assert [line.split("\t")[0] for line in lines] == [tool.name for tool in tools_of("default")]
    assert all(line.endswith(".") and line.count("\t") == 1 for line in lines)
    shell.set(TOOLSET="ocpg")
    assert "memory_retag" in shell.ok("tools")
    shell.set(OPENCODE_TOOLS="0")
    assert "memory_" not in shell.ok("tools")


def test_another_set_is_listed_without_choosing_it(shell: CommandLine) -> None:
    assert "memory_compact" in shell.ok("tools", "--toolset", "git-memory")
    assert shell.run("tools", "--toolset", "nonesuch").returncode == 2


def test_the_cost_of_each_set_is_the_sum_of_its_tools(shell: CommandLine) -> None:
    told = shell.json("tools", "--cost")
    assert told["in_use"] == "default"
    assert told["counter"] == ("estimate" if find_spec("splintr") is None else "o200k_base")
    assert [entry["name"] for entry in told["toolsets"]] == list(TOOLSETS)
    for entry in told["toolsets"]:
        assert entry["tokens"] == sum(tool["tokens"] for tool in entry["tools"])
        assert all(50 < tool["tokens"] < 1_000 for tool in entry["tools"])
    rows = [line.split("\t") for line in shell.ok("tools", "--cost").splitlines()]
    assert rows[0][:2] == ["default (in use)", "8 tools"]
    assert sum(int(row[2]) for row in rows[1:9]) == int(rows[0][2])


def test_without_cost_nothing_is_counted(shell: CommandLine) -> None:
    told = shell.json("tools", "--toolset", "observational")
    assert told["counter"] is None
    assert told["toolsets"][0]["tokens"] is None
    assert [tool["effect"] for tool in told["toolsets"][0]["tools"]] == ["reads", "reads"]


def test_a_search_in_everything_tells_of_notes_on_sessions_too(shell: CommandLine) -> None:
    assert shell.json("recall", "gate", "--in", "all")["notes"] == []
    assert "notes" not in shell.json("recall", "gate", "--in", "evidence")


def test_the_command_comes_on_request_and_goes_with_the_installation(shell: CommandLine, tmp_path: Path) -> None:
    command = tmp_path / "user" / ".config" / "opencode" / "command" / "memory.md"
    shell.ok("install", "opencode")
    assert not command.exists()
    assert str(command) in shell.ok("install", "opencode", "--command", "--dry-run")
    assert not command.exists()
    shell.ok("install", "opencode", "--command")
    assert command.exists()
    assert str(command) in shell.ok("uninstall", "opencode")
    assert not command.exists()


def test_somebody_else_s_command_stops_the_installation_before_anything_is_written(
    shell: CommandLine, tmp_path: Path
) -> None:
    command = tmp_path / "user" / ".config" / "opencode" / "command" / "memory.md"
    command.parent.mkdir(parents=True)
    command.write_text("mine", encoding="utf-8")
    done = shell.run("install", "opencode", "--command")
    assert done.returncode != 0
    assert "not written by Backstory" in done.stderr
    assert command.read_text(encoding="utf-8") == "mine"
    assert not (command.parent.parent / "plugins").exists()


def test_the_command_is_for_opencode_alone(shell: CommandLine) -> None:
    assert "--command is for opencode" in shell.run("install", "cursor", "--command").stderr
