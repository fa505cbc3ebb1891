"""The sidecar follows the user's settings at a start of OpenCode: only what is ours, only what changed, in one step."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backstory.config import Settings
from backstory.config.long_sessions import SessionSettings
from backstory.entrypoints.opencode.sidecar import FILE, renew_at_start, renew_sidecar, sidecar_for
from backstory.errors import ConfigError

PLAIN = Settings()
TREE = replace(PLAIN, session=SessionSettings(strategy="tree"))
Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An installation's plugins folder, its sidecar for the plain settings in it."""
    folder = tmp_path / "opencode" / "plugins"
    folder.mkdir(parents=True)
    (folder / FILE).write_bytes(sidecar_for(PLAIN, {}).content())
    return folder


def _tools(folder: Path) -> list[str]:
    return [tool["name"] for tool in json.loads((folder / FILE).read_text())["manifest"]]


def _rewritten(folder: Path, change: Change) -> bytes:
    fields = json.loads((folder / FILE).read_text())
    change(fields)
    content = json.dumps(fields).encode()
    (folder / FILE).write_bytes(content)
    return content


def test_tools_follow_the_settings_and_everything_else_stays(folder: Path) -> None:
    def add(fields: dict[str, Any]) -> None:
        fields["unavailable"] = "Not now."
        fields["deadlines_ms"]["tool"] = 5

    _rewritten(folder, add)
    (folder / FILE).chmod(0o640)
    assert renew_sidecar(folder, TREE, {}) is True
    assert "search_memory_tree" in _tools(folder)
    fields = json.loads((folder / FILE).read_text())
    assert fields["unavailable"] == "Not now."
    assert fields["deadlines_ms"] == {"tool": 5, "chat.message": PLAIN.context.deadline_ms}
    assert fields["command"] == list(sidecar_for(TREE, {}).command)
    assert (folder / FILE).stat().st_mode & 0o777 == 0o640
    assert [path.name for path in folder.iterdir()] == [FILE]


def test_a_sidecar_that_fits_is_not_touched(folder: Path) -> None:
    before = (folder / FILE).stat()
    assert renew_sidecar(folder, PLAIN, {}) is False
    after = (folder / FILE).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert renew_sidecar(folder, TREE, {}) is True
    assert renew_sidecar(folder, TREE, {}) is False
    assert renew_sidecar(folder, PLAIN, {}) is True
    assert "search_memory_tree" not in _tools(folder)


def test_deadlines_follow_too(folder: Path) -> None:
    slow = replace(PLAIN, context=replace(PLAIN.context, deadline_ms=2000))
    assert renew_sidecar(folder, slow, {}) is True
    assert json.loads((folder / FILE).read_text())["deadlines_ms"] == {"chat.message": 2000}


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields.pop("backstory"),
        lambda fields: fields.pop("command"),
        lambda fields: fields.update(command=[]),
        lambda fields: fields.pop("version"),
        lambda fields: fields.update(version="0.0.1"),
        lambda fields: fields.update(env={"BACKSTORY_HOME": "/elsewhere"}),
        lambda fields: fields.pop("env"),
    ],
    ids=["no mark", "no command", "empty command", "no version", "other version", "other folders", "no folders"],
)
def test_what_another_wrote_is_left_alone(folder: Path, change: Change) -> None:
    content = _rewritten(folder, change)
    assert renew_sidecar(folder, TREE, {}) is False
    assert (folder / FILE).read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"[]", b"not json", b"\xff\xfe", b"[" * 100_000, b"{}"])
def test_what_is_no_sidecar_is_left_alone(folder: Path, content: bytes) -> None:
    (folder / FILE).write_bytes(content)
    assert renew_sidecar(folder, TREE, {}) is False
    assert (folder / FILE).read_bytes() == content


def test_where_there_is_none_none_is_made(tmp_path: Path) -> None:
    assert renew_sidecar(tmp_path, TREE, {}) is False
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_neither_followed_nor_replaced(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    (folder / FILE).rename(elsewhere)
    (folder / FILE).symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    assert renew_sidecar(folder, TREE, {}) is False
    assert elsewhere.read_bytes() == before
    assert (folder / FILE).is_symlink()


def test_a_projects_installation_waits_for_the_installer(folder: Path, tmp_path: Path) -> None:
    plugins = tmp_path / "shop" / ".opencode" / "plugins"
    plugins.mkdir(parents=True)
    (folder / FILE).rename(plugins / FILE)
    assert renew_sidecar(plugins, TREE, {}) is False
    assert renew_sidecar(plugins, TREE, {"HOME": str(tmp_path / "other")}) is False
    assert renew_sidecar(plugins, TREE, {"HOME": str(tmp_path / "shop")}) is True, "that of a home folder is the user's"


def test_the_folders_of_the_environment_must_be_those_of_the_installation(folder: Path, tmp_path: Path) -> None:
    env = {"BACKSTORY_HOME": str(tmp_path)}
    assert renew_sidecar(folder, TREE, env) is False
    (folder / FILE).write_bytes(sidecar_for(PLAIN, env).content())
    assert renew_sidecar(folder, TREE, env) is True
    with pytest.raises(ConfigError):
        renew_sidecar(folder, TREE, {"BACKSTORY_HOME": "relative"})


@pytest.mark.parametrize("field", ['"\\udcff"', "[" * 900 + "]" * 900], ids=["half a character", "deep"])
def test_a_file_that_cannot_be_written_again_is_left_alone(folder: Path, field: str) -> None:
    content = (folder / FILE).read_text().replace("{", '{"odd": ' + field + ",", 1)
    (folder / FILE).write_text(content)
    env = {"BACKSTORY_CONTEXT_DEADLINE_MS": "900"}
    renew_at_start(folder, env)
    assert json.loads((folder / FILE).read_text())["command"]
    assert [path.name for path in folder.iterdir()] == [FILE]


def test_at_a_start_the_users_own_file_counts_and_a_wrong_one_changes_nothing(folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    env = {"BACKSTORY_CONFIG": str(config)}
    (folder / FILE).write_bytes(sidecar_for(PLAIN, env).content())
    config.write_text('[session]\nstrategy = "tree"\n[recall]\nlimmit = 3\n')
    assert renew_at_start(folder, env) is False
    assert "search_memory_tree" not in _tools(folder)
    config.write_text('[session]\nstrategy = "tree"\n')
    assert renew_at_start(folder, env) is True
    assert "search_memory_tree" in _tools(folder)
    assert renew_at_start(tmp_path / "gone", env) is False
