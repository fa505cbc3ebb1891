"""A store as one file: whole or not at all, with others at work on it, and where there is no room."""

from __future__ import annotations

import os
import resource
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.entrypoints.drive import drive
from backstory.errors import InputError, StoreDamaged, StoreError, StoreUnavailable
from backstory.testing.fakes import add_memories
from tests.integration.kept_stores import closed, contents, filled, note, overwrite_page_of, upkeep_of, verify


def test_a_backup_is_one_whole_file_for_its_owner_alone(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    to = tmp_path / "shelf" / "backup.db"
    size = drive(upkeep_of(backend).backup(to))
    assert size == to.stat().st_size
    assert stat.S_IMODE(to.stat().st_mode) == 0o600
    assert [file.name for file in to.parent.iterdir()] == ["backup.db"]
    assert verify(to) == []
    assert contents(open_sqlite(to)) == contents(backend)


def test_a_backup_overwrites_only_when_it_is_told_to(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    to = tmp_path / "backup.db"
    to.write_text("precious")
    with pytest.raises(InputError, match="there already"):
        drive(upkeep_of(backend).backup(to))
    assert to.read_text() == "precious"
    drive(upkeep_of(backend).backup(to, overwrite=True))
    assert contents(open_sqlite(to, create=False)) == contents(backend)


def test_a_backup_never_takes_the_place_of_a_store_in_use(tmp_path: Path) -> None:
    backend, other = filled(tmp_path / "memory.db"), filled(tmp_path / "other.db")
    (tmp_path / "link.db").symlink_to(tmp_path / "memory.db")
    for target in ("memory.db", "link.db", "other.db", "."):
        with pytest.raises(InputError):
            drive(upkeep_of(backend).backup(tmp_path / target, overwrite=True))
    assert len(contents(other)) == len(contents(backend)) == 6


def test_a_backup_takes_the_place_of_files_alone_and_of_no_log(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    os.mkfifo(tmp_path / "pipe")
    for target in ("pipe", "memory.db-wal", "memory.db-journal"):
        with pytest.raises(InputError):
            drive(upkeep_of(backend).backup(tmp_path / target, overwrite=True))
    assert (tmp_path / "pipe").is_fifo()
    assert len(contents(open_sqlite(tmp_path / "memory.db"))) == 6


def test_where_a_backup_cannot_be_written_the_store_is_not_blamed(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(StoreUnavailable, match=r"the backup .* cannot be written"):
        drive(upkeep_of(backend).backup(tmp_path / "taken" / "copy.db"))


def test_a_damaged_store_is_not_backed_up_over_a_good_backup(tmp_path: Path) -> None:
    path = closed(tmp_path / "memory.db")
    to = tmp_path / "backup.db"
    drive(upkeep_of(open_sqlite(path)).backup(to))
    good = to.read_bytes()
    overwrite_page_of(path, "memories")
    with pytest.raises(StoreDamaged):
        drive(upkeep_of(open_sqlite(path)).backup(to, overwrite=True))
    assert to.read_bytes() == good
    assert sorted(file.name for file in tmp_path.iterdir() if file.suffix == ".part") == []


def test_writers_go_on_while_a_backup_is_made(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    stop = threading.Event()
    written: list[int] = []

    def write() -> None:
        other = open_sqlite(tmp_path / "memory.db")
        while not stop.is_set():
            number = len(written)
            drive(add_memories(other.memories, note(f"meanwhile {number}"), first_change=1000 + number))
            written.append(number)
        drive(other.memories.close())

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            to = tmp_path / f"backup-{number}.db"
            drive(upkeep_of(backend).backup(to))
            assert verify(to) == []
    finally:
        stop.set()
        writer.join()
    assert written


def in_a_child_that_may_write(limit_bytes: int, work: Callable[[], str]) -> str:
    """What ``work`` says in a process whose files may not grow beyond a limit, as on a full disk."""
    answer, told = os.pipe()
    if (child := os.fork()) == 0:
        try:
            import signal

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
            os.write(told, work().encode())
        except BaseException as error:
            os.write(told, repr(error).encode())
        os._exit(0)
    os.close(told)
    with os.fdopen(answer) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return text


def said(work: Callable[[], object]) -> str:
    try:
        work()
    except StoreError as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def test_where_there_is_no_room_nothing_is_half_written_and_reading_goes_on(tmp_path: Path) -> None:
    path = closed(tmp_path / "memory.db")
    whole, before = contents(open_sqlite(path)), path.stat().st_size

    def work() -> str:
        backend = open_sqlite(path)
        big = note("x" * 400_000)
        answer = said(lambda: drive(add_memories(backend.memories, big, first_change=500)))
        return f"{answer} / {contents(backend) == whole}"

    answer = in_a_child_that_may_write(before + 64 * 1024, work)
    assert answer.startswith("StoreUnavailable")
    assert answer.endswith("/ True")
    assert contents(open_sqlite(path)) == whole
    assert verify(path) == []


def test_where_there_is_no_room_a_backup_and_a_restore_leave_everything_as_it_was(tmp_path: Path) -> None:
    path, to = closed(tmp_path / "memory.db"), tmp_path / "backup.db"
    drive(upkeep_of(open_sqlite(path)).backup(to))
    whole, good = contents(open_sqlite(path)), to.read_bytes()

    def work() -> str:
        upkeep = upkeep_of(open_sqlite(path))
        return f"{said(lambda: drive(upkeep.backup(to, overwrite=True)))} / {said(lambda: drive(upkeep.restore(to)))}"

    answers = in_a_child_that_may_write(64 * 1024, work).split(" / ")
    assert [answer.partition(":")[0] for answer in answers] == ["StoreUnavailable"] * 2, answers
    assert to.read_bytes() == good
    assert contents(open_sqlite(path)) == whole
    assert verify(path) == []
    assert not list(tmp_path.glob("*before-restore*"))
