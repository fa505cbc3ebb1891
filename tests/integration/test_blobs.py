"""Blobs where they are kept: damage is told, what belongs to nothing is mended, an older file gets its tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from backstory.adapters.stores.sqlite import migrations
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.adapters.stores.sqlite.verified_evidence import sampled_blobs
from backstory.domain.blob import make_blob
from backstory.domain.conversation import Message, Part, Role
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.entrypoints.drive import drive
from backstory.ports.backend import Backend
from backstory.ports.upkeep import Finding, Invariant, Severity
from backstory.testing.fakes import START
from backstory.testing.postgres import postgres_for_tests, why_there_is_none

LOG = make_blob(b"compiled 31 modules\n" * 3000)


def told() -> Message:
    part = Part(id=PartId("p1"), kind="tool", tool="bash", text="compiled …", blobs=(LOG.ref("text/plain"),))
    return Message(id=MessageId("m1"), session=SessionId("s"), role=Role.ASSISTANT, created_at=START, parts=(part,))


@contextmanager
def store(path: Path) -> Iterator[Backend]:
    backend = open_sqlite(path)
    drive(backend.conversations.put_messages([told()], blobs=[LOG]))
    yield backend
    drive(backend.memories.close())


def spoil(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        for statement in statements:
            raw.execute(statement)


def findings(backend: Backend, *, full: bool = False) -> list[Finding]:
    assert backend.upkeep is not None
    return drive(backend.upkeep.verify(full=full))


DAMAGE = {
    "another content": "UPDATE blobs SET packed = zeroblob(20)",
    "another size": "UPDATE blobs SET size = size + 1",
    "an unknown packing": "UPDATE blobs SET packing = 'cardboard'",
    "nothing of it left": "DELETE FROM blobs",
}


@pytest.mark.parametrize("statement", DAMAGE.values(), ids=list(DAMAGE))
def test_a_content_that_cannot_be_read_is_damage_and_the_rest_is_salvaged(tmp_path: Path, statement: str) -> None:
    with store(tmp_path / "memory.db") as backend:
        spoil(tmp_path / "memory.db", statement)
        (found,) = findings(backend)
        assert (found.invariant, found.severity) == (Invariant.EVIDENCE, Severity.DAMAGE)
        assert LOG.hash in f"{found.where} {found.what}"
        assert backend.upkeep is not None
        saved = drive(backend.upkeep.salvage())
        assert [message.parts[0].text for message in saved.messages] == ["compiled …"]
        assert list(saved.blobs) == []


def test_the_oldest_of_more_than_the_latest_contents_is_looked_at_too(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    with store(path) as backend:
        for n in range(30):
            blob = make_blob(b"build %d " % n * 3000)
            part = Part(id=PartId(f"part-{n}"), kind="tool", tool="bash", blobs=(blob.ref("text/plain"),))
            drive(backend.conversations.put_part(part, message=MessageId("m1"), session=SessionId("s"), blobs=[blob]))
        spoil(path, f"UPDATE blobs SET packed = zeroblob(20) WHERE hash = '{LOG.hash}'")
        assert [found.where for found in findings(backend)] == [f"blob {LOG.hash}"]


def test_of_more_contents_than_can_be_read_the_newest_are_and_some_of_all_ages() -> None:
    sizes = [(n, 10) for n in range(100)]  # from the newest on
    assert sampled_blobs(sizes, most_bytes=1000) == list(range(100))
    sampled = sampled_blobs(sizes, most_bytes=200)
    assert sampled[:10] == list(range(10))
    assert sampled[10:] == [99, 90, 81, 72, 63, 54, 45, 36, 27, 18]
    assert sampled_blobs([("huge", 10**9), ("old", 5)], most_bytes=100) == ["old"]
    assert sampled_blobs([], most_bytes=100) == []


def test_what_no_part_refers_to_is_out_of_step_and_a_rebuild_removes_it(tmp_path: Path) -> None:
    with store(tmp_path / "memory.db") as backend:
        spoil(
            tmp_path / "memory.db",
            "INSERT INTO blobs (hash, size, packing, packed) SELECT 'ab', size, packing, packed FROM blobs",
            f"INSERT INTO part_blobs VALUES ('gone', 0, '{LOG.hash}', 1, 'text/plain')",
        )
        mendable = [found for found in findings(backend) if found.severity is Severity.OUT_OF_STEP]
        assert [found.where for found in mendable] == ["blob ab", "part_blobs of gone"]
        assert backend.upkeep is not None
        assert drive(backend.upkeep.rebuild()).corrected == 2
        assert findings(backend, full=True) == []
        assert drive(backend.conversations.blob(LOG.hash)) == LOG


def test_the_same_content_a_hundred_times_takes_the_room_of_one(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with store(path) as backend:
        for n in range(100):
            part = Part(id=PartId(f"p{n}"), kind="tool", tool="bash", blobs=(LOG.ref("text/plain"),))
            drive(backend.conversations.put_part(part, message=MessageId("m1"), session=SessionId("s"), blobs=[LOG]))
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT count(*), sum(length(packed)) FROM blobs").fetchone() == (1, len(LOG.packed))


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A file of the format before there were blobs."""
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("PRAGMA application_id = 0x42535459")
        for version, script in migrations.scripts():
            if version < 8:
                for statement in migrations._statements(script.read_text(encoding="utf-8")):
                    raw.execute(statement)
        raw.execute("PRAGMA user_version = 7")
        raw.execute("INSERT INTO messages VALUES ('m0', 's', 'user', NULL, NULL, 0, NULL, NULL)")
        raw.execute("INSERT INTO parts VALUES ('p0', 'm0', 's', 'text', 'hello', NULL, 0, NULL)")
    return path


def test_a_file_of_before_there_were_blobs_gets_their_tables(older: Path) -> None:
    with store(older) as backend:
        first, second = drive(backend.conversations.messages(SessionId("s")))
        assert (first.parts[0].text, first.parts[0].blobs) == ("hello", ())
        assert second == told()


def test_nothing_is_missed_in_what_is_salvaged_of_an_older_file(older: Path) -> None:
    backend = open_sqlite(older, create=False)
    assert backend.upkeep is not None
    saved = drive(backend.upkeep.salvage())
    assert [message.parts[0].text for message in saved.messages] == ["hello"]
    assert (list(saved.blobs), list(saved.lost)) == ([], [])
    drive(backend.memories.close())


def test_a_tenant_neither_sees_nor_removes_the_content_of_another() -> None:
    if (reason := why_there_is_none()) is not None:
        pytest.skip(reason)
    from backstory.adapters.stores.postgres.store import open_postgres

    server = postgres_for_tests()
    schema = server.new_name()
    one, other = (open_postgres(server.dsn(), schema=schema, tenant=name) for name in ("one", "other"))
    for backend in (one, other):
        drive(backend.conversations.put_messages([told()], blobs=[LOG]))
    drive(one.conversations.remove_part(PartId("p1")))
    assert drive(one.conversations.blob(LOG.hash)) is None
    assert drive(other.conversations.blob(LOG.hash)) == LOG
    server.run(f"UPDATE {schema}.blobs SET packed = 'x'")
    (found,) = findings(other)
    assert (found.severity, found.where) == (Severity.DAMAGE, f"blob {LOG.hash}")
    for backend in (one, other):
        drive(backend.memories.close())
