"""Schemas of Postgres with two tenants, and something of everything for a store.

Test modules take the fixtures by their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from backstory.domain.conversation import FrozenBlock, FrozenSnapshot, Message, Part, Role, ShownMemory
from backstory.domain.history import Action, Edit
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.domain.lifecycle import forget
from backstory.domain.memory import Memory
from backstory.domain.project import ProjectSighting
from backstory.ports.backend import Backend
from backstory.ports.index import Embedded
from backstory.testing.contracts.digest_store import piece, written
from backstory.testing.contracts.doubt_store import doubt_of
from backstory.testing.contracts.dream_store import FULL_STATE
from backstory.testing.contracts.summaries import summary_of
from backstory.testing.fakes import START, HashEmbedder, add_memories, sample_change
from backstory.testing.postgres import PostgresForTests, postgres_for_tests
from tests.integration.upkeeping import EVERYTHING, everywhere


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
        import psycopg

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


async def fill(backend: Backend) -> None:
    """Something of each kind."""
    first, second, third = await add_memories(
        backend.memories,
        everywhere("The cluster is called heron", tags=("cluster", "naming")),
        everywhere("Cut releases on Tuesdays"),
        everywhere("Invoices are kept seven years"),
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
    return sorted(memory.content for memory in await backend.memories.select(EVERYTHING, limit=100))
