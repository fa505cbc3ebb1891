"""What doctor finds out about settings, store and embedder, and that it changes nothing."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from backstory.bootstrap import open_app
from backstory.config import Settings, load
from backstory.domain.history import Author
from backstory.domain.memory import Visibility
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.doctor import Check, check_long_sessions, check_package, check_settings
from backstory.entrypoints.drive import drive
from backstory.entrypoints.store_checks import check_store
from backstory.services.remember import Draft

LEXICAL = {"BACKSTORY_EMBEDDER_PROVIDER": "none"}


def settings_in(home: Path, **env: str) -> Settings:
    return load(env={"BACKSTORY_HOME": str(home), **LEXICAL, **env}, project_root=None).settings


def examine(settings: Settings) -> dict[str, Check]:
    return {check.name: check for check in anyio.run(check_store, settings)}


def with_store(home: Path) -> Settings:
    settings = settings_in(home)
    app = open_app(settings)
    viewer = Viewer(project=None, audience=Audience.PERSON)
    draft = Draft(content="The staging cluster runs in Frankfurt", visibility=Visibility.GLOBAL, origin=Origin.USER)
    try:
        drive(app.remember.remember(draft, viewer=viewer, author=Author.USER))
    finally:
        drive(app.close())
    return settings


def test_the_package_check_names_both_versions() -> None:
    assert "Backstory" in check_package().message
    assert "Python 3." in check_package().message


def test_settings_at_their_defaults_are_fine(tmp_path: Path) -> None:
    checks, settings = check_settings(lambda: load(env={"BACKSTORY_HOME": str(tmp_path)}, project_root=None))
    assert [check.state for check in checks] == ["ok"]
    assert settings is not None


def test_a_wrong_setting_fails_with_the_words_of_the_error(tmp_path: Path) -> None:
    env = {"BACKSTORY_HOME": str(tmp_path), "BACKSTORY_RECALL_LIMIT": "many"}
    checks, settings = check_settings(lambda: load(env=env, project_root=None))
    assert settings is None
    assert checks[0].state == "fail"
    assert "BACKSTORY_RECALL_LIMIT" in checks[0].message
    assert checks[0].mend


def test_what_a_project_may_not_set_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / ".backstory.toml").write_text('[store]\nurl = "memory"\n')
    checks, settings = check_settings(lambda: load(env={"BACKSTORY_HOME": str(tmp_path)}, project_root=tmp_path))
    assert settings is not None
    assert {check.state for check in checks} == {"warn"}


def test_a_store_that_is_not_there_yet_is_fine_and_is_not_made(tmp_path: Path) -> None:
    found = examine(settings_in(tmp_path / "new"))
    assert found["store"].state == "ok"
    assert found["embedder"].state == "ok"
    assert not (tmp_path / "new").exists()


def test_a_healthy_store_opens_is_whole_and_can_be_written(tmp_path: Path) -> None:
    settings = with_store(tmp_path)
    before = settings.database_file.read_bytes() if settings.database_file else b""
    found = examine(settings)
    assert {name: check.state for name, check in found.items()} == {
        "store": "ok",
        "integrity": "ok",
        "writable": "ok",
        "embedder": "ok",
    }
    assert "1 memory" in found["store"].message
    assert settings.database_file is not None
    assert settings.database_file.read_bytes() == before


def test_a_file_that_is_no_store_fails_and_is_left_as_it_is(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    assert settings.database_file is not None
    settings.database_file.write_bytes(b"no database at all" * 100)
    found = examine(settings)
    assert found["store"].state == "fail"
    assert found["store"].mend
    assert set(found) == {"store"}
    assert settings.database_file.read_bytes() == b"no database at all" * 100


def test_damage_inside_the_file_is_found(tmp_path: Path) -> None:
    settings = with_store(tmp_path)
    path = settings.database_file
    assert path is not None
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        root = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'messages'").fetchone()
        pages = raw.execute("SELECT rootpage FROM sqlite_master WHERE rootpage > 1 ORDER BY rootpage").fetchall()
        size = raw.execute("PRAGMA page_size").fetchone()[0]
    page = (root or pages[-1])[0]
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xde\xad" * (size // 2))
    found = examine(settings)
    failed = [check for check in found.values() if check.state == "fail"]
    assert failed
    assert "damaged" in failed[0].message


def test_a_store_of_a_newer_backstory_fails_and_says_upgrade(tmp_path: Path) -> None:
    settings = with_store(tmp_path)
    assert settings.database_file is not None
    with closing(sqlite3.connect(settings.database_file)) as raw:
        raw.execute("PRAGMA user_version = 999")
    found = examine(settings)
    assert found["store"].state == "fail"
    assert "upgrade" in found["store"].message.lower()


def test_a_store_that_another_process_keeps_locked_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backstory.entrypoints.store_checks.WRITE_LOCK_S", 0.05)
    settings = with_store(tmp_path)
    assert settings.database_file is not None
    with closing(sqlite3.connect(settings.database_file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        found = examine(settings)
    assert found["writable"].state == "fail"
    assert found["integrity"].state == "ok"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_store_is_told(tmp_path: Path) -> None:
    settings = with_store(tmp_path)
    assert settings.database_file is not None
    settings.database_file.chmod(0o444)
    assert examine(settings)["writable"].state == "fail"


def test_a_store_in_memory_is_worth_a_warning(tmp_path: Path) -> None:
    found = examine(settings_in(tmp_path, BACKSTORY_STORE="memory"))
    assert found["store"].state == "warn"


def test_an_embedder_that_cannot_be_reached_leaves_recall_by_words(tmp_path: Path) -> None:
    env = {"BACKSTORY_EMBEDDER_PROVIDER": "ollama", "BACKSTORY_EMBEDDER_BASE_URL": "http://127.0.0.1:9"}
    found = examine(settings_in(tmp_path, **env))
    assert found["embedder"].state == "warn"
    assert "by words alone" in found["embedder"].message


PLUGINS = Path("/plugins")
"""Nothing is there: the check is told what it found."""


def long_sessions(home: Path, *tools: str, **env: str) -> list[tuple[str, str]]:
    """States and messages, where the plugin was installed with these tools."""
    found = check_long_sessions(settings_in(home, **env), {PLUGINS: tools})
    assert all((check.state == "ok") == (not check.mend) for check in found)
    return [(check.state, check.message) for check in found]


def test_without_a_strategy_nothing_is_said_of_long_sessions(tmp_path: Path) -> None:
    assert long_sessions(tmp_path) == []


def test_a_strategy_without_an_archive_is_told(tmp_path: Path) -> None:
    env = {"BACKSTORY_SESSION_STRATEGY": "tree", "BACKSTORY_ARCHIVE_ENABLED": "false"}
    [(state, message)] = long_sessions(tmp_path, "search_memory_tree", **env)
    assert (state, "archive.enabled is off" in message) == ("warn", True)


@pytest.mark.parametrize(
    ("env", "state", "words"),
    [
        ({}, "ok", "where it lends none, extracts are made"),
        ({"BACKSTORY_MODELS_PROVIDER": "none"}, "ok", "made as extracts"),
        ({"BACKSTORY_MODELS_BASE_URL": "http://127.0.0.1:9/v1"}, "warn", "models.model is not set"),
        (
            {"BACKSTORY_MODELS_BASE_URL": "http://127.0.0.1:9/v1", "BACKSTORY_MODELS_MODEL": "tiny"},
            "ok",
            "written by openai:tiny",
        ),
        ({"BACKSTORY_TREE_MAX_RAW": "3", "BACKSTORY_TREE_MIN_BATCH": "7"}, "warn", "tree."),
    ],
    ids=["the host's", "none", "not named", "our own", "thresholds that do not fit"],
)
def test_who_writes_digests_is_told(tmp_path: Path, env: dict[str, str], state: str, words: str) -> None:
    [told] = long_sessions(tmp_path, "search_memory_tree", BACKSTORY_SESSION_STRATEGY="tree", **env)
    assert (told[0], words in told[1]) == (state, True)


def test_tools_that_the_plugin_was_installed_without_are_named(tmp_path: Path) -> None:
    env = {"BACKSTORY_SESSION_STRATEGY": "observations"}
    _, (state, message) = long_sessions(tmp_path, "memory_recall", "om_status", **env)
    assert (state, "om_observations" in message, "om_status" in message) == ("warn", True, False)
    assert str(PLUGINS) in message
    _, (_, message) = long_sessions(tmp_path, **env, BACKSTORY_OPENCODE_TOOLS="false")
    assert "opencode.tools is off" in message
