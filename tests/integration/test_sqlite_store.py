"""The SQLite store on real files, real disks and real processes."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from backstory.adapters.stores.sqlite import migrations
from backstory.adapters.stores.sqlite.opening import APPLICATION_ID
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.entrypoints.drive import drive
from backstory.errors import SchemaTooNew, StoreDamaged, StoreError, StoreUnavailable
from tests.integration.sqlite_files import ALL, add, contents, made, pragma


def refused(path: Path, kind: type[StoreError]) -> str:
    """Opening must fail with this kind of error and leave every byte as it was; the message."""
    before = path.read_bytes()
    backend = open_sqlite(path)
    with pytest.raises(kind) as caught:
        add(backend, "must not be written")
    with pytest.raises(kind):
        drive(backend.memories.select(ALL, limit=1))
    drive(backend.memories.close())
    assert path.read_bytes() == before
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("wal", [False, True], ids=["journal", "wal"])
def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path, wal: bool) -> None:
    path = tmp_path / "memory.db"
    raw = sqlite3.connect(path)
    if wal:
        raw.execute("PRAGMA journal_mode = WAL")
    raw.executescript("CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('x');")
    raw.close()
    assert "another program" in refused(path, StoreDamaged)


@pytest.mark.parametrize(("name", "value"), [("application_id", 7), ("user_version", 1)])
def test_an_empty_database_of_another_program_is_refused_too(tmp_path: Path, name: str, value: int) -> None:
    path = tmp_path / "memory.db"
    raw = sqlite3.connect(path)
    raw.execute(f"PRAGMA {name} = {value}")
    raw.close()
    assert "another program" in refused(path, StoreDamaged)


@pytest.mark.parametrize(
    "content", [b"dear diary", b"x" * 5000, b"SQLite format 3\x00" + b"\xff" * 4096, b"\x00" * 4096, os.urandom(9000)]
)
def test_what_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(content)
    refused(path, StoreDamaged)


def test_a_truncated_store_is_told_as_damaged(tmp_path: Path) -> None:
    path = made(tmp_path / "memory.db", *(f"fact {n} {'x' * 500}" for n in range(60)))
    whole = path.read_bytes()
    for size in (100, 4096, 8192, len(whole) // 2):
        path.write_bytes(whole[:size])
        backend = open_sqlite(path)
        with pytest.raises(StoreDamaged):
            drive(backend.memories.select(ALL, limit=1000))
        drive(backend.memories.close())
        assert path.read_bytes()[:size] == whole[:size]


def test_a_row_that_nobody_writes_is_told_as_damage(tmp_path: Path) -> None:
    path = made(tmp_path / "memory.db", "fact")
    for column, value in (("status", "{"), ("kind", "poem"), ("provenance", "[]")):
        copy = tmp_path / f"{column}.db"
        shutil.copy(path, copy)
        raw = sqlite3.connect(copy)
        raw.execute(f"UPDATE memories SET {column} = ?", (value,))
        raw.commit()
        raw.close()
        with pytest.raises(StoreDamaged, match="#1"):
            contents(copy)
    raw = sqlite3.connect(path)
    raw.execute("UPDATE change_edits SET after = '{}'")
    raw.commit()
    raw.close()
    with pytest.raises(StoreDamaged, match="history"):
        drive(open_sqlite(path).memories.history())


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.touch()
    assert contents(made(path, "first")) == ["first"]


def test_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = made(tmp_path / "memory.db", "fact")
    raw = sqlite3.connect(path)
    raw.execute(f"PRAGMA user_version = {migrations.latest_version() + 1}")
    raw.close()
    assert "upgrade" in refused(path, SchemaTooNew)


def test_a_folder_in_its_place_is_told(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.mkdir()
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        add(open_sqlite(path), "fact")


def test_a_file_where_its_folder_should_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder")
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        add(open_sqlite(tmp_path / "data" / "memory.db"), "fact")


def test_a_store_that_must_exist_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="no store"):
        drive(open_sqlite(tmp_path / "memory.db", create=False).memories.history())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["with blank.db", "ünï—日本🚀.db", "a?mode=ro&x=%41#frag.db", "file:x.db", ":memory:"])
def test_any_path_is_just_a_path(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = made(Path(name), "fact")
    assert path.stat().st_size > 4096
    assert contents(path) == ["fact"]
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert contents(path) == ["fact"]
    finally:
        tmp_path.chmod(0o700)


def test_a_relative_path_stays_where_it_was_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    backend = open_sqlite(Path("memory.db"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    add(backend, "fact")
    drive(backend.memories.close())
    assert contents(tmp_path / "memory.db") == ["fact"]


def test_nobody_else_may_read_a_new_store(tmp_path: Path) -> None:
    path = tmp_path / "data" / "memory.db"
    old = os.umask(0)
    try:
        backend = open_sqlite(path)
        add(backend, "fact")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    files = sorted(path.parent.iterdir())
    assert [file.name for file in files] == ["memory.db", "memory.db-shm", "memory.db-wal"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_linked_store_is_one_store(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "memory.db"
    link.symlink_to(tmp_path / "real" / "store.db")
    backend = open_sqlite(link)
    add(backend, "through the link")
    direct = open_sqlite(tmp_path / "real" / "store.db")
    add(direct, "directly", 2)
    assert drive(backend.memories.count(ALL)) == 2
    assert [entry.name for entry in tmp_path.iterdir() if "-wal" in entry.name] == []


def test_commits_are_durable_by_setting(tmp_path: Path) -> None:
    backend = open_sqlite(tmp_path / "memory.db")
    connection = backend.memories._connection  # type: ignore[attr-defined]  # the port hides it, and should
    for name, value in (("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)):
        assert drive(connection.read(lambda raw, name=name: raw.execute(f"PRAGMA {name}").fetchone()[0])) == value
    assert pragma(tmp_path / "memory.db", "application_id") == APPLICATION_ID


def test_an_empty_database_is_brought_to_the_newest_format(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    raw = sqlite3.connect(path)
    raw.execute("CREATE TABLE t (x)")
    raw.execute("DROP TABLE t")
    raw.commit()
    raw.close()
    assert path.stat().st_size > 0
    assert contents(made(path, "fact")) == ["fact"]
    assert pragma(path, "user_version") == migrations.latest_version()


def test_words_are_indexed_anew_for_another_analyser(tmp_path: Path) -> None:
    path = made(tmp_path / "memory.db", "helm charts", "zebra crossing")
    raw = sqlite3.connect(path)
    raw.executescript(
        "UPDATE word_statistics SET analyser = 0, documents = 77, tokens = 5; DELETE FROM memory_words;"
        "UPDATE memories SET content_key = 'old';"
    )
    raw.close()
    backend = open_sqlite(path)
    search = drive(backend.text.search_text(["helm"], ALL, limit=5))
    assert (len(search.hits), search.documents) == (1, 2)
    same = replace(ALL, same_text="HELM charts")
    assert drive(backend.memories.count(same)) == 1
