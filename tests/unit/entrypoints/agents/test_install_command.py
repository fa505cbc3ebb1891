"""``install`` and ``uninstall`` at the command line, for agents that are configured by files of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import CommandLine


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    return CommandLine(tmp_path, monkeypatch, capsys, name="orchard")


def files(told: Any) -> dict[str, str]:  # Any: JSON
    return {Path(file["path"]).name: file["action"] for file in told["files"]}


def test_a_dry_run_shows_what_would_come_and_writes_nothing(line: CommandLine, tmp_path: Path) -> None:
    told = line.json("install", "claude-code", "--dry-run")
    assert files(told) == {"settings.json": "create", ".claude.json": "create"}
    assert any("UserPromptSubmit" in text for file in told["files"] for text in file["lines"])
    assert "would write" in line.ok("install", "claude-code", "--print")
    assert not (tmp_path / "user").exists()


def test_it_is_installed_renewed_and_taken_out(line: CommandLine, tmp_path: Path) -> None:
    config = tmp_path / "user" / ".codex" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('model = "x" # mine\n')
    assert files(line.json("install", "codex")) == {"config.toml": "update"}
    assert files(line.json("install", "codex")) == {"config.toml": "keep"}
    assert f"kept {config}" in line.ok("install", "codex")
    assert files(line.json("uninstall", "codex")) == {"config.toml": "update"}
    assert config.read_text() == 'model = "x" # mine\n'
    assert "is not installed in Codex" in line.ok("uninstall", "codex")


def test_a_project_gets_its_own_files_and_a_word_of_caution(line: CommandLine, tmp_path: Path) -> None:
    told = line.json("install", "cursor", "--project")
    assert told["scope"] == "project"
    assert any("version control" in warning for warning in told["warnings"])
    written = json.loads((tmp_path / "orchard" / ".cursor" / "mcp.json").read_text())
    assert written["mcpServers"]["backstory"]["args"][-2:] == ["--project", str(tmp_path / "orchard")]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("install", "windsurf", "--project"), "leave --project out"),
        (("install", "cursor", "--offline-seed"), "--offline-seed is for opencode"),
        (("install", "cursor", "--global", "--project"), "exclude each other"),
        (("install",), "claude-desktop"),
        (("install", "emacs"), "claude-code"),
    ],
)
def test_what_cannot_be_is_a_matter_of_usage(line: CommandLine, words: tuple[str, ...], says: str) -> None:
    done = line.run(*words)
    assert done.returncode == 2
    assert says in done.stderr


def test_an_entry_that_is_not_ours_is_an_error_unless_forced(line: CommandLine, tmp_path: Path) -> None:
    config = tmp_path / "user" / ".cursor" / "mcp.json"
    config.parent.mkdir(parents=True)
    config.write_text('{"mcpServers": {"backstory": {"command": "other"}}}')
    done = line.run("install", "cursor")
    assert done.returncode != 0
    assert "not ours" in done.stderr
    assert "not ours" in line.json("uninstall", "cursor")["warnings"][0]
    assert files(line.json("install", "cursor", "--force")) == {"mcp.json": "update"}
