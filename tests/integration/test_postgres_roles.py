"""The roles of ``deploy/postgres-roles.sql``: what each may do, and that no tenant's rows reach another."""
# ruff: noqa: E402 - where psycopg is missing, these tests are skipped before the modules that import it

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

psycopg = pytest.importorskip("psycopg")

from backstory.adapters.stores.postgres.store import open_postgres
from backstory.domain.conversation import Message, Part, Role
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.memory import Memory
from backstory.errors import StoreError, StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.index import Embedded
from backstory.ports.models import EmbeddingModel
from backstory.testing.fakes import START, add_memories, sample_memory
from backstory.testing.postgres import PostgresForTests, postgres_for_tests, why_there_is_none

ROLES = Path(__file__).parents[2] / "deploy" / "postgres-roles.sql"
MODEL = EmbeddingModel(name="compass", dimension=2)


@pytest.fixture(scope="module")
def server() -> PostgresForTests:
    if (reason := why_there_is_none()) is not None:
        pytest.skip(reason)
    return postgres_for_tests()


@pytest.fixture
def database(server: PostgresForTests) -> Iterator[str]:
    """A database after the script has run in it, twice."""
    name = server.new_name("database")
    server.run(f"CREATE DATABASE {name}")
    for _ in range(2):
        server.run(ROLES.read_text(encoding="utf-8"), database=name)
    yield name
    server.run(f"DROP DATABASE {name} WITH (FORCE)")


def opened(server: PostgresForTests, database: str, *, user: str = "backstory_app", tenant: str = "ours") -> Backend:
    return open_postgres(server.dsn(user=user, database=database), tenant=tenant)


async def fill(backend: Backend, text: str) -> list[Memory]:
    """A memory with a vector, and a message."""
    (memory,) = await add_memories(backend.memories, sample_memory(text))
    embedded = Embedded(id=memory.id, revision=memory.revision, vector=(1.0, 0.0))
    assert await backend.vectors.put_vectors([embedded], model=MODEL) == 1
    part = Part(id=PartId("p1"), kind="text", text=text)
    told = Message(id=MessageId("m1"), session=SessionId("s1"), role=Role.USER, created_at=START, parts=(part,))
    await backend.conversations.put_messages([told])
    return [memory]


@pytest.fixture
def store(server: PostgresForTests, database: str) -> str:
    """A store of two tenants, made by the owner and filled by the other role."""

    async def make() -> None:
        owner = opened(server, database, user="backstory_owner")
        await owner.conversations.count_messages()
        await owner.memories.close()
        for tenant in ("ours", "theirs"):
            backend = opened(server, database, tenant=tenant)
            await fill(backend, f"what is {tenant}")
            await backend.memories.close()

    anyio.run(make)
    server.run(ROLES.read_text(encoding="utf-8"), database=database)
    return database


def tables(server: PostgresForTests, database: str) -> list[str]:
    """Every table of the store that holds tenants' rows, and has some."""
    named = server.run(
        "SELECT table_name FROM information_schema.columns WHERE table_schema = 'backstory' AND column_name = 'tenant'",
        database=database,
    )
    return [name for (name,) in named if server.run(f"SELECT 1 FROM backstory.{name} LIMIT 1", database=database)]


def test_no_role_reads_another_tenants_rows_even_without_a_condition(server: PostgresForTests, store: str) -> None:
    filled = tables(server, store)
    assert {"memories", "vectors", "embeddings", "messages", "parts", "passages", "passage_terms"} <= {*filled}
    for user in ("backstory_app", "backstory_owner"):
        with psycopg.connect(server.dsn(user=user, database=store)) as raw:
            for table in filled:
                assert raw.execute(f"SELECT tenant FROM backstory.{table}").fetchall() == []
            raw.execute("SET backstory.tenant TO 'ours'")
            for table in filled:
                assert {*raw.execute(f"SELECT tenant FROM backstory.{table}").fetchall()} == {("ours",)}
                assert raw.execute(f"DELETE FROM backstory.{table} WHERE tenant = 'theirs'").rowcount == 0


def test_no_role_writes_into_another_tenant(server: PostgresForTests, store: str) -> None:
    with psycopg.connect(server.dsn(user="backstory_app", database=store), autocommit=True) as raw:
        raw.execute("SET backstory.tenant TO 'ours'")
        for statement in (
            "INSERT INTO backstory.memory_terms (tenant, term, n, count, length) VALUES ('theirs', 'x', 1, 1, 1)",
            "UPDATE backstory.messages SET tenant = 'theirs'",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                raw.execute(statement)


def test_the_role_that_uses_the_tables_can_change_none(server: PostgresForTests, store: str) -> None:
    with psycopg.connect(server.dsn(user="backstory_app", database=store), autocommit=True) as raw:
        for statement in (
            "ALTER TABLE backstory.memories NO FORCE ROW LEVEL SECURITY",
            "ALTER TABLE backstory.memories DISABLE ROW LEVEL SECURITY",
            "DROP POLICY own_tenant ON backstory.memories",
            "TRUNCATE backstory.messages",
            "DROP TABLE backstory.messages CASCADE",
            "CREATE TABLE backstory.mine (n integer)",
            "CREATE SCHEMA mine",
            "UPDATE backstory.schema_version SET version = 0",
            "SET ROLE backstory_owner",
            "SET ROLE postgres",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                raw.execute(statement)


def test_a_store_that_is_not_there_yet_has_to_be_made_by_its_owner(server: PostgresForTests, database: str) -> None:
    async def check() -> None:
        backend = opened(server, database)
        with pytest.raises(StoreUnavailable, match="does not allow"):
            await backend.conversations.count_messages()
        await backend.memories.close()

    anyio.run(check)


def test_nobody_else_may_connect_or_act_with_the_owners_rights(server: PostgresForTests, store: str) -> None:
    stranger = server.new_role()
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        psycopg.connect(server.dsn(user=stranger, database=store))
    public = server.run(
        "SELECT p.proname FROM pg_proc p JOIN pg_namespace s ON s.oid = p.pronamespace, "
        "LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) granted "
        "WHERE s.nspname = 'backstory' AND granted.grantee = 0",
        database=store,
    )
    assert public == []


def test_the_role_that_uses_the_tables_can_have_its_vectors_indexed(server: PostgresForTests, store: str) -> None:
    with psycopg.connect(server.dsn(user="backstory_app", database=store), autocommit=True) as raw:
        raw.execute("SET search_path TO backstory, public")
        raw.execute("SET backstory.tenant TO 'ours'")
        few = raw.execute("SELECT index_embeddings('compass', 2, 1)").fetchone()
        assert few == (False,)  # a thousand at least, whatever is asked for
        raw.execute(
            "INSERT INTO vectors (n, model, dimension, vector) "
            "SELECT 1, 'm' || i, 2, '\\x003c0000' FROM generate_series(1, 2) i"
        )
        assert raw.execute("SELECT embedding::text FROM embeddings WHERE model = 'm1'").fetchone() == ("[1,0]",)
        raw.execute("SELECT unindex_embeddings('compass', 2)")


def test_a_role_that_row_security_spares_is_refused_by_the_script(server: PostgresForTests, database: str) -> None:
    server.run("ALTER ROLE backstory_app BYPASSRLS")
    try:
        with pytest.raises(psycopg.errors.RaiseException, match="exempt from row-level security"):
            server.run(ROLES.read_text(encoding="utf-8"), database=database)
    finally:
        server.run("ALTER ROLE backstory_app NOBYPASSRLS")


def test_an_administrator_who_is_no_superuser_can_run_the_script(server: PostgresForTests) -> None:
    admin, name = server.new_role(options="LOGIN CREATEROLE CREATEDB"), server.new_name("database")
    server.run("DROP ROLE IF EXISTS backstory_app, backstory_owner")
    server.run(f"CREATE DATABASE {name} OWNER {admin}")
    with psycopg.connect(server.dsn(user=admin, database=name), autocommit=True) as raw:
        for _ in range(2):
            raw.execute(ROLES.read_bytes())

    async def use() -> None:
        for user in ("backstory_owner", "backstory_app"):
            backend = opened(server, name, user=user)
            assert await backend.conversations.count_messages() == 0
            await backend.memories.close()

    anyio.run(use)
    server.run(f"DROP DATABASE {name} WITH (FORCE)")
    with pytest.raises(StoreError):
        anyio.run(opened(server, name).conversations.count_messages)
