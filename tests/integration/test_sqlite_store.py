"""The SQLite store on real files, real disks and real processes."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from backstory.adapters.stores.sqlite import migrations
from backstory.adapters.stores.sqlite.opening import APPLICATION_ID
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.history import Edit
from backstory.domain.ids import ProjectId
from backstory.domain.memory import Memory
from backstory.domain.project import ProjectSighting
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.entrypoints.drive import drive
from backstory.errors import SchemaTooNew, StoreDamaged, StoreError, StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.index import Embedded
from backstory.ports.models import EmbeddingModel
from backstory.testing.fakes import ORCHARD, START, add_memories, sample_change, sample_memory, ulid

ROOT = Path(__file__).parents[2]
ALL = Selection(viewer=Viewer(project=ORCHARD, audience=Audience.PERSON), now=START)
MODEL = EmbeddingModel(name="compass", dimension=2)


def add(backend: Backend, content: str, change: int = 1) -> Memory:
    """Store one memory."""
    return drive(add_memories(backend.memories, sample_memory(content), first_change=change))[0]


def contents(path: Path) -> list[str]:
    """The texts of a store, oldest first, read by a connection of its own."""
    backend = open_sqlite(path, create=False)
    found = [memory.content for memory in drive(backend.memories.select(ALL, limit=100_000))]
    drive(backend.memories.close())
    return found[::-1]


def made(path: Path, *texts: str) -> Path:
    """A closed store with these memories."""
    backend = open_sqlite(path)
    for number, text in enumerate(texts, start=1):
        add(backend, text, number)
    drive(backend.memories.close())
    return path


def pragma(path: Path, name: str) -> object:
    """What a fresh connection reads."""
    raw = sqlite3.connect(path)
    value = raw.execute(f"PRAGMA {name}").fetchone()[0]
    raw.close()
    return value


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


# --- other files in its place -----------------------------------------------------------------------------------------


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


# --- paths and permissions --------------------------------------------------------------------------------------------


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


# --- formats ----------------------------------------------------------------------------------------------------------


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


# --- disks ------------------------------------------------------------------------------------------------------------


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


def as_ordinary_user(folder: Path, say: Callable[[], object]) -> str:
    """What ``say`` gives as text; root, who may write anywhere, becomes somebody else for it."""
    if os.geteuid() != 0:
        return str(say())
    for parent in (folder, *folder.parents):
        if parent.stat().st_mode & 0o011 == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
    answer, told = os.pipe()
    if (child := os.fork()) == 0:
        os.setuid(65534)
        try:
            os.write(told, str(say()).encode())
        except BaseException as error:
            os.write(told, repr(error).encode())
        os._exit(0)
    os.close(told)
    with os.fdopen(answer) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return text


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


# --- many processes ---------------------------------------------------------------------------------------------------


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Run Python code that sees its arguments in ``sys.argv`` and has the names of this file's imports it needs."""
    prelude = (
        "import sys, os\nfrom pathlib import Path\nfrom backstory.adapters.stores.sqlite.store import open_sqlite\n"
        "from backstory.entrypoints.drive import drive\nfrom backstory.testing.fakes import *\n"
        "path, number = Path(sys.argv[1]), int(sys.argv[2])\n"
    )
    command = [sys.executable, "-c", prelude + code, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)


def all_succeed(processes: list[subprocess.Popen[str]]) -> list[str]:
    """Wait for all; their outputs."""
    ended = [process.communicate(timeout=120) for process in processes]
    assert [error for _, error in ended if error] == []
    assert {process.returncode for process in processes} == {0}
    return [output for output, _ in ended]


WRITE_TWENTY = """
store = open_sqlite(path).memories
for n in range(20):
    drive(add_memories(store, sample_memory(f"{n} of {number}"), first_change=1000 * number + n))
"""


def test_eight_writers_at_once_lose_nothing_on_a_store_they_make(tmp_path: Path) -> None:
    path = tmp_path / "new" / "memory.db"
    all_succeed([start(WRITE_TWENTY, path, number) for number in range(1, 9)])
    assert sorted(contents(path)) == sorted(f"{n} of {number}" for number in range(1, 9) for n in range(20))
    assert pragma(path, "integrity_check") == "ok"
    numbers = [memory.n for memory in drive(open_sqlite(path).memories.select(ALL, limit=1000))]
    assert sorted(numbers) == list(range(1, 161))


REMEMBER = """
from backstory.domain.admission import TextLimits
from backstory.domain.history import Author
from backstory.domain.provenance import Origin
from backstory.domain.scope import Viewer
from backstory.services.reference import Reference
from backstory.services.remember import Draft, Remember
backend, clock = open_sqlite(path), FakeClock()
reference = Reference(backend.memories, backend.projects, clock=clock)
ids = SequentialIds(number)
remember = Remember(backend.memories, reference, clock=clock, ids=ids, limits=TextLimits())
viewer = Viewer(project=ORCHARD)
sys.stdin.readline()
for n in range(15):
    drive(remember.remember(Draft(content=f"Fact {n}", origin=Origin.AGENT), viewer=viewer, author=Author.AGENT))
"""


def test_a_text_said_by_many_processes_at_once_is_stored_once(tmp_path: Path) -> None:
    path = made(tmp_path / "memory.db")
    drive(open_sqlite(path).memories.history())
    processes = [start(REMEMBER, path, number) for number in range(1, 5)]
    all_succeed(processes)
    assert sorted(contents(path)) == sorted(f"Fact {n}" for n in range(15))
    changes = drive(open_sqlite(path).memories.history(limit=1000))
    assert len(changes) == 60


def test_two_processes_that_see_a_project_first_get_the_same(tmp_path: Path) -> None:
    code = """
from backstory.domain.project import ProjectSighting
sighting = ProjectSighting(name="shop", root="/shop", aliases=("git:/shop",))
new_id = ulid(number, series=2)
print(drive(open_sqlite(path).projects.identify(sighting, now=START, new_id=new_id)).id)
"""
    outputs = all_succeed([start(code, tmp_path / "memory.db", number) for number in range(1, 5)])
    assert len(set(outputs)) == 1


def test_a_busy_writer_is_waited_for_and_then_told(tmp_path: Path) -> None:
    path = made(tmp_path / "memory.db", "fact")
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    backend = open_sqlite(path, busy_timeout=timedelta(milliseconds=50))
    assert drive(backend.memories.count(ALL)) == 1  # readers do not wait
    with pytest.raises(StoreUnavailable, match="busy"):
        add(backend, "more", 2)
    patient = open_sqlite(path, busy_timeout=timedelta(seconds=20))
    timer = threading.Timer(0.2, other.execute, ("COMMIT",))
    timer.start()
    add(patient, "more", 2)
    timer.join()
    other.close()
    assert contents(path) == ["fact", "more"]


def test_another_process_sees_vectors_change(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    ours, theirs = open_sqlite(path), open_sqlite(path)
    first, second = (add(ours, text, number) for number, text in ((1, "a"), (2, "b")))

    def put(memory: Memory, *vector: float) -> None:
        embedded = Embedded(id=memory.id, revision=memory.revision, vector=vector)
        assert drive(theirs.vectors.put_vectors([embedded], model=MODEL)) == 1

    def nearest() -> list[str]:
        hits = drive(ours.vectors.search_vectors((1.0, 0.0), ALL, model=MODEL, limit=5))
        return [hit.id for hit in hits]

    put(first, 1.0, 0.0)
    assert nearest() == [first.id]
    put(second, 0.8, 0.6)
    assert nearest() == [first.id, second.id]
    put(first, 0.0, 1.0)
    assert nearest() == [second.id, first.id]
    drive(theirs.vectors.drop_vectors(model_name="compass"))
    assert nearest() == []


# --- one process, many callers ----------------------------------------------------------------------------------------


def test_two_connections_of_one_process_do_not_break_each_others_locks(tmp_path: Path) -> None:
    """Closing any descriptor of the file would drop the first connection's locks; a stranger could then take all."""
    path = tmp_path / "memory.db"
    first = open_sqlite(path)
    add(first, "one")
    second = open_sqlite(path)
    assert drive(second.memories.count(ALL)) == 1
    drive(second.memories.close())
    code = """
import sqlite3
raw = sqlite3.connect(path, timeout=0)
raw.execute("PRAGMA journal_mode = DELETE").fetchone()
"""
    _, complaint = start(code, path, 0).communicate(timeout=60)
    assert "locked" in complaint
    add(first, "two", 2)
    assert contents(path) == ["one", "two"]


def test_a_forked_child_has_a_connection_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    backend = open_sqlite(path)
    add(backend, "before the fork")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            add(backend, "from the child", 2)
            status = 0 if drive(backend.memories.count(ALL)) >= 2 else 2
        finally:
            os._exit(status)
    add(backend, "from the parent", 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sorted(contents(path)) == ["before the fork", "from the child", "from the parent"]


def test_a_fork_waits_for_the_write_of_another_thread(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    backend = open_sqlite(path)
    stop = threading.Event()
    written = 0

    def write() -> None:
        nonlocal written
        while not stop.is_set():
            written += 1
            add(backend, f"thread {written}", written)

    writer = threading.Thread(target=write)
    writer.start()
    for number in range(10):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                add(backend, f"child {number}", 10_000 + number)
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    stop.set()
    writer.join()
    assert len(contents(path)) == written + 10
    assert pragma(path, "integrity_check") == "ok"


def test_many_tasks_of_one_loop_share_a_store(tmp_path: Path) -> None:
    backend = open_sqlite(tmp_path / "memory.db")

    async def write_all() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(1, 31):
                tasks.start_soon(write, number)

    async def write(number: int) -> None:
        await add_memories(backend.memories, sample_memory(str(number)), first_change=number)
        await backend.memories.count(ALL)

    anyio.run(write_all)
    assert drive(backend.memories.count(ALL)) == 30
