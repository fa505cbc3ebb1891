"""The check of a file's invariants, and what can be saved of a damaged one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from backstory.adapters.stores.memory import open_memory_store
from backstory.adapters.stores.sqlite import migrations
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.entrypoints.drive import drive
from backstory.errors import StoreDamaged, StoreUnavailable
from backstory.ports.evidence import Sight
from backstory.ports.upkeep import Invariant, Severity
from backstory.testing.fakes import add_memories
from tests.integration.kept_stores import (
    ALL,
    EVERYONE,
    closed,
    contents,
    cut,
    damage,
    diary,
    filled,
    note,
    overwrite_page_of,
    scribbled,
    upkeep_of,
    verify,
)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "what-is-never-lost.md"


@pytest.mark.parametrize("full", [False, True])
def test_a_store_that_was_only_used_keeps_every_invariant(tmp_path: Path, full: bool) -> None:
    path = closed(tmp_path / "memory.db")
    assert verify(path, full=full) == []


FORGOTTEN = "SELECT id FROM memories WHERE state = 'deleted'"
BROKEN: list[tuple[Invariant, Severity, str]] = [
    (Invariant.REFERENCES, Severity.DAMAGE, "INSERT INTO memory_sessions VALUES (99, 'ses')"),
    (Invariant.READABLE, Severity.DAMAGE, "UPDATE memories SET status = '{' WHERE n = 1"),
    (Invariant.READABLE, Severity.DAMAGE, "UPDATE memories SET learned_us = 999999999999999999 WHERE n = 1"),
    (Invariant.READABLE, Severity.DAMAGE, "UPDATE memories SET kind = 'poem' WHERE n = 1"),
    (Invariant.HISTORY, Severity.DAMAGE, "UPDATE memories SET content = 'forged' WHERE n = 1"),
    (Invariant.HISTORY, Severity.DAMAGE, "UPDATE memories SET revision = 7 WHERE n = 1"),
    (Invariant.HISTORY, Severity.DAMAGE, "DELETE FROM memory_tags WHERE tag = 'apple'"),
    (Invariant.HISTORY, Severity.DAMAGE, "DELETE FROM change_edits WHERE n = 2 AND before IS NOT NULL"),
    (Invariant.HISTORY, Severity.DAMAGE, "DELETE FROM change_edits WHERE n = 1"),
    (Invariant.HISTORY, Severity.DAMAGE, "UPDATE change_edits SET after = '{}' WHERE n = 1"),
    (Invariant.HISTORY, Severity.DAMAGE, "UPDATE changes SET action = 'dance'"),
    (Invariant.NUMBERS, Severity.DAMAGE, "UPDATE sqlite_sequence SET seq = 2 WHERE name = 'memories'"),
    (Invariant.NUMBERS, Severity.DAMAGE, "UPDATE change_edits SET n = 1 WHERE n = 2"),
    (Invariant.EVIDENCE, Severity.DAMAGE, "UPDATE messages SET role = 'ghost' WHERE id = 'm1'"),
    (Invariant.EVIDENCE, Severity.DAMAGE, "UPDATE sessions SET created_us = 'noon'"),
    (Invariant.WITHHELD, Severity.OUT_OF_STEP, "UPDATE memories SET sensitivity = 'private' WHERE n = 1"),
    (Invariant.PROJECTS, Severity.NOTE, "UPDATE memories SET project = 'nowhere' WHERE n = 1"),
    (Invariant.LOOKUPS, Severity.OUT_OF_STEP, "UPDATE memories SET content_key = 'x' WHERE n = 1"),
    (Invariant.LOOKUPS, Severity.OUT_OF_STEP, "UPDATE memories SET state = 'active' WHERE state = 'deleted'"),
    (Invariant.WORDS, Severity.OUT_OF_STEP, "DELETE FROM memory_words WHERE rowid = 1"),
    (Invariant.WORDS, Severity.OUT_OF_STEP, "UPDATE memory_words SET tokens = 'other' WHERE rowid = 1"),
    (Invariant.WORDS, Severity.OUT_OF_STEP, "INSERT INTO memory_words (rowid, tokens) VALUES (99, 'stray')"),
    (Invariant.WORDS, Severity.OUT_OF_STEP, "UPDATE word_statistics SET tokens = tokens + 1"),
    (Invariant.WORDS, Severity.OUT_OF_STEP, "DELETE FROM memory_words_data WHERE id > 10"),
    (Invariant.PASSAGES, Severity.OUT_OF_STEP, "DELETE FROM passages WHERE message = 'm1'"),
    (Invariant.PASSAGES, Severity.OUT_OF_STEP, "UPDATE passages SET text = 'other' WHERE message = 'm1'"),
    (Invariant.PASSAGES, Severity.OUT_OF_STEP, "UPDATE messages SET removed_us = 1 WHERE id = 'm1'"),
    (Invariant.PASSAGES, Severity.OUT_OF_STEP, "UPDATE passage_statistics SET documents = 77"),
    (Invariant.VECTORS, Severity.OUT_OF_STEP, "UPDATE vectors SET vector = x'00'"),
    (Invariant.VECTORS, Severity.OUT_OF_STEP, "UPDATE vectors SET n = 99"),
    (Invariant.VECTORS, Severity.OUT_OF_STEP, "INSERT INTO passage_word_vectors VALUES (1, 'compass', x'00')"),
    (Invariant.SHOWINGS, Severity.OUT_OF_STEP, "DELETE FROM recall_block_memories"),
    (Invariant.SHOWINGS, Severity.OUT_OF_STEP, "INSERT INTO recall_block_memories VALUES ('other', 'm1')"),
    (Invariant.DIGESTS, Severity.OUT_OF_STEP, "UPDATE digest_pieces SET parent = 'node9_999'"),
    (Invariant.DIGESTS, Severity.OUT_OF_STEP, "UPDATE digest_pieces SET children = '[\"node9_999\"]'"),
    (Invariant.DREAMS, Severity.OUT_OF_STEP, "UPDATE dreams SET updated_us = 'noon'"),
    (Invariant.DREAMS, Severity.OUT_OF_STEP, "UPDATE summaries SET created_us = 'noon'"),
    (Invariant.DREAMS, Severity.OUT_OF_STEP, "INSERT INTO summary_sources VALUES ('', 1, 'of no memory')"),
    (Invariant.DREAMS, Severity.OUT_OF_STEP, f"UPDATE summary_sources SET memory = ({FORGOTTEN})"),
    (Invariant.DOUBTS, Severity.OUT_OF_STEP, "UPDATE doubts SET since_us = 'noon'"),
    (Invariant.DOUBTS, Severity.OUT_OF_STEP, f"UPDATE doubts SET memory = ({FORGOTTEN})"),
]  # fmt: skip


@pytest.mark.parametrize(("invariant", "severity", "statement"), BROKEN, ids=[row[2][:60] for row in BROKEN])
def test_each_broken_invariant_is_named_with_a_place_and_a_way_out(
    tmp_path: Path, invariant: Invariant, severity: Severity, statement: str
) -> None:
    path = closed(tmp_path / "memory.db")
    damage(path, statement)
    before = path.read_bytes()
    named = [found for found in verify(path) if found.invariant is invariant]
    assert named
    assert {found.severity for found in named} == {severity}
    assert all(found.what and found.where and found.way_out for found in named)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "statement", [row[2] for row in BROKEN if row[1] is Severity.OUT_OF_STEP and "sensitivity" not in row[2]]
)
def test_what_is_out_of_step_is_put_right_by_rebuilding(tmp_path: Path, statement: str) -> None:
    path = closed(tmp_path / "memory.db")
    damage(path, statement)
    backend = open_sqlite(path)
    seen: list[int] = []
    drive(upkeep_of(backend).rebuild(progress=seen.append))
    assert sum(seen) == 7  # six memories and one session
    assert verify(path) == []
    hits = drive(backend.text.search_text(["cluster"], ALL, limit=5)).hits
    assert len(hits) == 1
    sight = Sight(viewer=EVERYONE)
    found = drive(backend.evidence.search_text(["cluster"], sight, limit=5)).numbers
    assert len(found) == (0 if "removed_us" in statement else 1)


def test_every_invariant_is_broken_by_a_row_here_and_explained_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert {row[0] for row in BROKEN} | {Invariant.WHOLE, Invariant.FORMAT} == set(Invariant)
    for invariant in Invariant:
        assert f"| {invariant.number} | `{invariant.value}` |" in page
    assert [invariant.number for invariant in Invariant] == list(range(1, len(Invariant) + 1))


def test_many_faults_of_a_kind_are_counted_after_the_first(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    backend = open_sqlite(path)
    drive(add_memories(backend.memories, *(note(f"note {n}") for n in range(50))))
    drive(backend.memories.close())
    damage(path, "UPDATE memories SET content_key = ''")
    found = [finding for finding in verify(path) if finding.invariant is Invariant.LOOKUPS]
    assert len(found) == 21
    assert "30 more" in found[-1].what


def test_a_file_that_is_no_store_is_a_finding_and_not_an_error(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(b"dear diary" * 900)
    assert [finding.invariant for finding in verify(path)] == [Invariant.WHOLE]
    with closing(sqlite3.connect(tmp_path / "other.db")) as raw:
        raw.execute("CREATE TABLE bookmarks (url)")
    assert [finding.invariant for finding in verify(tmp_path / "other.db")] == [Invariant.FORMAT]


def test_newer_and_older_and_empty_files_are_told_apart(tmp_path: Path) -> None:
    path = closed(tmp_path / "memory.db")
    damage(path, f"PRAGMA user_version = {migrations.latest_version() + 1}")
    [newer] = verify(path)
    assert (newer.severity, newer.way_out) == (Severity.DAMAGE, "upgrade Backstory")
    damage(path, "PRAGMA user_version = 1")
    assert [finding.severity for finding in verify(path)] == [Severity.NOTE]
    (tmp_path / "empty.db").touch()
    assert [finding.severity for finding in verify(tmp_path / "empty.db")] == [Severity.NOTE]
    with pytest.raises(StoreUnavailable, match="no store"):
        verify(tmp_path / "missing.db")


def test_damage_in_the_middle_of_the_file_is_found(tmp_path: Path) -> None:
    path = closed(tmp_path / "memory.db")
    overwrite_page_of(path, "memories")
    assert Severity.DAMAGE in {finding.severity for finding in verify(path)}
    assert Invariant.WHOLE in {finding.invariant for finding in verify(path)}


def test_a_schema_whose_names_are_no_text_is_damage_and_not_an_error(tmp_path: Path) -> None:
    path = closed(tmp_path / "memory.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("PRAGMA writable_schema = ON")
        raw.execute("UPDATE sqlite_master SET name = CAST(x'ff' AS TEXT), sql = 'x' WHERE name = 'memories'")
    [found] = verify(path)
    assert (found.invariant, found.severity) == (Invariant.WHOLE, Severity.DAMAGE)
    assert "not text any more" in drive(upkeep_of(open_sqlite(path)).salvage()).lost[0]
    with pytest.raises(StoreDamaged, match="is damaged"):
        contents(open_sqlite(path))


def test_everything_is_salvaged_from_a_whole_store(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    saved = drive(upkeep_of(backend).salvage())
    assert sorted(memory.content for memory in saved.memories) == contents(backend)
    assert [item.id for item in saved.messages] == ["m1", "m2"]
    assert saved.messages[0].parts[0].text == "where does the cluster run"
    assert saved.lost == []


@pytest.mark.parametrize("spoil", [cut, scribbled, diary], ids=lambda spoil: spoil.__name__)
def test_what_can_be_read_of_a_damaged_store_is_salvaged_and_the_rest_is_named(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    path = closed(tmp_path / "memory.db")
    whole = contents(open_sqlite(path))
    spoil(path)
    before = path.read_bytes()
    saved = drive(upkeep_of(open_sqlite(path)).salvage())
    assert path.read_bytes() == before
    assert saved.lost
    if spoil is scribbled:  # the table is gone, and the history tells it all
        assert sorted(memory.content for memory in saved.memories) == whole
    assert {memory.content for memory in saved.memories} <= set(whole)


def test_a_row_that_cannot_be_read_is_taken_from_its_history(tmp_path: Path) -> None:
    path = closed(tmp_path / "memory.db")
    damage(path, "UPDATE memories SET status = '{' WHERE n = 2")
    saved = drive(upkeep_of(open_sqlite(path)).salvage())
    assert len(saved.memories) == 6
    assert "#2" in saved.lost[0]
    assert "revision 2" in saved.lost[0]


def test_the_store_in_memory_is_always_whole_and_cannot_be_copied(tmp_path: Path) -> None:
    backend = open_memory_store()
    drive(add_memories(backend.memories, note("fact")))
    upkeep = upkeep_of(backend)
    assert drive(upkeep.verify(full=True)) == []
    assert drive(upkeep.rebuild()).memories == 1
    assert [memory.content for memory in drive(upkeep.salvage()).memories] == ["fact"]
    with pytest.raises(StoreUnavailable):
        drive(upkeep.backup(tmp_path / "backup.db"))
    with pytest.raises(StoreUnavailable):
        drive(upkeep.restore(tmp_path / "backup.db"))
