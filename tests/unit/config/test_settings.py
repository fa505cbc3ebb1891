"""The table of options, the values people may write, and the folders that follow from them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backstory.config import Settings, load, options, user_config_file
from backstory.config.values import parse
from backstory.errors import ConfigError

if TYPE_CHECKING:
    from tests.unit.config.conftest import Person


def test_no_name_is_used_twice() -> None:
    names = [name for option in options() for name in (option.env, *option.aliases)]
    assert len(names) == len(set(names))
    assert len({option.name for option in options()}) == len(options())
    assert len({option.flag for option in options()}) == len(options())


def test_every_default_is_a_value_the_option_allows() -> None:
    for option in options():
        if option.default is not None:
            assert parse(option, option.default, written="x", source="default", text=False) == option.default


def test_every_option_has_limits_and_a_sentence_of_help() -> None:
    for option in options():
        assert "None" not in option.limits
        assert option.help.endswith(".")
        assert option.type is not int or option.unit


def test_settings_are_equal_by_value_and_cannot_change() -> None:
    assert Settings() == Settings()
    assert hash(Settings()) == hash(Settings())
    assert load(env={"BACKSTORY_HOME": "/srv/b"}, project_root=None).settings != Settings()
    with pytest.raises(FrozenInstanceError):
        Settings().recall.limit = 3  # type: ignore[misc]  # the point of the test


def test_one_folder_holds_everything_where_home_names_it(tmp_path: Path) -> None:
    env = {"BACKSTORY_HOME": f"{tmp_path}/x/../home/"}
    settings = load(env=env, project_root=None).settings
    assert user_config_file(env) == tmp_path / "home" / "config.toml"
    assert settings.data_dir == tmp_path / "home"
    assert settings.cache_dir == tmp_path / "home" / "cache"
    assert settings.database_file == tmp_path / "home" / "backstory.db"


def test_home_overrides_a_data_folder_set_anywhere_below_a_flag(person: Person) -> None:
    person.writes("[store]\ndir = '/srv/elsewhere'")
    person.variables["BACKSTORY_STORE_DIR"] = "/srv/other"
    resolved = person.load()
    assert resolved.settings.data_dir == person.home
    assert resolved.sources["store.dir"] == "environment BACKSTORY_HOME"


def test_without_home_the_platforms_folders_are_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for purpose in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{purpose}_HOME", str(tmp_path / purpose.lower()))
    settings = load(env={}, project_root=None).settings
    assert settings.data_dir == tmp_path / "data" / "backstory"
    assert settings.cache_dir == tmp_path / "cache" / "backstory"
    assert settings.database_file == tmp_path / "data" / "backstory" / "backstory.db"
    assert user_config_file({}) == tmp_path / "config" / "backstory" / "config.toml"


def test_a_data_folder_may_be_chosen_without_moving_the_rest(tmp_path: Path) -> None:
    env = {"BACKSTORY_STORE_DIR": str(tmp_path / "data"), "BACKSTORY_CONFIG": "/dev/null"}
    settings = load(env=env, project_root=None).settings
    assert settings.database_file == tmp_path / "data" / "backstory.db"
    assert settings.home is None


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load(env={"BACKSTORY_HOME": "~/b"}, project_root=None).settings.data_dir == tmp_path / "b"
    with pytest.raises(ConfigError, match="home folder that is not there"):
        load(env={"BACKSTORY_HOME": "~nobody-of-that-name/b"}, project_root=None)


@pytest.mark.parametrize(
    ("written", "file"),
    [
        ("memory", None),
        ("sqlite:///var/lib/b/team.db", "/var/lib/b/team.db"),
        ("sqlite:////var/lib/../b.db", "/var/b.db"),
        ("sqlite:///with space/ö.db", "/with space/ö.db"),
    ],
)
def test_a_store_may_be_in_memory_or_any_file(person: Person, written: str, file: str | None) -> None:
    person.variables["BACKSTORY_STORE"] = written
    assert person.load().settings.database_file == (Path(file) if file else None)


@pytest.mark.parametrize(
    "written",
    ["sqlite://", "sqlite:///", "sqlite://b.db", "sqlite:///b/", "/b.db", "mysql://db/b", "SQLite", "sqlite:b"],
)
def test_any_other_store_is_refused_with_the_forms_that_exist(person: Person, written: str) -> None:
    person.variables["BACKSTORY_STORE"] = written
    assert "allowed: sqlite, sqlite:///absolute/path/of/file.db, postgresql://" in str(person.error())


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("postgresql://ann@db.example.org/memory", "postgresql://ann@db.example.org/memory"),
        ("postgres://db1,db2:5433/m?target_session_attrs=read-write", None),
        ("git", "git"),
        ("git:///srv/orchard/", "git:///srv/orchard"),
    ],
)
def test_a_store_may_be_a_server_or_a_repository(person: Person, written: str, kept: str | None) -> None:
    person.variables["BACKSTORY_STORE"] = written
    settings = person.load().settings
    assert settings.store.url == (kept or written.replace("postgres:", "postgresql:"))
    assert settings.database_file is None


@pytest.mark.parametrize("written", ["postgresql://ann:hunter2@db/m", "postgres://db/m?user=ann&password=hunter2"])
def test_a_password_in_the_address_of_a_store_is_refused_and_not_repeated(person: Person, written: str) -> None:
    person.variables["BACKSTORY_STORE"] = written
    said = str(person.error())
    assert "BACKSTORY_STORE_PASSWORD" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("BACKSTORY_STORE_REF", "refs/../HEAD"),
        ("BACKSTORY_STORE_REF", "main"),
        ("BACKSTORY_STORE_REF", "refs/memory/a.lock"),
        ("BACKSTORY_STORE_TENANT", "a b"),
        ("BACKSTORY_STORE_SCHEMA", "Public"),
        ("BACKSTORY_STORE_SCHEMA", "pg_catalog"),
    ],
)
def test_names_in_a_store_are_plain(person: Person, name: str, written: str) -> None:
    person.variables[name] = written
    assert name in str(person.error())


@pytest.mark.parametrize("written", ["http://localhost:11434", "https://llm.example.org/v1/", "http://[::1]:8080/v1"])
def test_an_address_loses_its_final_slash_only(person: Person, written: str) -> None:
    person.variables["BACKSTORY_EMBEDDER_BASE_URL"] = written
    assert person.load().settings.embedder.base_url == written.rstrip("/")


@pytest.mark.parametrize(
    "written",
    [
        *("localhost:11434", "ftp://x/y", "http://", "http:///v1", "http://h:99999/", "http://h:x/", "http://[::1/"),
        *("http://a b", "file:///etc/passwd", "http://h\u200b.example", "http://" + "h" * 2_000),
    ],
)
def test_what_is_not_an_address_is_refused(person: Person, written: str) -> None:
    person.variables["BACKSTORY_EMBEDDER_BASE_URL"] = written
    assert "is not an address; allowed: an http or https address" in str(person.error())


def test_choices_are_read_in_any_case(person: Person) -> None:
    person.variables["BACKSTORY_LOG_LEVEL"] = " DEBUG"
    person.writes("[recall]\nmode = 'Lexical'")
    settings = person.load().settings
    assert (settings.log.level, settings.recall.mode) == ("debug", "lexical")
