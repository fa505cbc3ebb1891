"""Taking changes back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from backstory.domain.history import Edit, touched, undo_edits
from backstory.domain.memory import Counters, Deleted, Memory
from backstory.errors import Conflict
from backstory.testing.fakes import START, sample_change, sample_memory

LATER = START + timedelta(hours=1)
ADDED = sample_memory("a", n=1, revision=1)
UPDATED = replace(ADDED, content="b", revision=2)


def present(*memories: Memory) -> dict[object, Memory]:
    return {memory.id: memory for memory in memories}


def test_an_addition_is_undone_by_forgetting() -> None:
    change = sample_change(1, Edit(before=None, after=ADDED))
    (edit,) = undo_edits(change, {ADDED.id: ADDED}, now=LATER)
    assert edit == Edit(before=ADDED, after=replace(ADDED, status=Deleted(since=LATER, reason="undone")))


def test_an_update_is_undone_by_its_former_image() -> None:
    change = sample_change(2, Edit(before=ADDED, after=UPDATED))
    (edit,) = undo_edits(change, {ADDED.id: UPDATED}, now=LATER)
    assert edit == Edit(before=UPDATED, after=replace(ADDED, revision=2))


def test_what_was_counted_since_stays_and_does_not_matter() -> None:
    times = replace(UPDATED.times, surfaced=LATER, used=LATER)
    counted = replace(UPDATED, counters=Counters(surfaced=3), times=times)
    change = sample_change(2, Edit(before=ADDED, after=UPDATED))
    (edit,) = undo_edits(change, {ADDED.id: counted}, now=LATER)
    assert edit.after.content == "a"
    assert (edit.after.counters, edit.after.times) == (counted.counters, times)


def test_a_later_change_stands_in_the_way() -> None:
    change = sample_change(1, Edit(before=None, after=ADDED))
    with pytest.raises(Conflict, match="#1"):
        undo_edits(change, {ADDED.id: UPDATED}, now=LATER)
    with pytest.raises(Conflict, match="#1"):
        undo_edits(change, {}, now=LATER)


def test_a_later_change_that_was_undone_does_not() -> None:
    restored = replace(ADDED, revision=3)
    change = sample_change(1, Edit(before=None, after=ADDED))
    (edit,) = undo_edits(change, {ADDED.id: restored}, now=LATER)
    assert isinstance(edit.after.status, Deleted)


def test_a_change_names_what_it_touched_in_order() -> None:
    other = sample_memory("z")
    edits = (Edit(before=None, after=other), Edit(before=ADDED, after=UPDATED))
    assert touched(sample_change(1, *edits)) == [other.id, ADDED.id]
