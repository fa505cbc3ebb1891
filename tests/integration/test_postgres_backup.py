"""Postgres stores backed up, moved and restored, while others go on; other tenants never notice."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.conversation import Message, Part, Role
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.errors import SchemaTooNew, StoreDamaged, StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.upkeep import Restored, Severity
from backstory.testing.fakes import START, HashEmbedder, add_memories
from backstory.testing.postgres import why_there_is_none
from tests.integration.postgres_shelves import Shelf, contents, fill
from tests.integration.postgres_shelves import server as server
from tests.integration.postgres_shelves import shelf as shelf
from tests.integration.upkeeping import EVERYTHING, everywhere, faults, run, upkeep_of

pytestmark = pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))


def test_a_backup_is_a_whole_sqlite_store_with_everything(shelf: Shelf, tmp_path: Path) -> None:
    run(shelf.open(), fill)
    run(shelf.open(), lambda backend: upkeep_of(backend).backup(tmp_path / "copy.db"))
    copy = open_sqlite(tmp_path / "copy.db")
    assert faults(copy) == []

    async def look(backend: Backend) -> Any:  # Any: a tuple of everything
        changes = await backend.memories.history(limit=100)
        return (
            await backend.memories.select(EVERYTHING, limit=100), changes, await backend.projects.projects(),
            await backend.projects.aliases(), await backend.vectors.vector_counts(),
            await backend.conversations.messages(SessionId("ses-1")),
            await backend.conversations.recent_blocks(), await backend.conversations.snapshot(SessionId("ses-1")),
        )  # fmt: skip

    assert run(open_sqlite(tmp_path / "copy.db"), look) == run(shelf.open(), look)


def test_a_store_moves_to_sqlite_and_back_with_numbers_and_history(shelf: Shelf, tmp_path: Path) -> None:
    run(open_sqlite(tmp_path / "memory.db"), fill)
    run(open_sqlite(tmp_path / "memory.db"), lambda backend: upkeep_of(backend).backup(tmp_path / "out.db"))
    restored: Restored = run(shelf.open(create=False), lambda backend: upkeep_of(backend).restore(tmp_path / "out.db"))
    assert (restored.memories, restored.messages, restored.kept) == (3, 2, None)
    assert faults(shelf.open()) == []

    async def look(backend: Backend) -> Any:  # Any: a tuple of everything
        return await backend.memories.select(EVERYTHING, limit=100), await backend.memories.history(limit=100)

    assert run(shelf.open(), look) == run(open_sqlite(tmp_path / "memory.db"), look)
    run(shelf.open(), lambda backend: upkeep_of(backend).backup(tmp_path / "back.db"))
    run(open_sqlite(tmp_path / "other.db"), lambda backend: upkeep_of(backend).restore(tmp_path / "back.db"))
    assert run(open_sqlite(tmp_path / "other.db"), look) == run(shelf.open(), look)


def test_restoring_keeps_the_replaced_store_and_leaves_other_tenants_alone(shelf: Shelf, tmp_path: Path) -> None:
    run(shelf.open("one"), fill)
    run(shelf.open("two"), fill)
    run(shelf.open("one"), lambda backend: upkeep_of(backend).backup(tmp_path / "copy.db"))
    run(shelf.open("one"), lambda backend: add_memories(backend.memories, everywhere("later"), first_change=70))
    bystander = shelf.rows_of("two")
    restored: Restored = run(shelf.open("one"), lambda backend: upkeep_of(backend).restore(tmp_path / "copy.db"))
    assert shelf.rows_of("two") == bystander
    assert "later" not in run(shelf.open("one"), contents)
    assert faults(shelf.open("one")) == []
    assert restored.kept is not None
    assert restored.kept.parent == tmp_path
    assert restored.kept.stat().st_mode & 0o077 == 0
    assert "later" in run(open_sqlite(restored.kept), contents)


def test_a_process_that_is_open_goes_on_with_the_restored_store(shelf: Shelf, tmp_path: Path) -> None:
    async def both() -> None:
        one, other = shelf.open(), shelf.open()
        await fill(one)
        await upkeep_of(one).backup(tmp_path / "copy.db")
        [later] = await add_memories(other.memories, everywhere("later"), first_change=70)
        embedder = HashEmbedder()
        model = await embedder.model()
        vector = (await embedder.embed(["The cluster is called heron"]))[0]
        assert vector is not None
        assert await other.vectors.search_vectors(vector, EVERYTHING, model=model, limit=5)
        await upkeep_of(one).restore(tmp_path / "copy.db")
        assert await other.memories.by_number(later.n) is None
        hits = await other.vectors.search_vectors(vector, EVERYTHING, model=model, limit=5)
        assert len(hits) == 2
        [newest] = await add_memories(other.memories, everywhere("newest"), first_change=71)
        assert newest.n > later.n
        assert len((await other.text.search_text(["heron"], EVERYTHING, limit=5)).hits) == 1
        await one.memories.close()
        await other.memories.close()

    anyio.run(both)


def test_what_others_write_while_a_backup_is_restored_is_in_one_of_the_two(shelf: Shelf, tmp_path: Path) -> None:
    told: list[str] = []

    async def write(backend: Backend, number: int) -> None:
        for step in range(12):
            content = f"note {step} of writer {number}"
            await add_memories(backend.memories, everywhere(content), first_change=100 + 20 * number + step)
            told.append(content)

    async def both() -> Restored:
        backend, others = shelf.open(), [shelf.open() for _ in range(3)]
        await fill(backend)
        await upkeep_of(backend).backup(tmp_path / "copy.db")
        async with anyio.create_task_group() as tasks:
            for number, other in enumerate(others):
                tasks.start_soon(write, other, number)
            await anyio.sleep(0.05)
            restored = await upkeep_of(backend).restore(tmp_path / "copy.db")
        for opened in (backend, *others):
            await opened.memories.close()
        return restored

    restored = anyio.run(both)
    assert restored.kept is not None
    found = {*run(shelf.open(), contents), *run(open_sqlite(restored.kept), contents)}
    assert set(told) <= found
    assert faults(shelf.open()) == []


def test_a_damaged_or_newer_backup_changes_nothing(shelf: Shelf, tmp_path: Path) -> None:
    run(shelf.open(), fill)
    run(shelf.open(), lambda backend: upkeep_of(backend).backup(tmp_path / "copy.db"))
    before = shelf.rows_of("one")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as raw, raw:
        raw.execute("UPDATE memories SET content = 'something else' WHERE n = 1")
    with pytest.raises(StoreDamaged):
        run(shelf.open(), lambda backend: upkeep_of(backend).restore(tmp_path / "copy.db"))
    with closing(sqlite3.connect(tmp_path / "copy.db")) as raw, raw:
        raw.execute("PRAGMA user_version = 99")
    with pytest.raises(SchemaTooNew):
        run(shelf.open(), lambda backend: upkeep_of(backend).restore(tmp_path / "copy.db"))
    assert shelf.rows_of("one") == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["copy.db"]


def test_a_server_that_takes_no_writes_says_so(shelf: Shelf, tmp_path: Path) -> None:
    run(shelf.open(), fill)
    run(shelf.open(), lambda backend: upkeep_of(backend).backup(tmp_path / "copy.db"))
    role = shelf.server.new_role()
    shelf.sql(f"ALTER ROLE {role} SET default_transaction_read_only TO on; GRANT team TO {role}")
    from backstory.adapters.stores.postgres.store import open_postgres

    def open_read_only() -> Backend:
        return open_postgres(shelf.server.dsn(user=role), schema=shelf.schema, tenant="one")

    assert faults(open_read_only()) == []
    run(open_read_only(), lambda backend: upkeep_of(backend).backup(tmp_path / "again.db"))
    with pytest.raises(StoreUnavailable, match="read-only"):
        run(open_read_only(), lambda backend: upkeep_of(backend).restore(tmp_path / "copy.db"))


def test_text_that_postgres_cannot_hold_is_replaced_and_the_store_stays_whole(shelf: Shelf, tmp_path: Path) -> None:
    async def odd(backend: Backend) -> None:
        await add_memories(backend.memories, everywhere("before\0after"))
        part = Part(id=PartId("p1"), kind="text", text="one\0two")
        said = Message(id=MessageId("m1"), session=SessionId("s"), role=Role.USER, created_at=START, parts=(part,))
        await backend.conversations.put_messages([said])

    run(open_sqlite(tmp_path / "memory.db"), odd)
    run(open_sqlite(tmp_path / "memory.db"), lambda backend: upkeep_of(backend).backup(tmp_path / "copy.db"))
    run(shelf.open(), lambda backend: upkeep_of(backend).restore(tmp_path / "copy.db"))
    assert run(shelf.open(), contents) == ["before\ufffdafter"]
    assert [finding for finding in faults(shelf.open()) if finding.severity is Severity.DAMAGE] == []
    run(shelf.open(), lambda backend: upkeep_of(backend).rebuild())
    assert faults(shelf.open()) == []
