"""Dream states, summaries and doubts on real stores: two processes, lost answers, copies, refs, and older formats."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from backstory.adapters.stores.sqlite import migrations
from backstory.adapters.stores.sqlite.opening import APPLICATION_ID
from backstory.domain.memory import Memory
from backstory.entrypoints.drive import drive
from backstory.ports.backend import Backend
from backstory.ports.upkeep import Severity, StoreUpkeep
from backstory.testing.contracts.doubt_store import doubt_of
from backstory.testing.contracts.dream_store import FULL_STATE, S1, S2, STATE, written
from backstory.testing.contracts.summaries import summary_of
from backstory.testing.fakes import ORCHARD, add_memories, sample_memory
from backstory.testing.postgres import postgres_for_tests, why_there_is_none
from tests.integration.postgres_proxy import Proxy
from tests.stores import STORES

needs_postgres = pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))
KEPT = replace(FULL_STATE, revision=1)


def upkeep_of(backend: Backend) -> StoreUpkeep:
    assert backend.upkeep is not None
    return backend.upkeep


async def filled(backend: Backend) -> Memory:
    """A state, two summaries and a doubt; gives the memory that they are made from."""
    [memory] = await add_memories(backend.memories, sample_memory("The cart is in src/cart.py"))
    assert await backend.dreams.apply(FULL_STATE)
    await backend.dreams.put_summary(summary_of(memory))
    await backend.dreams.put_summary(summary_of(memory, project=None))
    await backend.doubts.replace([memory.id], [doubt_of(memory)])
    return memory


async def is_as_filled(backend: Backend, memory: Memory) -> bool:
    return (
        await backend.dreams.state(S1) == KEPT
        and await backend.dreams.summary(ORCHARD) == summary_of(memory)
        and await backend.dreams.summary(None) == summary_of(memory, project=None)
        and await backend.doubts.doubts() == {memory.id: doubt_of(memory)}
    )


WRITER = """
import sys
import anyio
from dataclasses import replace
{opening}
from backstory.testing.contracts.dream_store import S1, STATE


async def work(worker):
    won = 0
    while won < 15:
        state = await backend.dreams.state(S1) or STATE
        won += await backend.dreams.apply(replace(state, problem=worker, attempts=state.attempts + 1))
    await backend.memories.close()


anyio.run(work, sys.argv[1])
"""


def test_of_two_processes_one_wins_each_time(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    opening = f"""
        from pathlib import Path
        from backstory.adapters.stores.sqlite.store import open_sqlite
        backend = open_sqlite(Path({str(path)!r}))
    """
    script = WRITER.format(opening=textwrap.dedent(opening))
    workers = [subprocess.Popen([sys.executable, "-c", script, name]) for name in ("one", "two")]
    assert [worker.wait(timeout=240) for worker in workers] == [0, 0]
    state = drive(STORES["sqlite"](tmp_path).dreams.state(S1))
    assert state is not None
    assert (state.revision, state.attempts) == (30, 30)  # nobody wrote over what the other had written


@needs_postgres
@pytest.mark.parametrize("forward", [False, True], ids=["lost before the server got it", "lost on the way back"])
def test_a_write_whose_answer_is_lost_is_there_once_and_told_as_written(forward: bool) -> None:
    from backstory.adapters.stores.postgres.store import open_postgres

    server = postgres_for_tests()
    proxy = Proxy(server.socket_folder)
    backend = open_postgres(
        server.dsn(hostaddr="127.0.0.1", port=str(proxy.port)), schema="contracts", tenant=server.new_name("tenant")
    )

    def cut() -> None:
        proxy.cut_at(b"COMMIT\x00", forward=forward)

    memory = drive(filled(backend))
    cut()
    assert drive(backend.dreams.apply(replace(STATE, revision=1, problem="a\x00b")))
    cut()
    drive(backend.dreams.put_summary(summary_of(memory, text="anew")))
    cut()
    drive(backend.doubts.replace([memory.id], [doubt_of(memory, anchor="--flag")]))
    assert proxy.has_cut
    assert drive(backend.dreams.state(S1)) == replace(STATE, revision=2, problem="a\ufffdb")
    assert drive(backend.dreams.summary(ORCHARD)) == summary_of(memory, text="anew")
    assert drive(backend.doubts.doubts()) == {memory.id: doubt_of(memory, anchor="--flag")}
    cut()
    assert drive(backend.dreams.forget(S1))
    cut()
    assert drive(backend.dreams.drop_summary(ORCHARD))
    assert drive(backend.dreams.state(S1)) is None
    drive(backend.memories.close())
    proxy.close()


@pytest.mark.parametrize(
    ("source", "target"), [("sqlite", "sqlite"), ("sqlite", "postgres"), ("postgres", "git"), ("git", "sqlite")]
)
def test_a_backup_holds_them_and_any_store_takes_them_over(source: str, target: str, tmp_path: Path) -> None:
    async def work() -> None:
        store, other = (STORES[kind](tmp_path / name) for kind, name in ((source, "from"), (target, "to")))
        memory = await filled(store)
        await upkeep_of(store).backup(tmp_path / "backup.db")
        await written(other.dreams, attempts=5)
        await written(other.dreams, S2)
        await upkeep_of(other).restore(tmp_path / "backup.db")
        assert await is_as_filled(other, memory)
        assert await other.dreams.state(S2) is None
        assert [found for found in await upkeep_of(other).verify() if found.severity is not Severity.NOTE] == []
        for backend in (store, other):
            await backend.memories.close()

    for name in ("from", "to"):
        (tmp_path / name).mkdir()
    anyio.run(work)


@pytest.mark.parametrize("kind", ["sqlite", "git", "postgres"])
def test_rebuilding_leaves_what_is_right(kind: str, tmp_path: Path) -> None:
    async def work() -> None:
        store = STORES[kind](tmp_path)
        memory = await filled(store)
        await upkeep_of(store).rebuild()
        assert (await upkeep_of(store).rebuild()).corrected == 0
        assert await is_as_filled(store, memory)
        await store.memories.close()

    anyio.run(work)


@needs_postgres
def test_tenants_do_not_see_each_others(tmp_path: Path) -> None:
    async def work() -> None:
        ours, theirs = STORES["postgres"](tmp_path), STORES["postgres"](tmp_path)
        memory = await filled(ours)
        await theirs.doubts.replace([memory.id], [doubt_of(memory)])
        await theirs.dreams.put_summary(summary_of(memory, text="stolen"))
        assert await theirs.dreams.state(S1) is None
        assert await theirs.dreams.summary(ORCHARD) is None
        assert await theirs.doubts.doubts() == {}
        assert await is_as_filled(ours, memory)
        for backend in (ours, theirs):
            await backend.memories.close()

    anyio.run(work)


def test_a_file_of_the_format_before_takes_them_in(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as raw:
        for version, script in migrations.scripts():
            if version <= 9:
                raw.executescript(script.read_text(encoding="utf-8"))
        raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        raw.execute("PRAGMA user_version = 9")
        raw.commit()
    backend = STORES["sqlite"](tmp_path)
    assert drive(backend.dreams.state(S1)) is None
    memory = drive(filled(backend))
    assert drive(is_as_filled(backend, memory))
    findings = drive(upkeep_of(backend).verify(full=True))
    assert [found for found in findings if found.severity is not Severity.NOTE] == []
    drive(backend.memories.close())
