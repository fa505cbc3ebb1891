"""Whose rows are seen and written in a database that several tenants share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from backstory.errors import StoreUnavailable
from backstory.ports.backend import Backend
from backstory.testing.postgres import PostgresForTests, why_there_is_none
from tests.integration.postgres_stores import HERE, add, count, failure, run
from tests.integration.postgres_stores import open_store as open_store
from tests.integration.postgres_stores import server as server

pytestmark = pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))


def test_a_query_without_any_condition_sees_only_its_own_tenant(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    import psycopg

    schema = server.new_name()
    for tenant, content in (("red", "apples are red"), ("green", "pears are green")):
        add(open_store(schema=schema, tenant=tenant), content)
    with psycopg.connect(server.dsn()) as raw:
        for tenant, content in (("red", "apples are red"), ("green", "pears are green")):
            raw.execute("SELECT set_config('backstory.tenant', %s, true)", (tenant,))
            assert raw.execute(f"SELECT content FROM {schema}.memories").fetchall() == [(content,)]
            assert raw.execute(f"UPDATE {schema}.memories SET weight = 1").rowcount == 1
        raw.execute("SELECT set_config('backstory.tenant', '', true)")
        assert raw.execute(f"SELECT content FROM {schema}.memories").fetchall() == []


def test_no_row_can_be_written_for_another_tenant(server: PostgresForTests, open_store: Callable[..., Backend]) -> None:
    import psycopg

    schema = server.new_name()
    add(open_store(schema=schema, tenant="red"), "apples are red")
    with psycopg.connect(server.dsn()) as raw:
        raw.execute("SELECT set_config('backstory.tenant', 'red', true)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            raw.execute(f"INSERT INTO {schema}.memory_tags (tenant, n, position, tag) VALUES ('green', 1, 0, 'x')")


def test_every_table_with_a_tenant_is_protected_even_from_its_owner(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    schema = server.new_name()
    add(open_store(schema=schema), "anything")
    protected = server.run(
        "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity FROM pg_class c JOIN pg_attribute a"
        f" ON a.attrelid = c.oid WHERE c.relnamespace = '{schema}'::regnamespace AND c.relkind = 'r'"
        " AND a.attname = 'tenant'"
    )
    assert {name for name, _ in protected} >= {"memories", "changes", "vectors", "messages", "passages", "projects"}
    assert all(is_protected for _, is_protected in protected)
    unprotected = server.run(
        f"SELECT c.relname FROM pg_class c WHERE c.relnamespace = '{schema}'::regnamespace AND c.relkind = 'r'"
        " AND NOT c.relrowsecurity ORDER BY 1"
    )
    assert unprotected == [("schema_options",), ("schema_version",)]


def test_a_superuser_whom_row_security_spares_sees_one_tenant_too(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    schema, dsn = server.new_name(), server.dsn(user="postgres")
    red, green = (open_store(dsn, schema=schema, tenant=tenant) for tenant in ("red", "green"))
    apple, pear = add(red, "the fruit is red", tags=("a",)), add(green, "the fruit is green", tags=("b",))
    assert (apple.n, pear.n) == (1, 1)
    for backend, memory in ((red, apple), (green, pear)):
        assert run(backend.memories.by_number, 1) == memory
        assert run(lambda backend=backend: backend.memories.select(HERE, limit=9)) == [memory]
        assert run(lambda backend=backend: backend.memories.tag_counts(HERE, limit=9)) == [(memory.tags[0], 1)]
        search = run(lambda backend=backend: backend.text.search_text(["fruit"], HERE, limit=9))
        assert ([hit.id for hit in search.hits], search.documents) == ([memory.id], 1)
        assert len(run(backend.memories.history)) == 1


def test_a_role_that_owns_nothing_works_with_a_few_grants(
    server: PostgresForTests, open_store: Callable[..., Backend]
) -> None:
    schema, role = server.new_name(), server.new_role()
    add(open_store(schema=schema), "made by the owner")
    server.run(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    guest = open_store(server.dsn(user=role), schema=schema)
    refused = failure(guest.memories.count, HERE)
    assert isinstance(refused, StoreUnavailable)
    assert "rights" in str(refused)
    server.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}")
    add(guest, "made by a guest", n=2)
    assert count(guest) == 2
