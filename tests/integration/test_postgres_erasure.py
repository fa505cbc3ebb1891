"""Erasing from Postgres: the rows of one tenant, in every table, and the files that the server keeps them in."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory.domain.history import Author
from backstory.domain.ids import MessageId
from backstory.domain.memory import Deleted
from backstory.entrypoints.drive import drive
from backstory.ports.upkeep import Severity
from backstory.testing.postgres import postgres_for_tests, why_there_is_none
from tests.erased import OTHER_TEXT, PERSON, SECRET_TEXT, SESSION, WORDS, Keeper, filled, in_bytes, keeper, said

pytestmark = pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))


@pytest.fixture(scope="module")
def kept() -> Keeper:
    """A store in which #2 was erased."""
    from backstory.adapters.stores.postgres.store import open_postgres

    server = postgres_for_tests()
    kept = keeper(open_postgres(server.dsn(), schema=server.new_name("erased"), tenant="anna"))
    filled(kept)
    assert kept.backend.eraser is not None
    assert {trace.where for trace in drive(kept.backend.eraser.scan(WORDS))} >= {
        "table memories", "table change_edits", "table parts", "table passages", "table sessions",
        "table recall_blocks", "table digest_pieces", "table term_frequencies", "table blobs, unpacked",
    }  # fmt: skip
    plan = drive(kept.erasing.plan(["#2"], text=None, viewer=PERSON))
    receipt = drive(kept.erasing.erase(plan, viewer=PERSON, author=Author.USER))
    assert receipt is not None
    assert (receipt.finished, receipt.traces) == (True, ())
    assert any("write-ahead log" in line for line in receipt.remains)
    return kept


def test_it_is_in_no_row_and_in_no_file_of_the_tables(kept: Keeper) -> None:
    assert kept.backend.eraser is not None
    assert drive(kept.backend.eraser.scan([SECRET_TEXT, *WORDS])) == []
    server = postgres_for_tests()
    server.run("CHECKPOINT")
    paths = server.run(
        "SELECT pg_relation_filepath(c.oid) FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace "
        "WHERE c.relkind IN ('r', 'i', 't') AND (s.nspname LIKE 'erased%' OR s.nspname = 'pg_toast')"
    )
    found = [path for (path,) in paths if path and in_bytes(Path(server.folder, path).read_bytes(), *WORDS)]
    assert found == []


def test_the_store_is_whole_and_everything_else_is_there(kept: Keeper) -> None:
    assert kept.backend.upkeep is not None
    findings = drive(kept.backend.upkeep.verify(full=True))
    assert [found for found in findings if found.severity is not Severity.NOTE] == []
    memories = [drive(kept.backend.memories.by_number(n)) for n in (1, 2, 3)]
    assert [memory.content for memory in memories if memory is not None] == [
        OTHER_TEXT, "[erased]", "Remember what was said: [erased] (by Anna)",
    ]  # fmt: skip
    assert memories[1] is not None
    assert isinstance(memories[1].status, Deleted)


def test_what_a_host_tells_once_more_stays_erased(kept: Keeper) -> None:
    drive(kept.backend.conversations.put_messages([said(SECRET_TEXT)]))
    (message,) = drive(kept.backend.conversations.find_messages([MessageId("m1")]))
    assert all(word not in repr(message) for word in WORDS)
    session = drive(kept.backend.conversations.session(SESSION))
    assert session is not None
    assert session.title == "About [erased]"
    receipts = drive(kept.erasing.receipts(viewer=PERSON))
    assert [receipt.finished for receipt in receipts] == [True]
    drive(kept.backend.memories.close())
