"""Taking changes back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from backstory.domain.history import Edit, doubts_settled, sources_lost, touched, undo_edits
from backstory.domain.ids import ProjectId
from backstory.domain.memory import Conflicted, Counters, Deleted, Memory, Sensitivity, Superseded, Visibility
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


def test_a_rating_is_undone_like_any_other_decision() -> None:
    before = replace(ADDED, counters=Counters(helpful=1, irrelevant=4, surfaced=2))
    after = replace(before, counters=Counters(helpful=2, irrelevant=0, surfaced=2), revision=2)
    counted = replace(after, counters=replace(after.counters, surfaced=9, recalled=5, sessions=3))
    change = sample_change(2, Edit(before=before, after=after))
    (edit,) = undo_edits(change, {ADDED.id: counted}, now=LATER)
    assert edit.after.counters == Counters(helpful=1, irrelevant=4, surfaced=9, recalled=5, sessions=3)


def test_a_later_rating_stands_in_the_way_of_undoing() -> None:
    rated = replace(UPDATED, counters=Counters(helpful=1), revision=3)
    change = sample_change(2, Edit(before=ADDED, after=UPDATED))
    with pytest.raises(Conflict, match="#1"):
        undo_edits(change, {ADDED.id: rated}, now=LATER)


DERIVED: dict[str, tuple[dict[str, object], bool, bool]] = {
    "its text": ({"content": "b"}, True, True),
    "forgotten": ({"status": Deleted(since=LATER)}, True, True),
    "superseded": ({"status": Superseded(by=ADDED.id, since=LATER)}, True, False),
    "private": ({"sensitivity": Sensitivity.PRIVATE}, True, False),
    "local-only": ({"sensitivity": Sensitivity.LOCAL_ONLY}, True, False),
    "another project's": ({"project": ProjectId("elsewhere")}, True, False),
    "everybody's": ({"visibility": Visibility.GLOBAL}, True, False),
    "in conflict": ({"status": Conflicted(evidence="?", since=LATER)}, False, False),
    "tagged": ({"tags": ("ripe",), "pinned": True, "counters": Counters(helpful=1)}, False, False),
}
"""What becomes of a memory, and whether a summary of it and a doubt about it go."""


@pytest.mark.parametrize(("fields", "summary", "doubt"), DERIVED.values(), ids=list(DERIVED))
def test_what_was_derived_goes_with_what_it_was_derived_from(
    fields: dict[str, object], summary: bool, doubt: bool
) -> None:
    after = replace(ADDED, **fields)  # type: ignore[arg-type]  # fields of Memory
    added = sample_memory("new", status=Deleted(since=LATER))
    change = sample_change(2, Edit(before=None, after=added), Edit(before=ADDED, after=after))
    assert sources_lost(change) == ([ADDED.id] if summary else [])
    assert doubts_settled(change) == ([ADDED.id] if doubt else [])


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
