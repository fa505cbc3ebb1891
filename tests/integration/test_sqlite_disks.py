"""A file of SQLite on a disk that is full, or that may only be read."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.history import Edit
from backstory.domain.ids import ProjectId
from backstory.domain.project import ProjectSighting
from backstory.entrypoints.drive import drive
from backstory.errors import StoreUnavailable
from backstory.testing.fakes import START, sample_change, sample_memory, ulid
from tests.integration.sqlite_files import ALL, add, as_ordinary_user, contents, made, pragma


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 2 MB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("this machine does not let root mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def remount(disk: Path, how: str) -> None:
    """Make a mounted disk read-only (ro) or writable (rw)."""
    subprocess.run(["mount", "-o", f"remount,{how}", disk], check=True)


def test_a_read_only_disk_is_read_and_not_written(small_disk: Path) -> None:
    path = made(small_disk / "memory.db", "fact")
    remount(small_disk, "ro")
    backend = open_sqlite(path)
    assert contents(path) == ["fact"]
    with pytest.raises(StoreUnavailable, match="read-only"):
        add(backend, "more", 2)
    assert drive(backend.memories.count(ALL)) == 1
    assert backend.memories.capabilities.read_only
    sighting = ProjectSighting(name="new", root="/new", aliases=("dir:/new",))
    new_id = ProjectId(ulid(1, series=2))
    assert drive(backend.projects.identify(sighting, now=START, new_id=new_id)).id == new_id
    assert drive(backend.projects.projects()) == {}
    remount(small_disk, "rw")
    add(backend, "more", 2)
    assert contents(path) == ["fact", "more"]


def test_a_read_only_folder_is_read_and_not_written(tmp_path: Path) -> None:
    path = made(tmp_path / "shelf" / "memory.db", "fact")
    path.chmod(0o644)  # so that it is the folder alone that refuses, and an ordinary user may read
    path.parent.chmod(0o555)
    try:
        said = as_ordinary_user(tmp_path, lambda: (contents(path), read_only_error(path)))
    finally:
        path.parent.chmod(0o755)
    assert said == f"(['fact'], 'the store {path} is read-only; nothing was written')"


def read_only_error(path: Path) -> str:
    """What a write says."""
    with pytest.raises(StoreUnavailable) as caught:
        add(open_sqlite(path), "more", 2)
    return str(caught.value)


def test_what_a_crash_left_in_the_log_is_read_from_a_read_only_disk(small_disk: Path) -> None:
    path = made(small_disk / "memory.db", "fact")
    backend = open_sqlite(path)
    add(backend, "in the log", 2)
    crashed = small_disk / "crashed"
    crashed.mkdir()
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(f"{path}{suffix}", crashed / f"memory.db{suffix}")
    lone = small_disk / "lone"
    lone.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", lone / f"memory.db{suffix}")
    drive(backend.memories.close())
    remount(small_disk, "ro")
    assert contents(crashed / "memory.db") == ["fact", "in the log"]
    with pytest.raises(StoreUnavailable, match="last writes"):
        contents(lone / "memory.db")


def test_a_disk_that_turns_read_only_is_told(small_disk: Path) -> None:
    path = made(small_disk / "memory.db", "fact")
    backend = open_sqlite(path)
    assert drive(backend.memories.count(ALL)) == 1
    drive(backend.memories.close())
    remount(small_disk, "ro")
    with pytest.raises(StoreUnavailable):
        add(backend, "more", 2)
    assert drive(backend.memories.count(ALL)) == 1


def test_a_full_disk_refuses_whole_changes_and_recovers(small_disk: Path) -> None:
    path = small_disk / "memory.db"
    backend = open_sqlite(path)
    add(backend, "first")
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (shutil.disk_usage(small_disk).free - 64 * 1024))
    changes: list[int] = []

    def fill() -> None:
        for number in range(2, 500):
            texts = [f"{number} {side} {os.urandom(2000).hex()}" for side in "ab"]
            edits = [Edit(before=None, after=sample_memory(text)) for text in texts]
            drive(backend.memories.commit(sample_change(number, *edits)))
            changes.append(number)

    with pytest.raises(StoreUnavailable):
        fill()
    stored = 1 + 2 * len(changes)
    assert drive(backend.memories.count(ALL)) == stored
    filler.unlink()
    add(backend, "room again", 1000)
    assert drive(backend.memories.count(ALL)) == stored + 1
    drive(backend.memories.close())
    assert len(contents(path)) == stored + 1
    assert pragma(path, "integrity_check") == "ok"


def test_a_store_cannot_be_made_on_a_full_disk_but_later(small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * shutil.disk_usage(small_disk).free)
    path = small_disk / "memory.db"
    with pytest.raises(StoreUnavailable):
        add(open_sqlite(path), "fact")
    filler.unlink()
    assert contents(made(path, "fact")) == ["fact"]
