"""Git stores with real faults: in the ref, in its objects and in the file beside it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from backstory.adapters.stores.gitbranch.reference import DEFAULT_REF
from backstory.adapters.stores.gitbranch.tree import placed
from backstory.domain.memory import Sensitivity
from backstory.errors import StoreUnavailable
from backstory.ports.upkeep import Invariant, Restored, Severity
from tests.integration.git_keeping import Clone, contents, fill
from tests.integration.git_keeping import clone as clone
from tests.integration.upkeeping import EVERYTHING, faults, run, upkeep_of, verify


def test_a_store_that_was_only_used_is_whole(clone: Clone) -> None:
    run(clone.open(), fill)
    assert verify(clone.open()) == []
    assert verify(clone.open(), full=False) == []


def test_where_there_is_neither_ref_nor_file_there_is_no_store(clone: Clone) -> None:
    with pytest.raises(StoreUnavailable, match="no store"):
        verify(clone.open())
    assert not clone.file.exists()


@pytest.mark.parametrize("full", [False, True])
def test_an_object_that_is_gone_or_altered_is_damage(clone: Clone, full: bool) -> None:
    run(clone.open(), fill)
    victim = clone.object_file(f"{DEFAULT_REF}:{clone.day_file()}")
    content = victim.read_bytes()
    victim.chmod(0o644)
    for spoilt in (b"", content[: len(content) // 2], content[:-1] + b"?", None):
        victim.unlink() if spoilt is None else victim.write_bytes(spoilt)
        [*found] = faults(clone.open(), full=full)
        assert {(finding.invariant, finding.severity) for finding in found} == {(Invariant.WHOLE, Severity.DAMAGE)}
        assert all("fetch" in finding.way_out for finding in found)
    victim.write_bytes(content)
    assert faults(clone.open(), full=full) == []


def test_an_object_of_the_past_that_is_gone_is_found_by_a_full_check(clone: Clone) -> None:
    run(clone.open(), fill)
    clone.object_file(f"{DEFAULT_REF}~3:{clone.day_file()}").unlink()
    assert faults(clone.open(), full=False) == []
    assert {finding.invariant for finding in faults(clone.open())} == {Invariant.WHOLE}


def test_a_commit_of_the_past_that_is_gone_is_found_by_any_check(clone: Clone) -> None:
    run(clone.open(), fill)
    clone.object_file(f"{DEFAULT_REF}~3").unlink()
    assert {finding.invariant for finding in faults(clone.open(), full=False)} == {Invariant.WHOLE}


def test_a_day_file_that_another_tool_dropped_is_told_and_then_taken_over(clone: Clone) -> None:
    run(clone.open(), fill)
    clone.rewrite(**{clone.day_file(): None})
    [note] = verify(clone.open())
    assert (note.invariant, note.severity) == (Invariant.FORMAT, Severity.NOTE)
    run(clone.open(), contents)
    assert verify(clone.open()) == []


def test_a_line_that_nobody_can_read_is_a_note(clone: Clone) -> None:
    run(clone.open(), fill)
    day = clone.day_file()
    text = clone.git("cat-file", "blob", f"{DEFAULT_REF}:{day}") + '\nts=never type=decision scope=a content="b"\n'
    clone.rewrite(**{day: text})
    run(clone.open(), contents)
    assert [(finding.invariant, finding.severity) for finding in verify(clone.open())] == [
        (Invariant.READABLE, Severity.NOTE)
    ]


OUT_OF_STEP = {
    "a memory was altered": "UPDATE memories SET content = 'The cluster is called ibis' WHERE n = 1",
    "a memory is gone": (
        "DELETE FROM change_edits WHERE n = 1; DELETE FROM memory_tags WHERE n = 1; DELETE FROM memories WHERE n = 1; "
        "DELETE FROM memory_words WHERE rowid = 1"
    ),
    "a change is gone": (
        "DELETE FROM change_edits WHERE n = 1; DELETE FROM changes WHERE id NOT IN (SELECT change FROM change_edits); "
        "DELETE FROM git_changes WHERE change NOT IN (SELECT id FROM changes)"
    ),
    "a word is gone": "DELETE FROM memory_words WHERE rowid = 1",
}


@pytest.mark.parametrize("statements", OUT_OF_STEP.values(), ids=list(OUT_OF_STEP))
def test_a_file_that_says_otherwise_than_the_ref_is_found_and_read_anew(clone: Clone, statements: str) -> None:
    run(clone.open(), fill)
    before = run(clone.open(), contents)
    with closing(sqlite3.connect(clone.file)) as raw, raw:
        raw.executescript(statements)
    assert faults(clone.open())
    assert run(clone.open(), lambda backend: upkeep_of(backend).rebuild()).corrected
    assert faults(clone.open()) == []
    assert run(clone.open(), contents) == before
    assert run(clone.open(), lambda backend: upkeep_of(backend).rebuild()).corrected == 0


def test_a_private_memory_on_the_ref_is_found(clone: Clone) -> None:
    run(clone.open(), fill)
    day = clone.day_file()
    own = run(clone.open(), lambda backend: backend.memories.select(EVERYTHING, limit=100))
    secret = next(memory for memory in own if memory.sensitivity is Sensitivity.PRIVATE)
    line = placed(replace(secret, sensitivity=Sensitivity.NORMAL))
    assert line is not None
    clone.rewrite(**{day: clone.git("cat-file", "blob", f"{DEFAULT_REF}:{day}") + f"\n{line.text}\n"})
    run(clone.open(), contents)
    assert Invariant.WITHHELD in {finding.invariant for finding in faults(clone.open())}


def test_a_file_that_was_cut_off_is_damage_and_a_backup_brings_it_back(clone: Clone, tmp_path: Path) -> None:
    run(clone.open(), fill)
    before = run(clone.open(), contents)
    run(clone.open(), lambda backend: upkeep_of(backend).backup(tmp_path / "copy.db"))
    content = clone.file.read_bytes()
    clone.file.write_bytes(content[: len(content) // 2])
    for beside in ("-wal", "-shm"):
        clone.file.with_name(clone.file.name + beside).unlink(missing_ok=True)
    found = faults(clone.open())
    assert Invariant.WHOLE in {finding.invariant for finding in found}
    saved = run(clone.open(), lambda backend: upkeep_of(backend).salvage())
    assert saved.lost
    restored: Restored = run(clone.open(), lambda backend: upkeep_of(backend).restore(tmp_path / "copy.db"))
    assert restored.kept is not None
    assert run(clone.open(), contents) == before
    assert verify(clone.open()) == []
