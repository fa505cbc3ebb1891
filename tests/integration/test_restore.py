"""A backup back into its place, and a file that is replaced by hand."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from backstory.adapters.stores.sqlite import migrations
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.entrypoints.drive import drive
from backstory.errors import SchemaTooNew, StoreBusy, StoreDamaged
from backstory.ports.index import Embedded
from backstory.ports.upkeep import Invariant, Severity
from backstory.testing.fakes import add_memories
from tests.integration.kept_stores import (
    ALL,
    MODEL,
    closed,
    contents,
    cut,
    damage,
    diary,
    filled,
    forged,
    note,
    scribbled,
    upkeep_of,
    verify,
)


def test_a_restored_store_is_what_was_backed_up_and_the_replaced_one_is_kept(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    upkeep = upkeep_of(backend)
    before = contents(backend)
    drive(upkeep.backup(tmp_path / "backup.db"))
    drive(add_memories(backend.memories, note("after the backup"), first_change=100))
    restored = drive(upkeep.restore(tmp_path / "backup.db"))
    assert (restored.memories, restored.messages) == (6, 2)
    assert contents(backend) == before
    assert verify(tmp_path / "memory.db") == []
    assert restored.kept is not None
    assert restored.kept.name.startswith("memory.db.before-restore-")
    assert stat.S_IMODE(restored.kept.stat().st_mode) == 0o600
    assert "after the backup" in contents(open_sqlite(restored.kept))


def test_a_number_given_since_the_backup_is_not_given_again(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    drive(upkeep_of(backend).backup(tmp_path / "backup.db"))
    [later] = drive(add_memories(backend.memories, note("after the backup"), first_change=100))
    drive(upkeep_of(backend).restore(tmp_path / "backup.db"))
    [next_one] = drive(add_memories(backend.memories, note("after the restore"), first_change=101))
    assert next_one.n == later.n + 1


def test_an_open_process_goes_on_with_the_restored_store_vectors_included(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    backend, other = filled(path), open_sqlite(path)
    drive(upkeep_of(backend).backup(tmp_path / "backup.db"))
    added = drive(add_memories(other.memories, note("east"), note("west"), first_change=100))
    drive(
        other.vectors.put_vectors(
            [Embedded(id=memory.id, revision=1, vector=(0.0, 1.0)) for memory in added], model=MODEL
        )
    )

    def nearest() -> list[str]:
        hits = drive(other.vectors.search_vectors((0.0, 1.0), ALL, model=MODEL, limit=9))
        return [memory.content for memory in drive(other.memories.get([hit.id for hit in hits])).values()]

    assert len(nearest()) == 3
    drive(upkeep_of(backend).restore(tmp_path / "backup.db"))
    assert nearest() == ["The cluster runs in Frankfurt"]
    [north] = drive(add_memories(other.memories, note("north"), first_change=200))
    drive(other.vectors.put_vectors([Embedded(id=north.id, revision=1, vector=(0.0, 1.0))], model=MODEL))
    assert sorted(nearest()) == ["The cluster runs in Frankfurt", "north"]


def test_a_store_that_was_emptied_is_refused_with_its_log_and_can_be_restored(tmp_path: Path) -> None:
    path, source = tmp_path / "memory.db", tmp_path / "backup.db"
    crashed = filled(path)
    drive(upkeep_of(crashed).backup(source))
    drive(add_memories(crashed.memories, note("in the log"), first_change=100))
    log = path.with_name("memory.db-wal").read_bytes()
    emptied_one = tmp_path / "emptied" / "memory.db"
    emptied_one.parent.mkdir()
    emptied_one.touch()
    emptied_one.with_name("memory.db-wal").write_bytes(log)
    backend = open_sqlite(emptied_one)
    with pytest.raises(StoreDamaged, match="its log is not"):
        contents(backend)
    [finding] = verify(emptied_one)
    assert (finding.invariant, finding.severity) == (Invariant.WHOLE, Severity.DAMAGE)
    assert emptied_one.with_name("memory.db-wal").read_bytes() == log
    restored = drive(upkeep_of(backend).restore(source))
    assert len(contents(backend)) == 6
    assert restored.kept is not None
    assert restored.kept.with_name(f"{restored.kept.name}-wal").read_bytes() == log


def test_a_store_that_is_not_there_is_restored_too(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    drive(upkeep_of(backend).backup(tmp_path / "backup.db"))
    new = open_sqlite(tmp_path / "elsewhere" / "memory.db")
    assert drive(upkeep_of(new).restore(tmp_path / "backup.db")).kept is None
    assert contents(new) == contents(backend)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def foreign(path: Path) -> None:
    path.unlink()
    damage(path, "CREATE TABLE bookmarks (url)")


@pytest.mark.parametrize("spoil", [cut, scribbled, emptied, diary, forged, foreign])
def test_a_damaged_backup_changes_nothing(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    path, source = closed(tmp_path / "memory.db"), tmp_path / "backup.db"
    drive(upkeep_of(open_sqlite(path)).backup(source))
    spoil(source)
    spoilt, before = source.read_bytes(), path.read_bytes()
    with pytest.raises(StoreDamaged):
        drive(upkeep_of(open_sqlite(path)).restore(source))
    assert (path.read_bytes(), source.read_bytes()) == (before, spoilt)
    assert not list(tmp_path.glob("*before-restore*"))
    assert not list(tmp_path.glob(".*part*"))


def test_a_newer_backup_and_a_newer_store_are_left_alone(tmp_path: Path) -> None:
    path, source = closed(tmp_path / "memory.db"), tmp_path / "backup.db"
    drive(upkeep_of(open_sqlite(path)).backup(source))
    damage(source, f"PRAGMA user_version = {migrations.latest_version() + 1}")
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew):
        drive(upkeep_of(open_sqlite(path)).restore(source))
    assert path.read_bytes() == before
    newer = closed(tmp_path / "newer.db")
    drive(upkeep_of(open_sqlite(path)).backup(source, overwrite=True))
    damage(newer, f"PRAGMA user_version = {migrations.latest_version() + 1}")
    before = newer.read_bytes()
    with pytest.raises(SchemaTooNew):
        drive(upkeep_of(open_sqlite(newer)).restore(source))
    assert newer.read_bytes() == before


def test_another_programs_database_is_never_replaced(tmp_path: Path) -> None:
    source = tmp_path / "backup.db"
    drive(upkeep_of(filled(tmp_path / "memory.db")).backup(source))
    other = tmp_path / "other.db"
    damage(other, "CREATE TABLE bookmarks (url)")
    before = other.read_bytes()
    with pytest.raises(StoreDamaged, match="another program"):
        drive(upkeep_of(open_sqlite(other)).restore(source))
    assert other.read_bytes() == before


@pytest.mark.parametrize("spoil", [cut, scribbled, diary])
def test_a_damaged_store_is_replaced_and_kept_byte_for_byte(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    path, source = closed(tmp_path / "memory.db"), tmp_path / "backup.db"
    drive(upkeep_of(open_sqlite(path)).backup(source))
    whole = contents(open_sqlite(source))
    spoil(path)
    spoilt = path.read_bytes()
    backend = open_sqlite(path)
    restored = drive(upkeep_of(backend).restore(source))
    assert contents(backend) == whole
    assert verify(path) == []
    assert restored.kept is not None
    if spoil is not scribbled:  # that one is copied page by page, with its damage
        assert restored.kept.read_bytes() == spoilt


def test_an_older_backup_is_brought_up_to_date_in_its_copy_alone(tmp_path: Path) -> None:
    source = tmp_path / "old.db"
    with closing(sqlite3.connect(source, isolation_level=None)) as raw:
        first = migrations.scripts()[0][1].read_text(encoding="utf-8")
        raw.executescript(f"{first}; PRAGMA application_id = {0x42535459}; PRAGMA user_version = 1;")
    before = source.read_bytes()
    path = closed(tmp_path / "memory.db")
    drive(upkeep_of(open_sqlite(path)).restore(source))
    assert verify(path) == []
    assert source.read_bytes() == before


def test_a_restore_waits_for_a_writer_and_then_says_so(tmp_path: Path) -> None:
    path, source = tmp_path / "memory.db", tmp_path / "backup.db"
    drive(upkeep_of(filled(path)).backup(source))
    impatient = open_sqlite(path, busy_timeout=timedelta(milliseconds=50))
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy):
            drive(upkeep_of(impatient).restore(source))
        timer = threading.Timer(0.2, other.execute, ("COMMIT",))
        timer.start()
        drive(upkeep_of(open_sqlite(path)).restore(source))
        timer.join()
    assert len(list(tmp_path.glob("memory.db.before-restore-*"))) == 1


WRITE = """
import sys
from pathlib import Path
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.entrypoints.drive import drive
from backstory.testing.fakes import add_memories, sample_memory
store = open_sqlite(Path(sys.argv[1])).memories
number = 0
while True:
    number += 1
    drive(add_memories(store, sample_memory(f"{number} of the other process"), first_change=5000 + number))
    print(number, flush=True)
"""


def test_what_another_process_was_told_is_in_the_kept_store_or_in_the_restored_one(tmp_path: Path) -> None:
    path, source = tmp_path / "memory.db", tmp_path / "backup.db"
    backend = filled(path)
    drive(upkeep_of(backend).backup(source))
    with subprocess.Popen([sys.executable, "-c", WRITE, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(10)]
        restored = drive(upkeep_of(backend).restore(source))
        while not drive(backend.memories.count(replace(ALL, contains="of the other process"))):
            told.append(process.stdout.readline())  # until it has found the restored store
        process.kill()
        told += [line for line in process.stdout if line.endswith("\n")]
    assert restored.kept is not None
    either = {*contents(open_sqlite(restored.kept)), *contents(open_sqlite(path))}
    assert [line for line in told if f"{line.strip()} of the other process" not in either] == []
    assert verify(path, full=True)[0].invariant is Invariant.PROJECTS


@pytest.mark.parametrize("kept", [True, False], ids=["moved", "removed"])
def test_an_open_process_finds_the_file_that_is_there_now(tmp_path: Path, kept: bool) -> None:
    path = tmp_path / "memory.db"
    backend = filled(path)
    drive(upkeep_of(backend).backup(tmp_path / "backup.db"))
    drive(add_memories(backend.memories, note("after the backup"), first_change=100))
    for suffix in ("", "-wal", "-shm"):
        name = path.with_name(f"memory.db{suffix}")
        name.rename(tmp_path / f"moved.db{suffix}") if kept else name.unlink()
    shutil.copy(tmp_path / "backup.db", path)
    assert "after the backup" not in contents(backend)
    drive(add_memories(backend.memories, note("into the new file"), first_change=101))
    other = open_sqlite(path)
    drive(add_memories(other.memories, note("by another"), first_change=102))
    drive(backend.memories.close())
    assert {"into the new file", "by another"} <= set(contents(open_sqlite(path)))
    if kept:
        assert "after the backup" in contents(open_sqlite(tmp_path / "moved.db"))


def test_closing_a_file_that_was_replaced_leaves_the_log_of_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    old = filled(path)
    for suffix in ("", "-wal", "-shm"):
        path.with_name(f"memory.db{suffix}").rename(tmp_path / f"moved.db{suffix}")
    new = open_sqlite(path)
    drive(add_memories(new.memories, note("only in the log"), first_change=1))
    drive(old.memories.close())
    assert (tmp_path / "memory.db-wal").stat().st_size > 0
    assert contents(open_sqlite(path)) == ["only in the log"]


def test_vectors_kept_in_memory_are_those_of_the_file_that_is_there(tmp_path: Path) -> None:
    one, two = filled(tmp_path / "memory.db"), filled(tmp_path / "other.db")
    [second] = drive(two.memories.select(ALL, limit=1))
    drive(two.vectors.drop_vectors(model_name=MODEL.name))
    drive(two.vectors.put_vectors([Embedded(id=second.id, revision=second.revision, vector=(0.0, 1.0))], model=MODEL))
    assert len(drive(one.vectors.search_vectors((1.0, 0.0), ALL, model=MODEL, limit=5))) == 1
    drive(upkeep_of(two).backup(tmp_path / "backup.db"))
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"memory.db{suffix}").unlink()
    (tmp_path / "backup.db").replace(tmp_path / "memory.db")
    [hit] = drive(one.vectors.search_vectors((0.0, 1.0), ALL, model=MODEL, limit=5))
    assert hit.id == second.id
    assert hit.similarity == pytest.approx(1.0)
