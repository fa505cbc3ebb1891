"""One file of SQLite, and many processes, threads and tasks at work on it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.memory import Memory
from backstory.entrypoints.drive import drive
from backstory.errors import StoreUnavailable
from backstory.ports.index import Embedded
from backstory.ports.models import EmbeddingModel
from backstory.testing.fakes import add_memories, sample_memory
from tests.integration.sqlite_files import ALL, add, contents, made, pragma

ROOT = Path(__file__).parents[2]
MODEL = EmbeddingModel(name="compass", dimension=2)


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
    _, complaint = start(code, path, 0).communicate(timeout=240)
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
