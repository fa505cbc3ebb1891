"""ocpg's databases on the server for tests, one in each of its layouts, with a store of ours beside.

Test modules take the fixtures by their names.
"""
# ruff: noqa: E402 - where psycopg is missing, these tests are skipped before the modules that import it

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

psycopg = pytest.importorskip("psycopg")

from backstory.domain.history import Edit
from backstory.domain.memory import Memory
from backstory.testing.postgres import PostgresForTests, postgres_for_tests
from tests.integration.ocpg_databases import NEWEST, SAMPLES, Ocpg

OVEN = "The oven controller speaks Modbus on port 1502."
TIMETABLES = "Timetables are published every Thursday evening."
SAMPLE_FILES = ("ocpg-dump.sql", "legacy-first-schema.sql", "legacy-preference-schema.sql")
API, INFRA, MONOREPO = "/home/dev/acme/api", "/home/dev/globex/infra", "/srv/ci/monorepo"


@pytest.fixture(scope="module")
def server() -> PostgresForTests:
    return postgres_for_tests()


@pytest.fixture
def made(server: PostgresForTests) -> Iterator[Callable[[str], Ocpg]]:
    databases: list[Ocpg] = []

    def make(script: str = NEWEST) -> Ocpg:
        databases.append(Ocpg.made(server, script))
        return databases[-1]

    yield make
    for database in databases:
        database.drop()


@pytest.fixture
def ocpg(made: Callable[[str], Ocpg]) -> Ocpg:
    return made(NEWEST)


def sample(name: str) -> str:
    if not (SAMPLES / name).exists():
        pytest.skip(f"{name} of the sample stores is not here")
    return (SAMPLES / name).read_text(encoding="utf-8")


def contents(memories: list[Memory]) -> list[str]:
    return [memory.content for memory in memories]


def by_row(memories: list[Memory]) -> dict[str, Memory]:
    return {memory.provenance.origin_id or "": memory for memory in memories}


def edits(before: Memory, after: Memory) -> list[Edit]:
    return [Edit(before=before, after=after)]
