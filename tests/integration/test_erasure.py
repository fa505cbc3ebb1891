"""Erasing for good: gone from every row, and from every byte of the store's folder."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.erasure import eraser_of
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, MessageId
from backstory.domain.memory import Active, Deleted
from backstory.domain.selection import Selection
from backstory.entrypoints.drive import drive
from backstory.errors import Conflict, NotFound
from backstory.ports.erasing import Erasure, Receipt
from backstory.ports.upkeep import Severity
from backstory.services.erasure import clean_of_traces, own_traces
from backstory.testing.fakes import ORCHARD, START, HashEmbedder, hash_vector, sample_change, sample_memory
from tests.erased import OTHER_TEXT, PERSON, SECRET_TEXT, SESSION, WORDS, Keeper, files_with, filled, keeper, said


@pytest.fixture
def kept(tmp_path: Path) -> Keeper:
    return keeper(open_sqlite(tmp_path / "memory.db", busy_timeout=timedelta(milliseconds=300)))


def erase(kept: Keeper, *refs: str, text: str | None = None, copies: bool = False) -> Receipt | None:
    plan = drive(kept.erasing.plan(refs, text=text, viewer=PERSON))
    return drive(kept.erasing.erase(plan, viewer=PERSON, author=Author.USER, copies=copies))


def test_an_erased_memory_is_in_no_byte_of_the_stores_folder(kept: Keeper, tmp_path: Path) -> None:
    filled(kept)
    assert files_with(tmp_path, *WORDS)
    receipt = erase(kept, "#2")
    assert files_with(tmp_path, SECRET_TEXT, *WORDS) == []
    assert receipt is not None
    assert receipt.finished
    assert receipt.traces == ()
    assert receipt.places == {
        "memories": 2, "history": 7, "messages": 4, "attachments": 1, "titles": 1, "blocks": 2, "digests": 3,
        "dreaming": 1,
    }  # fmt: skip
    drive(kept.backend.memories.close())


def test_the_store_is_whole_afterwards_and_everything_else_is_still_there(kept: Keeper) -> None:
    filled(kept)
    erase(kept, "#2")
    assert kept.backend.upkeep is not None
    findings = drive(kept.backend.upkeep.verify(full=True))
    assert [found for found in findings if found.severity is not Severity.NOTE] == []
    other = drive(kept.backend.memories.by_number(1))
    assert other is not None
    assert (other.content, other.tags) == (OTHER_TEXT, ("fruit",))
    quoting = drive(kept.backend.memories.by_number(3))
    assert quoting is not None
    assert quoting.content == "Remember what was said: [erased] (by Anna)"
    gone = drive(kept.backend.memories.by_number(2))
    assert gone is not None
    assert isinstance(gone.status, Deleted)
    assert (gone.content, gone.tags) == ("[erased]", ())
    assert gone.provenance.session == SESSION
    (message,) = drive(kept.backend.conversations.messages(SESSION))
    texts = {str(part.id): part.text for part in message.parts}
    assert texts["p1"] == "remember that [erased], please"
    assert texts["p2"] == "[erased]"
    assert texts["p6"] == "plums ripen late"
    drive(kept.backend.memories.close())


def test_the_history_says_that_something_was_erased_and_no_undo_brings_it_back(kept: Keeper) -> None:
    filled(kept)
    erase(kept, "#2")
    changes = drive(kept.backend.memories.history())
    assert changes[0].reason == "erased for good"
    assert all("Kühlraum" not in repr(change) for change in changes)
    for change in changes:
        if any(edit.after.n == 2 for edit in change.edits) and len(change.edits) == 1:
            assert {edit.after.content for edit in change.edits} == {"[erased]"}
    with pytest.raises(Conflict):
        drive(kept.remember.undo(changes[0].id, viewer=PERSON, author=Author.USER))
    taken_back = drive(kept.remember.undo(None, viewer=PERSON, author=Author.USER))
    assert 2 not in {edit.after.n for edit in taken_back.edits}
    gone = drive(kept.backend.memories.by_number(2))
    assert gone is not None
    assert isinstance(gone.status, Deleted)
    drive(kept.backend.memories.close())


def test_what_was_replaced_by_an_erased_memory_is_current_again(kept: Keeper) -> None:
    old = kept.say("The gate opens at six")
    kept.say("The gate opens at seven in the Zwetschgenkorb", supersedes=f"#{old.n}")
    erase(kept, "#2")
    (current,) = drive(kept.backend.memories.get([old.id])).values()
    assert (current.content, current.status.__class__.__name__) == ("The gate opens at six", "Active")
    drive(kept.backend.memories.close())


def test_no_undo_lets_an_erased_memory_replace_another_again(kept: Keeper) -> None:
    kept.say("The gate opens at noon")
    kept.say("The gate opens at dawn", supersedes="#1")
    kept.say("Plums are picked in August")
    drive(kept.remember.forget(["#2", "#3"], viewer=PERSON, author=Author.USER))
    erase(kept, "#2")
    taken_back = drive(kept.remember.undo(None, viewer=PERSON, author=Author.USER))
    assert [edit.after.n for edit in taken_back.edits] == [3]
    taken_back = drive(kept.remember.undo(None, viewer=PERSON, author=Author.USER))
    assert [edit.after.n for edit in taken_back.edits] == [3]
    with pytest.raises(NotFound):
        drive(kept.remember.undo(None, viewer=PERSON, author=Author.USER))
    first, plums = (drive(kept.backend.memories.by_number(n)) for n in (1, 3))
    assert first is not None
    assert plums is not None
    assert isinstance(first.status, Active)
    drive(kept.backend.memories.close())


def test_a_text_goes_wherever_it_stands_and_what_says_nothing_else_goes_as_a_whole(
    kept: Keeper, tmp_path: Path
) -> None:
    kept.say("Zwetschgenkorb")
    kept.say("The key lies in the zwetschgenkorb by the door", tags=["zwetschgenkorb"])
    receipt = erase(kept, text="Zwetschgenkorb")
    assert receipt is not None
    whole, within = (drive(kept.backend.memories.by_number(n)) for n in (1, 2))
    assert whole is not None
    assert within is not None
    assert isinstance(whole.status, Deleted)
    assert (within.content, within.tags) == ("The key lies in the [erased] by the door", ("[erased]",))
    assert files_with(tmp_path, "Zwetschgenkorb") == []
    drive(kept.backend.memories.close())


def test_a_short_memory_is_not_taken_out_of_the_middle_of_other_texts(kept: Keeper) -> None:
    kept.say("Use tab")
    kept.say("We use tabs everywhere")
    erase(kept, "#1")
    other = drive(kept.backend.memories.by_number(2))
    assert other is not None
    assert other.content == "We use tabs everywhere"
    drive(kept.backend.memories.close())


def test_frozen_texts_digests_and_summaries_that_held_it_hold_it_no_more(kept: Keeper) -> None:
    memory = filled(kept)
    before = drive(kept.backend.digests.revision(SESSION))
    erase(kept, "#2")
    blocks = drive(kept.backend.conversations.blocks([MessageId("m1"), MessageId("m2")]))
    assert blocks[MessageId("m1")].text == ""
    assert blocks[MessageId("m1")].shown[0].memory == memory.id
    assert blocks[MessageId("m2")].text == "<memory>[erased]</memory>"
    assert drive(kept.backend.conversations.snapshot(SESSION)) is None
    digest = drive(kept.backend.digests.digest(SESSION))
    assert digest is not None
    assert digest.pieces[0].text == "Somebody said: [erased]"
    assert digest.state.revision > before
    assert drive(kept.backend.dreams.summary(ORCHARD)) is None
    drive(kept.backend.memories.close())


def test_what_a_host_tells_once_more_stays_erased(kept: Keeper, tmp_path: Path) -> None:
    filled(kept)
    erase(kept, "#2")
    drive(kept.backend.conversations.put_messages([said(SECRET_TEXT)]))
    part = said(SECRET_TEXT).parts[0]
    drive(kept.backend.conversations.put_part(part, message=MessageId("m1"), session=SESSION))
    drive(kept.backend.memories.close())
    assert files_with(tmp_path, *WORDS) == []


def test_whoever_read_it_before_cannot_write_it_back(kept: Keeper) -> None:
    filled(kept)
    stale = drive(kept.backend.memories.by_number(3))
    assert stale is not None
    erase(kept, "#2")
    edit = Edit(before=stale, after=replace(stale, pinned=True))
    change = Change(
        id=ChangeId(kept.ids.new_id()), at=START, author=Author.USER, action=Action.PIN, edits=(edit,)
    )  # fmt: skip
    with pytest.raises(Conflict):
        drive(kept.backend.memories.commit(change))
    drive(kept.backend.memories.close())


def erasure_while(kept: Keeper, meanwhile: Callable[[], None]) -> Mapping[str, int]:
    """Erase "quince", and let something happen each time that the first text is looked at."""
    first = eraser_of(["under the quince"])

    def rewrite(text: str) -> str:
        if text == OTHER_TEXT:
            meanwhile()
        return first(text)

    erasure = Erasure(id=ChangeId(kept.ids.new_id()), at=START, memories=(), rewrite=rewrite, reason="erased")
    assert kept.backend.eraser is not None
    return drive(kept.backend.eraser.erase(erasure))


def test_others_write_while_it_is_looked_for_and_what_they_write_goes_too(kept: Keeper, tmp_path: Path) -> None:
    kept.say(OTHER_TEXT)
    other = keeper(open_sqlite(tmp_path / "memory.db", busy_timeout=timedelta(0)))
    late = iter(["the key lies under the quince"])

    def write() -> None:
        for text in late:
            add = Edit(before=None, after=sample_memory(text))
            drive(other.backend.memories.commit(sample_change(77, add)))

    counts = erasure_while(kept, write)
    assert counts["memories"] == 1
    memory = drive(kept.backend.memories.by_number(2))
    assert memory is not None
    assert memory.content == "the key lies [erased]"
    for each in (kept, other):
        drive(each.backend.memories.close())


def test_under_writers_who_never_rest_it_keeps_them_out_in_the_end(kept: Keeper, tmp_path: Path) -> None:
    kept.say(OTHER_TEXT)
    kept.say("the key lies under the quince")
    numbers = iter(range(1_000_000))

    def write() -> None:
        raw = sqlite3.connect(tmp_path / "memory.db", timeout=0, isolation_level=None)
        with closing(raw), suppress(sqlite3.OperationalError):
            raw.execute("INSERT INTO meta (name, value) VALUES (?, '')", (f"busy {next(numbers)}",))

    assert erasure_while(kept, write)["memories"] == 1
    assert next(numbers) > 1
    drive(kept.backend.memories.close())


def test_another_reader_is_waited_for_a_while_and_then_it_says_how_to_finish(kept: Keeper, tmp_path: Path) -> None:
    filled(kept)
    with closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memories").fetchone()
        receipt = erase(kept, "#2")
        assert receipt is not None
        assert not receipt.finished
        assert any("another process has the store open" in line for line in receipt.remains)
        assert own_traces(receipt) != []
        reader.execute("ROLLBACK")
    (finished,) = drive(kept.erasing.finish(viewer=PERSON))
    assert (finished.finished, finished.traces) == (True, None)  # what was found before is no news any more
    assert finished.remains == receipt.remains[1:]
    assert clean_of_traces(finished)
    assert files_with(tmp_path, *WORDS) == []
    assert drive(kept.erasing.finish(viewer=PERSON)) == []
    drive(kept.backend.memories.close())


def test_copies_beside_the_store_are_named_and_removed_when_asked(kept: Keeper, tmp_path: Path) -> None:
    filled(kept)
    assert kept.backend.upkeep is not None
    backup = tmp_path / "elsewhere" / "copy.db"
    backup.parent.mkdir()
    drive(kept.backend.upkeep.backup(backup))
    restored = drive(kept.backend.upkeep.restore(backup))
    assert restored.kept is not None
    receipt = erase(kept, "#2")
    assert receipt is not None
    assert [trace.beside for trace in receipt.traces or () if trace.where == str(restored.kept)] == [True]
    assert any(str(restored.kept) in line for line in receipt.remains)
    drive(kept.erasing.finish(viewer=PERSON, copies=True))
    assert not restored.kept.exists()
    assert files_with(tmp_path, *WORDS) == ["copy.db"]  # that is in no place that we know of
    drive(kept.backend.memories.close())


KILLED = """
import os, signal, sys
from pathlib import Path
from backstory.adapters.stores.sqlite import erased_rows, erased_bytes
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.history import Action, Author, Change, Edit
from backstory.entrypoints.drive import drive
from backstory.errors import Conflict
from tests.erased import PERSON, keeper

def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[2] == "within":
    erased_rows._tell_history = die
else:
    erased_bytes._empty_log = die
kept = keeper(open_sqlite(Path(sys.argv[1])), series=1)
plan = drive(kept.erasing.plan(["#2"], text=None, viewer=PERSON))
drive(kept.erasing.erase(plan, viewer=PERSON, author=Author.USER))
"""


@pytest.mark.parametrize("moment", ["within", "after"])
def test_killed_at_any_moment_it_is_there_or_gone_and_a_second_run_finishes(
    kept: Keeper, tmp_path: Path, moment: str
) -> None:
    filled(kept)
    drive(kept.backend.memories.close())
    store = tmp_path / "memory.db"
    command = [sys.executable, "-c", KILLED, str(store), moment]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, timeout=240)
    assert done.returncode == -signal.SIGKILL
    present = drive(kept.backend.memories.by_number(2))
    assert present is not None
    assert present.content == (SECRET_TEXT if moment == "within" else "[erased]")
    assert kept.backend.upkeep is not None
    assert [f for f in drive(kept.backend.upkeep.verify(full=True)) if f.severity is not Severity.NOTE] == []
    drive(kept.erasing.finish(viewer=PERSON))
    erase(kept, "#2")
    assert files_with(tmp_path, *WORDS) == []
    (receipt,) = drive(kept.erasing.receipts(viewer=PERSON))
    assert receipt.finished
    drive(kept.backend.memories.close())


def test_a_running_process_lets_go_of_the_vectors_that_it_holds(kept: Keeper, tmp_path: Path) -> None:
    model = drive(HashEmbedder().model())
    vector = hash_vector(SECRET_TEXT, dimension=model.dimension)
    filled(kept)
    other = open_sqlite(tmp_path / "memory.db")

    def nearest() -> list[MemoryId]:
        selection = Selection(viewer=PERSON, now=START)
        return [hit.id for hit in drive(other.vectors.search_vectors(vector, selection, model=model, limit=9))]

    quoting = drive(other.memories.by_number(3))
    assert quoting is not None
    assert quoting.id in nearest()
    erase(kept, "#2")
    assert quoting.id not in nearest()
    assert len(nearest()) == 1
    assert drive(other.evidence.vector_counts()) == {model.name: 1}
    drive(other.memories.close())
    drive(kept.backend.memories.close())


@pytest.mark.parametrize("text", ["user", "update", "tree", "0000", "node", "active", "message", "bash"])
def test_a_text_that_is_also_a_word_of_ours_breaks_nothing(kept: Keeper, text: str) -> None:
    filled(kept)
    kept.say(f"it says {text} here")
    erase(kept, text=text)
    assert kept.backend.upkeep is not None
    findings = drive(kept.backend.upkeep.verify(full=True))
    assert [found for found in findings if found.severity is not Severity.NOTE] == []
    said_again = drive(kept.backend.memories.by_number(4))
    assert said_again is not None
    assert said_again.content == "it says [erased] here"
    assert drive(kept.backend.memories.history())
    assert drive(kept.backend.conversations.recent_blocks())
    assert drive(kept.backend.digests.digest(SESSION)) is not None
    drive(kept.backend.memories.close())
