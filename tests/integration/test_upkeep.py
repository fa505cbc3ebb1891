"""Checking, rebuilding, backing up, restoring and salvaging a store on real files."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from backstory.adapters.stores.memory import open_memory_store
from backstory.adapters.stores.sqlite import migrations
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.conversation import FrozenBlock, Message, Part, Role, Session, ShownMemory
from backstory.domain.history import Action, Edit
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.memory import Memory, Visibility, forget, supersede
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.entrypoints.drive import drive
from backstory.errors import InputError, SchemaTooNew, StoreBusy, StoreDamaged, StoreError, StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.evidence import Sight
from backstory.ports.index import Embedded
from backstory.ports.models import EmbeddingModel
from backstory.ports.upkeep import Finding, Invariant, Severity, StoreUpkeep
from backstory.testing.contracts.digest_store import piece, written
from backstory.testing.contracts.doubt_store import doubt_of
from backstory.testing.contracts.dream_store import FULL_STATE
from backstory.testing.contracts.summaries import summary_of
from backstory.testing.fakes import FULL_MEMORY, START, add_memories, sample_change, sample_memory

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "what-is-never-lost.md"
MODEL = EmbeddingModel(name="compass", dimension=2)
EVERYONE = Viewer(project=None, audience=Audience.PERSON, all_projects=True)
ALL = Selection(viewer=EVERYONE, now=START, states=EVERY_STATE)


def note(text: str) -> Memory:
    return sample_memory(text, visibility=Visibility.GLOBAL, project=None)


def message(name: str, text: str, session: str = "ses-1") -> Message:
    part = Part(id=PartId(f"part-{name}"), kind="text", text=text)
    return Message(id=MessageId(name), session=SessionId(session), role=Role.USER, created_at=START, parts=(part,))


def filled(path: Path) -> Backend:
    """A store with something of everything in it; its last number is #6."""
    backend = open_sqlite(path)
    plain = [note(f"The {word} runs in Frankfurt") for word in ("cluster", "ledger", "parser")]
    first, second, third = drive(add_memories(backend.memories, *plain))
    private = replace(FULL_MEMORY, visibility=Visibility.GLOBAL, project=None)
    drive(add_memories(backend.memories, private, first_change=10))
    newer = note("The ledger runs in Dublin")
    hidden = supersede(second, by=newer.id, now=START)
    drive(
        backend.memories.commit(
            sample_change(
                20, Edit(before=None, after=newer), Edit(before=second, after=hidden), action=Action.SUPERSEDE
            )
        )
    )
    gone = forget(third, now=START, reason="no longer so")
    drive(backend.memories.commit(sample_change(21, Edit(before=third, after=gone), action=Action.FORGET)))
    drive(add_memories(backend.memories, note("The zebra is striped"), first_change=30))
    drive(backend.vectors.put_vectors([Embedded(id=first.id, revision=1, vector=(1.0, 0.0))], model=MODEL))
    session = Session(
        id=SessionId("ses-1"), project=None, host="opencode", directory="/x", created_at=START, updated_at=START
    )
    drive(backend.conversations.put_session(session))
    drive(
        backend.conversations.put_messages([message("m1", "where does the cluster run"), message("m2", "in Frankfurt")])
    )
    shown = ShownMemory(memory=first.id, n=first.n, score=0.9, reason="fits")
    block = FrozenBlock(
        message=MessageId("m1"), session=session.id, text="block", shown=(shown,), silent_because=None, created_at=START
    )
    drive(backend.conversations.freeze_block(block))
    drive(written(backend.digests, piece(1), session=session.id))
    drive(backend.dreams.apply(replace(FULL_STATE, session=session.id)))
    drive(backend.dreams.put_summary(summary_of(first, project=None)))
    drive(backend.doubts.replace([first.id], [doubt_of(first)]))
    return backend


def upkeep_of(backend: Backend) -> StoreUpkeep:
    assert backend.upkeep is not None
    return backend.upkeep


def verify(path: Path, *, full: bool = True) -> list[Finding]:
    return drive(upkeep_of(open_sqlite(path)).verify(full=full))


def contents(backend: Backend) -> list[str]:
    return sorted(memory.content for memory in drive(backend.memories.select(ALL, limit=1000)))


def damage(path: Path, *statements: str) -> None:
    """What no command of ours does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        for statement in statements:
            raw.execute(statement)
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def closed(path: Path) -> Path:
    backend = filled(path)
    drive(backend.memories.close())
    return path


# --- check ------------------------------------------------------------------------------------------------------------


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


def overwrite_page_of(path: Path, table: str) -> None:
    with closing(sqlite3.connect(path)) as raw:
        root = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
        size = raw.execute("PRAGMA page_size").fetchone()[0]
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xde\xad" * (size // 2))


# --- backup -----------------------------------------------------------------------------------------------------------


def test_a_backup_is_one_whole_file_for_its_owner_alone(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    to = tmp_path / "shelf" / "backup.db"
    size = drive(upkeep_of(backend).backup(to))
    assert size == to.stat().st_size
    assert stat.S_IMODE(to.stat().st_mode) == 0o600
    assert [file.name for file in to.parent.iterdir()] == ["backup.db"]
    assert verify(to) == []
    assert contents(open_sqlite(to)) == contents(backend)


def test_a_backup_overwrites_only_when_it_is_told_to(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    to = tmp_path / "backup.db"
    to.write_text("precious")
    with pytest.raises(InputError, match="there already"):
        drive(upkeep_of(backend).backup(to))
    assert to.read_text() == "precious"
    drive(upkeep_of(backend).backup(to, overwrite=True))
    assert contents(open_sqlite(to, create=False)) == contents(backend)


def test_a_backup_never_takes_the_place_of_a_store_in_use(tmp_path: Path) -> None:
    backend, other = filled(tmp_path / "memory.db"), filled(tmp_path / "other.db")
    (tmp_path / "link.db").symlink_to(tmp_path / "memory.db")
    for target in ("memory.db", "link.db", "other.db", "."):
        with pytest.raises(InputError):
            drive(upkeep_of(backend).backup(tmp_path / target, overwrite=True))
    assert len(contents(other)) == len(contents(backend)) == 6


def test_a_backup_takes_the_place_of_files_alone_and_of_no_log(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    os.mkfifo(tmp_path / "pipe")
    for target in ("pipe", "memory.db-wal", "memory.db-journal"):
        with pytest.raises(InputError):
            drive(upkeep_of(backend).backup(tmp_path / target, overwrite=True))
    assert (tmp_path / "pipe").is_fifo()
    assert len(contents(open_sqlite(tmp_path / "memory.db"))) == 6


def test_where_a_backup_cannot_be_written_the_store_is_not_blamed(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(StoreUnavailable, match=r"the backup .* cannot be written"):
        drive(upkeep_of(backend).backup(tmp_path / "taken" / "copy.db"))


def test_a_damaged_store_is_not_backed_up_over_a_good_backup(tmp_path: Path) -> None:
    path = closed(tmp_path / "memory.db")
    to = tmp_path / "backup.db"
    drive(upkeep_of(open_sqlite(path)).backup(to))
    good = to.read_bytes()
    overwrite_page_of(path, "memories")
    with pytest.raises(StoreDamaged):
        drive(upkeep_of(open_sqlite(path)).backup(to, overwrite=True))
    assert to.read_bytes() == good
    assert sorted(file.name for file in tmp_path.iterdir() if file.suffix == ".part") == []


def test_writers_go_on_while_a_backup_is_made(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    stop = threading.Event()
    written: list[int] = []

    def write() -> None:
        other = open_sqlite(tmp_path / "memory.db")
        while not stop.is_set():
            number = len(written)
            drive(add_memories(other.memories, note(f"meanwhile {number}"), first_change=1000 + number))
            written.append(number)
        drive(other.memories.close())

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            to = tmp_path / f"backup-{number}.db"
            drive(upkeep_of(backend).backup(to))
            assert verify(to) == []
    finally:
        stop.set()
        writer.join()
    assert written


# --- restore ----------------------------------------------------------------------------------------------------------


def test_a_restored_store_is_what_was_backed_up_and_the_replaced_one_is_kept(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    upkeep = upkeep_of(backend)
    before = contents(backend)
    drive(upkeep.backup(tmp_path / "backup.db"))
    drive(add_memories(backend.memories, note("after the backup"), first_change=100))
    restored = drive(upkeep.restore(tmp_path / "backup.db"))
    assert (restored.memories, restored.messages) == (6, 2)
    assert contents(backend) == before
    assert verify(tmp_path / "memory.db") == []
    assert restored.kept is not None
    assert restored.kept.name.startswith("memory.db.before-restore-")
    assert stat.S_IMODE(restored.kept.stat().st_mode) == 0o600
    assert "after the backup" in contents(open_sqlite(restored.kept))


def test_a_number_given_since_the_backup_is_not_given_again(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    drive(upkeep_of(backend).backup(tmp_path / "backup.db"))
    [later] = drive(add_memories(backend.memories, note("after the backup"), first_change=100))
    drive(upkeep_of(backend).restore(tmp_path / "backup.db"))
    [next_one] = drive(add_memories(backend.memories, note("after the restore"), first_change=101))
    assert next_one.n == later.n + 1


def test_an_open_process_goes_on_with_the_restored_store_vectors_included(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    backend, other = filled(path), open_sqlite(path)
    drive(upkeep_of(backend).backup(tmp_path / "backup.db"))
    added = drive(add_memories(other.memories, note("east"), note("west"), first_change=100))
    drive(
        other.vectors.put_vectors(
            [Embedded(id=memory.id, revision=1, vector=(0.0, 1.0)) for memory in added], model=MODEL
        )
    )

    def nearest() -> list[str]:
        hits = drive(other.vectors.search_vectors((0.0, 1.0), ALL, model=MODEL, limit=9))
        return [memory.content for memory in drive(other.memories.get([hit.id for hit in hits])).values()]

    assert len(nearest()) == 3
    drive(upkeep_of(backend).restore(tmp_path / "backup.db"))
    assert nearest() == ["The cluster runs in Frankfurt"]
    [north] = drive(add_memories(other.memories, note("north"), first_change=200))
    drive(other.vectors.put_vectors([Embedded(id=north.id, revision=1, vector=(0.0, 1.0))], model=MODEL))
    assert sorted(nearest()) == ["The cluster runs in Frankfurt", "north"]


def test_a_store_that_was_emptied_is_refused_with_its_log_and_can_be_restored(tmp_path: Path) -> None:
    path, source = tmp_path / "memory.db", tmp_path / "backup.db"
    crashed = filled(path)
    drive(upkeep_of(crashed).backup(source))
    drive(add_memories(crashed.memories, note("in the log"), first_change=100))
    log = path.with_name("memory.db-wal").read_bytes()
    emptied_one = tmp_path / "emptied" / "memory.db"
    emptied_one.parent.mkdir()
    emptied_one.touch()
    emptied_one.with_name("memory.db-wal").write_bytes(log)
    backend = open_sqlite(emptied_one)
    with pytest.raises(StoreDamaged, match="its log is not"):
        contents(backend)
    [finding] = verify(emptied_one)
    assert (finding.invariant, finding.severity) == (Invariant.WHOLE, Severity.DAMAGE)
    assert emptied_one.with_name("memory.db-wal").read_bytes() == log
    restored = drive(upkeep_of(backend).restore(source))
    assert len(contents(backend)) == 6
    assert restored.kept is not None
    assert restored.kept.with_name(f"{restored.kept.name}-wal").read_bytes() == log


def test_a_store_that_is_not_there_is_restored_too(tmp_path: Path) -> None:
    backend = filled(tmp_path / "memory.db")
    drive(upkeep_of(backend).backup(tmp_path / "backup.db"))
    new = open_sqlite(tmp_path / "elsewhere" / "memory.db")
    assert drive(upkeep_of(new).restore(tmp_path / "backup.db")).kept is None
    assert contents(new) == contents(backend)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scribbled(path: Path) -> None:
    overwrite_page_of(path, "memories")


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def diary(path: Path) -> None:
    path.write_bytes(b"dear diary" * 1000)


def forged(path: Path) -> None:
    damage(path, "UPDATE memories SET content = 'forged' WHERE n = 1")


def foreign(path: Path) -> None:
    path.unlink()
    damage(path, "CREATE TABLE bookmarks (url)")


@pytest.mark.parametrize("spoil", [cut, scribbled, emptied, diary, forged, foreign])
def test_a_damaged_backup_changes_nothing(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    path, source = closed(tmp_path / "memory.db"), tmp_path / "backup.db"
    drive(upkeep_of(open_sqlite(path)).backup(source))
    spoil(source)
    spoilt, before = source.read_bytes(), path.read_bytes()
    with pytest.raises(StoreDamaged):
        drive(upkeep_of(open_sqlite(path)).restore(source))
    assert (path.read_bytes(), source.read_bytes()) == (before, spoilt)
    assert not list(tmp_path.glob("*before-restore*"))
    assert not list(tmp_path.glob(".*part*"))


def test_a_newer_backup_and_a_newer_store_are_left_alone(tmp_path: Path) -> None:
    path, source = closed(tmp_path / "memory.db"), tmp_path / "backup.db"
    drive(upkeep_of(open_sqlite(path)).backup(source))
    damage(source, f"PRAGMA user_version = {migrations.latest_version() + 1}")
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew):
        drive(upkeep_of(open_sqlite(path)).restore(source))
    assert path.read_bytes() == before
    newer = closed(tmp_path / "newer.db")
    drive(upkeep_of(open_sqlite(path)).backup(source, overwrite=True))
    damage(newer, f"PRAGMA user_version = {migrations.latest_version() + 1}")
    before = newer.read_bytes()
    with pytest.raises(SchemaTooNew):
        drive(upkeep_of(open_sqlite(newer)).restore(source))
    assert newer.read_bytes() == before


def test_another_programs_database_is_never_replaced(tmp_path: Path) -> None:
    source = tmp_path / "backup.db"
    drive(upkeep_of(filled(tmp_path / "memory.db")).backup(source))
    other = tmp_path / "other.db"
    damage(other, "CREATE TABLE bookmarks (url)")
    before = other.read_bytes()
    with pytest.raises(StoreDamaged, match="another program"):
        drive(upkeep_of(open_sqlite(other)).restore(source))
    assert other.read_bytes() == before


@pytest.mark.parametrize("spoil", [cut, scribbled, diary])
def test_a_damaged_store_is_replaced_and_kept_byte_for_byte(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    path, source = closed(tmp_path / "memory.db"), tmp_path / "backup.db"
    drive(upkeep_of(open_sqlite(path)).backup(source))
    whole = contents(open_sqlite(source))
    spoil(path)
    spoilt = path.read_bytes()
    backend = open_sqlite(path)
    restored = drive(upkeep_of(backend).restore(source))
    assert contents(backend) == whole
    assert verify(path) == []
    assert restored.kept is not None
    if spoil is not scribbled:  # that one is copied page by page, with its damage
        assert restored.kept.read_bytes() == spoilt


def test_an_older_backup_is_brought_up_to_date_in_its_copy_alone(tmp_path: Path) -> None:
    source = tmp_path / "old.db"
    with closing(sqlite3.connect(source, isolation_level=None)) as raw:
        first = migrations.scripts()[0][1].read_text(encoding="utf-8")
        raw.executescript(f"{first}; PRAGMA application_id = {0x42535459}; PRAGMA user_version = 1;")
    before = source.read_bytes()
    path = closed(tmp_path / "memory.db")
    drive(upkeep_of(open_sqlite(path)).restore(source))
    assert verify(path) == []
    assert source.read_bytes() == before


def test_a_restore_waits_for_a_writer_and_then_says_so(tmp_path: Path) -> None:
    path, source = tmp_path / "memory.db", tmp_path / "backup.db"
    drive(upkeep_of(filled(path)).backup(source))
    impatient = open_sqlite(path, busy_timeout=timedelta(milliseconds=50))
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy):
            drive(upkeep_of(impatient).restore(source))
        timer = threading.Timer(0.2, other.execute, ("COMMIT",))
        timer.start()
        drive(upkeep_of(open_sqlite(path)).restore(source))
        timer.join()
    assert len(list(tmp_path.glob("memory.db.before-restore-*"))) == 1


WRITE = """
import sys
from pathlib import Path
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.entrypoints.drive import drive
from backstory.testing.fakes import add_memories, sample_memory
store = open_sqlite(Path(sys.argv[1])).memories
number = 0
while True:
    number += 1
    drive(add_memories(store, sample_memory(f"{number} of the other process"), first_change=5000 + number))
    print(number, flush=True)
"""


def test_what_another_process_was_told_is_in_the_kept_store_or_in_the_restored_one(tmp_path: Path) -> None:
    path, source = tmp_path / "memory.db", tmp_path / "backup.db"
    backend = filled(path)
    drive(upkeep_of(backend).backup(source))
    with subprocess.Popen([sys.executable, "-c", WRITE, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(10)]
        restored = drive(upkeep_of(backend).restore(source))
        while not drive(backend.memories.count(replace(ALL, contains="of the other process"))):
            told.append(process.stdout.readline())  # until it has found the restored store
        process.kill()
        told += [line for line in process.stdout if line.endswith("\n")]
    assert restored.kept is not None
    either = {*contents(open_sqlite(restored.kept)), *contents(open_sqlite(path))}
    assert [line for line in told if f"{line.strip()} of the other process" not in either] == []
    assert verify(path, full=True)[0].invariant is Invariant.PROJECTS


# --- a file that is replaced by hand ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [True, False], ids=["moved", "removed"])
def test_an_open_process_finds_the_file_that_is_there_now(tmp_path: Path, kept: bool) -> None:
    path = tmp_path / "memory.db"
    backend = filled(path)
    drive(upkeep_of(backend).backup(tmp_path / "backup.db"))
    drive(add_memories(backend.memories, note("after the backup"), first_change=100))
    for suffix in ("", "-wal", "-shm"):
        name = path.with_name(f"memory.db{suffix}")
        name.rename(tmp_path / f"moved.db{suffix}") if kept else name.unlink()
    shutil.copy(tmp_path / "backup.db", path)
    assert "after the backup" not in contents(backend)
    drive(add_memories(backend.memories, note("into the new file"), first_change=101))
    other = open_sqlite(path)
    drive(add_memories(other.memories, note("by another"), first_change=102))
    drive(backend.memories.close())
    assert {"into the new file", "by another"} <= set(contents(open_sqlite(path)))
    if kept:
        assert "after the backup" in contents(open_sqlite(tmp_path / "moved.db"))


def test_closing_a_file_that_was_replaced_leaves_the_log_of_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    old = filled(path)
    for suffix in ("", "-wal", "-shm"):
        path.with_name(f"memory.db{suffix}").rename(tmp_path / f"moved.db{suffix}")
    new = open_sqlite(path)
    drive(add_memories(new.memories, note("only in the log"), first_change=1))
    drive(old.memories.close())
    assert (tmp_path / "memory.db-wal").stat().st_size > 0
    assert contents(open_sqlite(path)) == ["only in the log"]


def test_vectors_kept_in_memory_are_those_of_the_file_that_is_there(tmp_path: Path) -> None:
    one, two = filled(tmp_path / "memory.db"), filled(tmp_path / "other.db")
    [second] = drive(two.memories.select(ALL, limit=1))
    drive(two.vectors.drop_vectors(model_name=MODEL.name))
    drive(two.vectors.put_vectors([Embedded(id=second.id, revision=second.revision, vector=(0.0, 1.0))], model=MODEL))
    assert len(drive(one.vectors.search_vectors((1.0, 0.0), ALL, model=MODEL, limit=5))) == 1
    drive(upkeep_of(two).backup(tmp_path / "backup.db"))
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"memory.db{suffix}").unlink()
    (tmp_path / "backup.db").replace(tmp_path / "memory.db")
    [hit] = drive(one.vectors.search_vectors((0.0, 1.0), ALL, model=MODEL, limit=5))
    assert hit.id == second.id
    assert hit.similarity == pytest.approx(1.0)


# --- salvage ----------------------------------------------------------------------------------------------------------


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


# --- no room, no right ------------------------------------------------------------------------------------------------


def in_a_child_that_may_write(limit_bytes: int, work: Callable[[], str]) -> str:
    """What ``work`` says in a process whose files may not grow beyond a limit, as on a full disk."""
    answer, told = os.pipe()
    if (child := os.fork()) == 0:
        try:
            import signal

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
            os.write(told, work().encode())
        except BaseException as error:
            os.write(told, repr(error).encode())
        os._exit(0)
    os.close(told)
    with os.fdopen(answer) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return text


def said(work: Callable[[], object]) -> str:
    try:
        work()
    except StoreError as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def test_where_there_is_no_room_nothing_is_half_written_and_reading_goes_on(tmp_path: Path) -> None:
    path = closed(tmp_path / "memory.db")
    whole, before = contents(open_sqlite(path)), path.stat().st_size

    def work() -> str:
        backend = open_sqlite(path)
        big = note("x" * 400_000)
        answer = said(lambda: drive(add_memories(backend.memories, big, first_change=500)))
        return f"{answer} / {contents(backend) == whole}"

    answer = in_a_child_that_may_write(before + 64 * 1024, work)
    assert answer.startswith("StoreUnavailable")
    assert answer.endswith("/ True")
    assert contents(open_sqlite(path)) == whole
    assert verify(path) == []


def test_where_there_is_no_room_a_backup_and_a_restore_leave_everything_as_it_was(tmp_path: Path) -> None:
    path, to = closed(tmp_path / "memory.db"), tmp_path / "backup.db"
    drive(upkeep_of(open_sqlite(path)).backup(to))
    whole, good = contents(open_sqlite(path)), to.read_bytes()

    def work() -> str:
        upkeep = upkeep_of(open_sqlite(path))
        return f"{said(lambda: drive(upkeep.backup(to, overwrite=True)))} / {said(lambda: drive(upkeep.restore(to)))}"

    answers = in_a_child_that_may_write(64 * 1024, work).split(" / ")
    assert [answer.partition(":")[0] for answer in answers] == ["StoreUnavailable"] * 2, answers
    assert to.read_bytes() == good
    assert contents(open_sqlite(path)) == whole
    assert verify(path) == []
    assert not list(tmp_path.glob("*before-restore*"))


# --- the store in dictionaries ----------------------------------------------------------------------------------------


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
