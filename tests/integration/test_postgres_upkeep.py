"""Postgres stores with real faults: each is found, named, and mended or restored; other tenants never notice."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.conversation import FrozenBlock, FrozenSnapshot, Message, Part, Role, ShownMemory
from backstory.domain.history import Action, Edit
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.domain.lifecycle import forget
from backstory.domain.memory import Memory, Visibility
from backstory.domain.project import ProjectSighting
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.errors import SchemaTooNew, StoreDamaged, StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.index import Embedded
from backstory.ports.upkeep import Finding, Invariant, Restored, Severity, StoreUpkeep
from backstory.testing.contracts.digest_store import piece, written
from backstory.testing.contracts.doubt_store import doubt_of
from backstory.testing.contracts.dream_store import FULL_STATE
from backstory.testing.contracts.summaries import summary_of
from backstory.testing.fakes import START, HashEmbedder, add_memories, sample_change, sample_memory
from backstory.testing.postgres import PostgresForTests, postgres_for_tests, why_there_is_none

pytestmark = pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))
psycopg = pytest.importorskip("psycopg")

_ALL = Selection(
    viewer=Viewer(project=None, audience=Audience.PERSON, all_projects=True), now=START, states=EVERY_STATE
)


@dataclass
class Shelf:
    """A schema of its own with two tenants, of which the second is a bystander."""

    server: PostgresForTests
    schema: str

    def open(self, tenant: str = "one", **options: Any) -> Backend:  # Any: options of open_postgres
        from backstory.adapters.stores.postgres.store import open_postgres

        return open_postgres(self.server.dsn(), schema=self.schema, tenant=tenant, **options)

    def sql(self, statement: str, *, tenant: str = "one") -> list[tuple[Any, ...]]:
        """Behind the store's back, as a superuser whom neither constraints nor triggers hold."""
        with psycopg.connect(self.server.dsn(user="postgres"), autocommit=True) as raw:
            raw.execute(
                f"SET search_path TO {self.schema}, public; SET backstory.tenant TO '{tenant}';"
                " SET session_replication_role TO replica"
            )
            cursor = raw.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def rows_of(self, tenant: str) -> dict[str, list[Any]]:
        """All that the tables hold of a tenant."""
        tables = self.sql(
            "SELECT DISTINCT table_name FROM information_schema.columns "
            f"WHERE table_schema = '{self.schema}' AND column_name = 'tenant'"
        )
        return {
            table: sorted(map(repr, self.sql(f"SELECT * FROM {table} WHERE tenant = '{tenant}'")))
            for (table,) in tables
        }


@pytest.fixture(scope="module")
def server() -> PostgresForTests:
    return postgres_for_tests()


@pytest.fixture
def shelf(server: PostgresForTests) -> Iterator[Shelf]:
    made = Shelf(server=server, schema=server.new_name())
    yield made
    server.run(f"DROP SCHEMA IF EXISTS {made.schema} CASCADE")


def _upkeep(backend: Backend) -> StoreUpkeep:
    assert backend.upkeep is not None
    return backend.upkeep


def run(backend: Backend, work: Callable[[Backend], Any]) -> Any:  # Any: whatever the work gives
    async def all_of_it() -> Any:
        try:
            return await work(backend)
        finally:
            await backend.memories.close()

    return anyio.run(all_of_it)


def verify(backend: Backend, *, full: bool = True) -> list[Finding]:
    found: list[Finding] = run(backend, lambda opened: _upkeep(opened).verify(full=full))
    return [finding for finding in found if finding.severity is not Severity.NOTE]


def broken(backend: Backend) -> set[Invariant]:
    return {finding.invariant for finding in verify(backend)}


def _memory(content: str, **values: Any) -> Memory:
    return sample_memory(content, visibility=Visibility.GLOBAL, project=None, **values)


async def fill(backend: Backend) -> None:
    """Something of each kind."""
    first, second, third = await add_memories(
        backend.memories,
        _memory("The cluster is called heron", tags=("cluster", "naming")),
        _memory("Cut releases on Tuesdays"),
        _memory("Invoices are kept seven years"),
    )
    after = replace(second, content="Cut releases on Fridays")
    changed = await backend.memories.commit(sample_change(10, Edit(before=second, after=after), action=Action.UPDATE))
    gone = forget(changed.edits[0].after, now=START, reason="no more releases")
    undone = await backend.memories.commit(
        sample_change(11, Edit(before=changed.edits[0].after, after=gone), action=Action.FORGET)
    )
    await backend.memories.commit(
        replace(sample_change(5, Edit(before=undone.edits[0].after, after=after), action=Action.UNDO), undoes=undone.id)
    )
    await _embed(backend, [first, third])
    await backend.projects.identify(
        ProjectSighting(name="orchard", root="/work/orchard", aliases=("dir:/work/orchard",)), now=START,
        new_id=ProjectId("p-orchard"),
    )  # fmt: skip
    await _say(backend, first)


async def _embed(backend: Backend, memories: Sequence[Memory]) -> None:
    embedder = HashEmbedder()
    vectors = await embedder.embed([memory.content for memory in memories])
    ready = [
        Embedded(id=memory.id, revision=memory.revision, vector=vector)
        for memory, vector in zip(memories, vectors, strict=True)
        if vector is not None
    ]
    await backend.vectors.put_vectors(ready, model=await embedder.model())


async def _say(backend: Backend, shown: Memory) -> None:
    session = SessionId("ses-1")
    for number, text in enumerate(("what is the cluster called", "it is called heron")):
        part = Part(id=PartId(f"p{number}"), kind="text", text=text)
        said = Message(id=MessageId(f"m{number}"), session=session, role=Role.USER, created_at=START, parts=(part,))
        await backend.conversations.put_messages([said])
    item = ShownMemory(memory=shown.id, n=shown.n, score=0.5, reason="words")
    await backend.conversations.freeze_block(
        FrozenBlock(
            message=MessageId("m0"), session=session, text="heron", shown=(item,), silent_because=None, created_at=START
        )
    )
    await backend.conversations.freeze_snapshot(
        FrozenSnapshot(session=session, text="heron", shown=(shown.id,), created_at=START)
    )
    await written(backend.digests, piece(1), session=session)
    await backend.dreams.apply(replace(FULL_STATE, session=session))
    await backend.dreams.put_summary(summary_of(shown, project=None))
    await backend.doubts.replace([shown.id], [doubt_of(shown)])


async def contents(backend: Backend) -> list[str]:
    return sorted(memory.content for memory in await backend.memories.select(_ALL, limit=100))


def test_a_store_with_something_of_each_kind_is_whole(shelf: Shelf) -> None:
    run(shelf.open(), fill)
    assert verify(shelf.open()) == []
    assert verify(shelf.open(), full=False) == []


DERIVED = {
    "a word of a memory is gone": ("DELETE FROM memory_terms WHERE term = 'heron'", Invariant.WORDS),
    "a word is counted wrongly": ("UPDATE term_frequencies SET documents = 9 WHERE term = 'heron'", Invariant.WORDS),
    "the sums are wrong": ("UPDATE tenants SET tokens = tokens + 1", Invariant.WORDS),
    "a word belongs to nothing": (
        "INSERT INTO memory_terms (term, n, count, length) VALUES ('stray', 99, 1, 1)", Invariant.WORDS
    ),
    "a vector is cut off": ("UPDATE vectors SET vector = substring(vector FOR 3) WHERE n = 1", Invariant.VECTORS),
    "pgvector has no vector": ("DELETE FROM embeddings WHERE n = 1", Invariant.VECTORS),
    "pgvector has another vector": (
        "UPDATE embeddings e SET embedding = o.embedding FROM embeddings o WHERE e.n = 1 AND o.n = 3", Invariant.VECTORS
    ),
    "a text is found under another": ("UPDATE memories SET normalised = 'x' WHERE n = 1", Invariant.LOOKUPS),
    "a digest is wrong": ("UPDATE memories SET content_key = 'x' WHERE n = 1", Invariant.LOOKUPS),
    "a passage is gone": ("DELETE FROM passages WHERE part = 'p0'", Invariant.PASSAGES),
    "a word of a passage is gone": ("DELETE FROM passage_terms WHERE term = 'heron'", Invariant.PASSAGES),
    "the passages are summed wrongly": ("UPDATE passage_statistics SET documents = 7", Invariant.PASSAGES),
    "a showing is not noted": ("DELETE FROM recall_block_memories", Invariant.SHOWINGS),
    "a piece of a digest has no parent": ("UPDATE digest_pieces SET parent = 'node9_999'", Invariant.DIGESTS),
    "a state cannot be read": ("UPDATE dreams SET updated_us = 999999999999999999", Invariant.DREAMS),
    "a summary has a source that is not there": (
        "INSERT INTO summary_sources (project, position, memory) VALUES ('', 1, 'none')", Invariant.DREAMS
    ),
    "a doubt cannot be read": ("UPDATE doubts SET since_us = 999999999999999999", Invariant.DOUBTS),
}  # fmt: skip


@pytest.mark.parametrize(("statement", "invariant"), DERIVED.values(), ids=list(DERIVED))
def test_what_is_derived_is_found_and_made_anew(shelf: Shelf, statement: str, invariant: Invariant) -> None:
    run(shelf.open(), fill)
    shelf.sql(statement)
    found = verify(shelf.open())
    assert {finding.invariant for finding in found} == {invariant}
    assert {finding.severity for finding in found} == {Severity.OUT_OF_STEP}
    assert run(shelf.open(), lambda backend: _upkeep(backend).rebuild()).corrected + (invariant is Invariant.PASSAGES)
    assert verify(shelf.open()) == []
    assert run(shelf.open(), lambda backend: _upkeep(backend).rebuild()).corrected == 0


DECISIONS = {
    "a memory was altered": ("UPDATE memories SET content = 'The cluster is called ibis' WHERE n = 1",
                             Invariant.HISTORY),
    "a memory cannot be read": ("UPDATE memories SET kind = 'nonsense' WHERE n = 1", Invariant.READABLE),
    "a memory lost its history": ("DELETE FROM change_edits WHERE n = 1", Invariant.HISTORY),
    "a change cannot be read": ("UPDATE changes SET author = 'nobody'", Invariant.HISTORY),
    "a memory is gone": ("DELETE FROM memories WHERE n = 1", Invariant.REFERENCES),
    "a number would be given again": ("UPDATE tenants SET last_n = 1", Invariant.NUMBERS),
    "a message cannot be read": ("UPDATE messages SET role = 'ghost'", Invariant.EVIDENCE),
    "a block cannot be read": ("UPDATE recall_blocks SET shown = '[{\"memory\": 1}]'", Invariant.EVIDENCE),
}  # fmt: skip


@pytest.mark.parametrize(("statement", "invariant"), DECISIONS.values(), ids=list(DECISIONS))
def test_what_cannot_be_made_anew_is_damage(shelf: Shelf, statement: str, invariant: Invariant) -> None:
    run(shelf.open(), fill)
    shelf.sql(statement)
    damage = [finding for finding in verify(shelf.open()) if finding.severity is Severity.DAMAGE]
    assert invariant in {finding.invariant for finding in damage}
    assert all(finding.way_out for finding in damage)


def test_a_frozen_text_that_shows_what_was_hidden_is_withdrawn(shelf: Shelf) -> None:
    run(shelf.open(), fill)
    shelf.sql("UPDATE memories SET sensitivity = 'private' WHERE n = 1")
    assert Invariant.WITHHELD in broken(shelf.open())
    run(shelf.open(), lambda backend: _upkeep(backend).rebuild())
    assert Invariant.WITHHELD not in broken(shelf.open())


def test_a_trigger_that_is_switched_off_and_a_table_that_is_gone_are_told(shelf: Shelf) -> None:
    run(shelf.open(), fill)
    shelf.sql("ALTER TABLE vectors DISABLE TRIGGER vectors_copied")
    assert broken(shelf.open()) == {Invariant.WHOLE}
    shelf.sql("ALTER TABLE vectors ENABLE TRIGGER vectors_copied; DROP TABLE snapshots")
    assert broken(shelf.open()) == {Invariant.WHOLE}


def test_checking_makes_no_store_and_changes_no_format(shelf: Shelf) -> None:
    with pytest.raises(StoreUnavailable, match="no store"):
        verify(shelf.open())
    assert shelf.sql(f"SELECT 1 FROM pg_namespace WHERE nspname = '{shelf.schema}'") == []
    run(shelf.open(), fill)
    shelf.sql("UPDATE schema_version SET version = 99 WHERE version = 1")
    assert [finding.invariant for finding in verify(shelf.open())] == [Invariant.FORMAT]


def test_a_memory_that_cannot_be_read_is_salvaged_from_its_history(shelf: Shelf) -> None:
    run(shelf.open(), fill)
    shelf.sql("UPDATE memories SET kind = 'nonsense' WHERE n = 1; DELETE FROM memories WHERE n = 3")
    saved = run(shelf.open(), lambda backend: _upkeep(backend).salvage())
    assert "The cluster is called heron" in {memory.content for memory in saved.memories}
    assert len(saved.memories) == 3
    assert [message.parts[0].text for message in saved.messages] == ["what is the cluster called", "it is called heron"]
    assert len(saved.lost) == 2


def test_a_backup_is_a_whole_sqlite_store_with_everything(shelf: Shelf, tmp_path: Path) -> None:
    run(shelf.open(), fill)
    run(shelf.open(), lambda backend: _upkeep(backend).backup(tmp_path / "copy.db"))
    copy = open_sqlite(tmp_path / "copy.db")
    assert verify(copy) == []

    async def look(backend: Backend) -> Any:  # Any: a tuple of everything
        changes = await backend.memories.history(limit=100)
        return (
            await backend.memories.select(_ALL, limit=100), changes, await backend.projects.projects(),
            await backend.projects.aliases(), await backend.vectors.vector_counts(),
            await backend.conversations.messages(SessionId("ses-1")),
            await backend.conversations.recent_blocks(), await backend.conversations.snapshot(SessionId("ses-1")),
        )  # fmt: skip

    assert run(open_sqlite(tmp_path / "copy.db"), look) == run(shelf.open(), look)


def test_a_store_moves_to_sqlite_and_back_with_numbers_and_history(shelf: Shelf, tmp_path: Path) -> None:
    run(open_sqlite(tmp_path / "memory.db"), fill)
    run(open_sqlite(tmp_path / "memory.db"), lambda backend: _upkeep(backend).backup(tmp_path / "out.db"))
    restored: Restored = run(shelf.open(create=False), lambda backend: _upkeep(backend).restore(tmp_path / "out.db"))
    assert (restored.memories, restored.messages, restored.kept) == (3, 2, None)
    assert verify(shelf.open()) == []

    async def look(backend: Backend) -> Any:  # Any: a tuple of everything
        return await backend.memories.select(_ALL, limit=100), await backend.memories.history(limit=100)

    assert run(shelf.open(), look) == run(open_sqlite(tmp_path / "memory.db"), look)
    run(shelf.open(), lambda backend: _upkeep(backend).backup(tmp_path / "back.db"))
    run(open_sqlite(tmp_path / "other.db"), lambda backend: _upkeep(backend).restore(tmp_path / "back.db"))
    assert run(open_sqlite(tmp_path / "other.db"), look) == run(shelf.open(), look)


def test_restoring_keeps_the_replaced_store_and_leaves_other_tenants_alone(shelf: Shelf, tmp_path: Path) -> None:
    run(shelf.open("one"), fill)
    run(shelf.open("two"), fill)
    run(shelf.open("one"), lambda backend: _upkeep(backend).backup(tmp_path / "copy.db"))
    run(shelf.open("one"), lambda backend: add_memories(backend.memories, _memory("later"), first_change=70))
    bystander = shelf.rows_of("two")
    restored: Restored = run(shelf.open("one"), lambda backend: _upkeep(backend).restore(tmp_path / "copy.db"))
    assert shelf.rows_of("two") == bystander
    assert "later" not in run(shelf.open("one"), contents)
    assert verify(shelf.open("one")) == []
    assert restored.kept is not None
    assert restored.kept.parent == tmp_path
    assert restored.kept.stat().st_mode & 0o077 == 0
    assert "later" in run(open_sqlite(restored.kept), contents)


def test_a_process_that_is_open_goes_on_with_the_restored_store(shelf: Shelf, tmp_path: Path) -> None:
    async def both() -> None:
        one, other = shelf.open(), shelf.open()
        await fill(one)
        await _upkeep(one).backup(tmp_path / "copy.db")
        [later] = await add_memories(other.memories, _memory("later"), first_change=70)
        embedder = HashEmbedder()
        model = await embedder.model()
        vector = (await embedder.embed(["The cluster is called heron"]))[0]
        assert vector is not None
        assert await other.vectors.search_vectors(vector, _ALL, model=model, limit=5)
        await _upkeep(one).restore(tmp_path / "copy.db")
        assert await other.memories.by_number(later.n) is None
        hits = await other.vectors.search_vectors(vector, _ALL, model=model, limit=5)
        assert len(hits) == 2
        [newest] = await add_memories(other.memories, _memory("newest"), first_change=71)
        assert newest.n > later.n
        assert len((await other.text.search_text(["heron"], _ALL, limit=5)).hits) == 1
        await one.memories.close()
        await other.memories.close()

    anyio.run(both)


def test_what_others_write_while_a_backup_is_restored_is_in_one_of_the_two(shelf: Shelf, tmp_path: Path) -> None:
    told: list[str] = []

    async def write(backend: Backend, number: int) -> None:
        for step in range(12):
            content = f"note {step} of writer {number}"
            await add_memories(backend.memories, _memory(content), first_change=100 + 20 * number + step)
            told.append(content)

    async def both() -> Restored:
        backend, others = shelf.open(), [shelf.open() for _ in range(3)]
        await fill(backend)
        await _upkeep(backend).backup(tmp_path / "copy.db")
        async with anyio.create_task_group() as tasks:
            for number, other in enumerate(others):
                tasks.start_soon(write, other, number)
            await anyio.sleep(0.05)
            restored = await _upkeep(backend).restore(tmp_path / "copy.db")
        for opened in (backend, *others):
            await opened.memories.close()
        return restored

    restored = anyio.run(both)
    assert restored.kept is not None
    found = {*run(shelf.open(), contents), *run(open_sqlite(restored.kept), contents)}
    assert set(told) <= found
    assert verify(shelf.open()) == []


def test_a_damaged_or_newer_backup_changes_nothing(shelf: Shelf, tmp_path: Path) -> None:
    run(shelf.open(), fill)
    run(shelf.open(), lambda backend: _upkeep(backend).backup(tmp_path / "copy.db"))
    before = shelf.rows_of("one")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as raw, raw:
        raw.execute("UPDATE memories SET content = 'something else' WHERE n = 1")
    with pytest.raises(StoreDamaged):
        run(shelf.open(), lambda backend: _upkeep(backend).restore(tmp_path / "copy.db"))
    with closing(sqlite3.connect(tmp_path / "copy.db")) as raw, raw:
        raw.execute("PRAGMA user_version = 99")
    with pytest.raises(SchemaTooNew):
        run(shelf.open(), lambda backend: _upkeep(backend).restore(tmp_path / "copy.db"))
    assert shelf.rows_of("one") == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["copy.db"]


def test_a_server_that_takes_no_writes_says_so(shelf: Shelf, tmp_path: Path) -> None:
    run(shelf.open(), fill)
    run(shelf.open(), lambda backend: _upkeep(backend).backup(tmp_path / "copy.db"))
    role = shelf.server.new_role()
    shelf.sql(f"ALTER ROLE {role} SET default_transaction_read_only TO on; GRANT team TO {role}")
    from backstory.adapters.stores.postgres.store import open_postgres

    def open_read_only() -> Backend:
        return open_postgres(shelf.server.dsn(user=role), schema=shelf.schema, tenant="one")

    assert verify(open_read_only()) == []
    run(open_read_only(), lambda backend: _upkeep(backend).backup(tmp_path / "again.db"))
    with pytest.raises(StoreUnavailable, match="read-only"):
        run(open_read_only(), lambda backend: _upkeep(backend).restore(tmp_path / "copy.db"))


def test_text_that_postgres_cannot_hold_is_replaced_and_the_store_stays_whole(shelf: Shelf, tmp_path: Path) -> None:
    async def odd(backend: Backend) -> None:
        await add_memories(backend.memories, _memory("before\0after"))
        part = Part(id=PartId("p1"), kind="text", text="one\0two")
        said = Message(id=MessageId("m1"), session=SessionId("s"), role=Role.USER, created_at=START, parts=(part,))
        await backend.conversations.put_messages([said])

    run(open_sqlite(tmp_path / "memory.db"), odd)
    run(open_sqlite(tmp_path / "memory.db"), lambda backend: _upkeep(backend).backup(tmp_path / "copy.db"))
    run(shelf.open(), lambda backend: _upkeep(backend).restore(tmp_path / "copy.db"))
    assert run(shelf.open(), contents) == ["before\ufffdafter"]
    assert [finding for finding in verify(shelf.open()) if finding.severity is Severity.DAMAGE] == []
    run(shelf.open(), lambda backend: _upkeep(backend).rebuild())
    assert verify(shelf.open()) == []
