"""Digests of sessions on real files and a real server: two processes, lost answers, backups, checks, older formats."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from backstory.adapters.stores.digest_rules import broken_links, mended
from backstory.adapters.stores.sqlite import migrations
from backstory.adapters.stores.sqlite.opening import APPLICATION_ID
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.digest import DigestUpdate, SessionDigest
from backstory.entrypoints.drive import drive
from backstory.errors import StoreDamaged
from backstory.ports.backend import Backend
from backstory.ports.upkeep import Invariant, Severity, StoreUpkeep
from backstory.testing.contracts.digest_store import FULL_PIECE, FULL_STATE, S1, S2, STATE, piece, pieces, written
from backstory.testing.postgres import postgres_for_tests, why_there_is_none
from tests.integration.postgres_proxy import Proxy
from tests.stores import STORES

ROOT = Path(__file__).parents[2]
needs_postgres = pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))
PARENT = piece(9, id="node1_001", level=1, children=("node0_001", "node0_002"), sources=())
LEAVES = tuple(piece(number, parent="node1_001", active=False) for number in (1, 2))
SPOILT = {
    "a parent is gone": ("DELETE FROM digest_pieces WHERE id = 'node1_001'", 2),
    "a child is gone": ("DELETE FROM digest_pieces WHERE id = 'node0_002'", 1),
    "a parent never was": ("UPDATE digest_pieces SET parent = 'node7_001' WHERE id = 'node0_003'", 1),
    "children never were": ('UPDATE digest_pieces SET children = \'["x","node0_001","y"]\' WHERE level = 1', 1),
}
"""What no command of ours does, and how many pieces lead nowhere then."""


def upkeep_of(backend: Backend) -> StoreUpkeep:
    assert backend.upkeep is not None
    return backend.upkeep


async def filled(backend: Backend) -> SessionDigest:
    """Two digests, of which one has leaves under a parent; gives that one."""
    await written(backend.digests, *LEAVES, piece(3), PARENT)
    await written(backend.digests, replace(piece(1), session=S2), session=S2)
    digest = await backend.digests.digest(S1)
    assert digest is not None
    return digest


# --- two processes ----------------------------------------------------------------------------------------------------

WRITER = """
import sys
import anyio
from dataclasses import replace
from backstory.domain.digest import DigestUpdate
from backstory.testing.contracts.digest_store import S1, STATE, piece
{opening}

async def work(writer, wanted):
    won = 0
    while won < wanted:
        digest = await backend.digests.digest(S1)
        revision = 0 if digest is None else digest.state.revision
        count = 0 if digest is None else len(digest.pieces)
        state = replace(STATE, revision=revision, current_task=writer)
        update = DigestUpdate(state=state, added=(piece(count, made_by=writer), piece(count + 1, made_by=writer)))
        won += await backend.digests.apply(update)
    await backend.memories.close()

anyio.run(work, sys.argv[1], 15)
"""


def race(opening: str) -> None:
    """Two processes that each win fifteen times, both with the ids that the other one would take next."""
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER.format(opening=opening), name], cwd=ROOT) for name in ("a", "b")
    ]
    assert [writer.wait(timeout=240) for writer in writers] == [0, 0]


def check_race(backend: Backend) -> None:
    digest = drive(backend.digests.digest(S1))
    assert digest is not None
    assert digest.state.revision == 30
    assert [each.start for each in digest.pieces] == list(range(60))
    winners = [each.made_by for each in digest.pieces]
    assert winners[0::2] == winners[1::2]
    assert (winners.count("a"), winners.count("b")) == (30, 30)


def test_of_two_processes_one_wins_each_time_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    opening = "from pathlib import Path\nfrom backstory.adapters.stores.sqlite.store import open_sqlite"
    race(f"{opening}\nbackend = open_sqlite(Path({str(path)!r}))")
    check_race(open_sqlite(path))


@needs_postgres
def test_of_two_processes_one_wins_each_time_on_a_server() -> None:
    from backstory.adapters.stores.postgres.store import open_postgres

    server = postgres_for_tests()
    tenant = server.new_name("tenant")
    where = f"{server.dsn()!r}, schema='contracts', tenant={tenant!r}"
    race(f"from backstory.adapters.stores.postgres.store import open_postgres\nbackend = open_postgres({where})")
    backend = open_postgres(server.dsn(), schema="contracts", tenant=tenant)
    check_race(backend)
    drive(backend.memories.close())


@needs_postgres
@pytest.mark.parametrize("forward", [False, True], ids=["lost before the server got it", "lost on the way back"])
def test_a_change_whose_answer_is_lost_is_there_once_and_told_as_written(forward: bool) -> None:
    from backstory.adapters.stores.postgres.store import open_postgres

    server = postgres_for_tests()
    proxy = Proxy(server.socket_folder)
    backend = open_postgres(
        server.dsn(hostaddr="127.0.0.1", port=str(proxy.port)), schema="contracts", tenant=server.new_name("tenant")
    )
    drive(written(backend.digests, piece(1)))
    for revision, update in enumerate(
        (
            DigestUpdate(state=replace(FULL_STATE, revision=1), added=(FULL_PIECE,)),
            DigestUpdate(state=replace(STATE, revision=2, current_task="a\x00b")),
        ),
        2,
    ):
        proxy.cut_at(b"COMMIT\x00", forward=forward)
        assert drive(backend.digests.apply(update))
        assert proxy.has_cut
        assert drive(backend.digests.revision(S1)) == revision
    assert drive(pieces(backend.digests)) == (piece(1), FULL_PIECE)
    proxy.cut_at(b"COMMIT\x00", forward=forward)
    assert drive(backend.digests.forget(S1))
    assert drive(backend.digests.digest(S1)) is None
    drive(backend.memories.close())
    proxy.close()


# --- upkeep -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", "git", "postgres"])
def test_a_backup_holds_digests_and_a_restore_brings_them_back(kind: str, tmp_path: Path) -> None:
    async def work() -> None:
        store = STORES[kind](tmp_path / "from")
        before = await filled(store)
        whole = replace(FULL_PIECE, id="whole", parent=None, children=())
        assert await store.digests.apply(DigestUpdate(state=replace(FULL_STATE, revision=1), added=(whole,)))
        kept = await store.digests.digest(S1)
        await upkeep_of(store).backup(tmp_path / "backup.db")
        await written(store.digests, piece(5))
        await store.digests.forget(S2)
        await upkeep_of(store).restore(tmp_path / "backup.db")
        assert await store.digests.digest(S1) == kept != before
        assert await store.digests.revision(S2) == 1
        assert await upkeep_of(store).verify(full=True) == []
        await store.memories.close()

    (tmp_path / "from").mkdir()
    anyio.run(work)


@pytest.mark.parametrize("target", ["sqlite", "git", "postgres"])
@pytest.mark.parametrize("source", ["sqlite", "postgres"])
def test_any_store_takes_the_digests_of_another_kind_over(source: str, target: str, tmp_path: Path) -> None:
    async def work() -> None:
        store, other = (STORES[kind](tmp_path / name) for kind, name in ((source, "from"), (target, "to")))
        kept = await filled(store)
        await upkeep_of(store).backup(tmp_path / "backup.db")
        await written(other.digests, piece(7), due=True)
        await upkeep_of(other).restore(tmp_path / "backup.db")
        assert await other.digests.digest(S1) == kept
        assert await upkeep_of(other).verify(full=True) == []
        for backend in (store, other):
            await backend.memories.close()

    for name in ("from", "to"):
        (tmp_path / name).mkdir()
    anyio.run(work)


@contextmanager
def spoilable(kind: str, folder: Path) -> Iterator[tuple[Backend, Callable[[str], None]]]:
    """A store, and how to do in it what no command of ours does."""
    if kind == "postgres":
        from backstory.adapters.stores.postgres.store import open_postgres

        server = postgres_for_tests()
        schema = server.new_name()
        backend = open_postgres(server.dsn(), schema=schema)
        yield backend, lambda statement: void(server.run(f"SET search_path TO {schema}; {statement}"))
        drive(backend.memories.close())
        server.run(f"DROP SCHEMA {schema} CASCADE")
        return
    backend = STORES[kind](folder)

    def spoil(statement: str) -> None:
        drive(backend.memories.close())
        [path] = folder.glob("*.db")
        with closing(sqlite3.connect(path, isolation_level=None)) as raw:
            raw.execute(statement)

    yield backend, spoil
    drive(backend.memories.close())


def void(rows: object) -> None:
    """Nobody asks for them."""


KINDS = ["sqlite", "git", pytest.param("postgres", marks=needs_postgres)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("statement", "count"), SPOILT.values(), ids=list(SPOILT))
def test_a_piece_that_leads_nowhere_is_told_and_put_right_and_none_is_dropped(
    kind: str, statement: str, count: int, tmp_path: Path
) -> None:
    with spoilable(kind, tmp_path) as (backend, spoil):
        drive(filled(backend))
        spoil(statement)
        found = drive(upkeep_of(backend).verify(full=True))
        assert [(each.invariant, each.severity) for each in found] == [
            (Invariant.DIGESTS, Severity.OUT_OF_STEP)
        ] * count
        assert all("session ses-1" in each.where for each in found)
        before = drive(pieces(backend.digests))
        assert drive(upkeep_of(backend).rebuild()).corrected == count
        after = drive(pieces(backend.digests))
        assert [(each.id, each.text) for each in after] == [(each.id, each.text) for each in before]
        assert drive(backend.digests.revision(S1)) == 2  # who shows them looks anew
        assert drive(upkeep_of(backend).verify(full=True)) == []
        assert drive(upkeep_of(backend).rebuild()).corrected == 0
        assert drive(backend.digests.revision(S1)) == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE digests SET strategy = 'poem' WHERE session = 'ses-1'",
        "UPDATE digests SET shown = '{' WHERE session = 'ses-1'",
        "UPDATE digest_pieces SET children = '[1]' WHERE session = 'ses-1'",
        "UPDATE digest_pieces SET created_us = 999999999999999999 WHERE session = 'ses-1'",
    ],
)
def test_a_digest_that_cannot_be_read_is_told_and_can_be_forgotten(kind: str, statement: str, tmp_path: Path) -> None:
    with spoilable(kind, tmp_path) as (backend, spoil):
        drive(filled(backend))
        spoil(statement)
        [found] = drive(upkeep_of(backend).verify(full=True))
        assert (found.invariant, found.severity) == (Invariant.DIGESTS, Severity.OUT_OF_STEP)
        assert found.where == "session ses-1"
        with pytest.raises(StoreDamaged, match="ses-1"):
            drive(backend.digests.digest(S1))
        drive(upkeep_of(backend).rebuild())
        assert len(drive(pieces(backend.digests, S2))) == 1
        assert drive(backend.digests.forget(S1))
        assert drive(upkeep_of(backend).verify(full=True)) == []


def test_a_piece_is_put_right_as_if_its_parent_had_been_dropped() -> None:
    digest = SessionDigest(state=STATE, pieces=(LEAVES[0], piece(3, parent="gone"), PARENT))
    assert broken_links(digest) == [
        "piece node0_003 of session ses-1: its parent gone is not there",
        "piece node1_001 of session ses-1: its child node0_002 is not there",
    ]
    assert mended(digest) == [piece(3), replace(PARENT, children=("node0_001",))]
    both = replace(PARENT, children=("x", "node0_001", "y"), parent="z", active=False)
    assert broken_links(replace(digest, pieces=(LEAVES[0], both))) == [
        "piece node1_001 of session ses-1: its parent z is not there; its children x, y are not there"
    ]


# --- older formats ----------------------------------------------------------------------------------------------------


def test_a_store_of_the_format_before_gets_no_digests_and_room_for_them(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as raw:
        for version, script in migrations.scripts():
            if version <= 8:
                raw.executescript(script.read_text(encoding="utf-8"))
        raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        raw.execute("PRAGMA user_version = 8")
        raw.commit()
    backend = open_sqlite(path)
    assert drive(backend.digests.digest(S1)) is None
    drive(filled(backend))
    assert len(drive(pieces(backend.digests))) == 4
    assert drive(upkeep_of(backend).verify(full=True)) == []
    drive(backend.memories.close())
