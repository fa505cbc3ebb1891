"""Whatever memories there are: no pass crosses a border, lets less trusted text win, or removes anything twice."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.domain.consolidation import NOTHING_BEFORE, comparable, like_worded, near_in_meaning, same_words
from backstory.domain.ids import MemoryId, ProjectId, SessionId
from backstory.domain.memory import Memory, Sensitivity, Source, Visibility
from backstory.domain.merged_memory import merged
from backstory.domain.near_duplicates import Verdict, compare
from backstory.domain.provenance import Origin, trust
from backstory.domain.restatement import readers
from backstory.domain.scope import Audience
from backstory.testing.fakes import ORCHARD, START, sample_memory, ulid

TEXTS = [
    "Use uv for every install.",
    "use UV for every install",
    "Please use uv for every install.",
    "Use pip for every install.",
    "Never use uv for every install.",
    "The build needs Go 1.22.",
    "The build needs Go 1.22.4.",
    "The build needs Go 1.23.",
    "Go 1.22.4 is what the build needs.",
]


@st.composite
def memories(draw: st.DrawFn) -> list[Memory]:
    """Up to a dozen memories with texts that are alike."""
    found = []
    for n in range(1, draw(st.integers(2, 12)) + 1):
        found.append(
            sample_memory(
                draw(st.sampled_from(TEXTS)),
                id=MemoryId(ulid(n)),
                n=n,
                at=START + timedelta(minutes=draw(st.integers(0, 9))),
                visibility=draw(st.sampled_from(Visibility)),
                project=draw(st.sampled_from([ORCHARD, ProjectId(ulid(7, series=2)), None])),
                session=draw(st.sampled_from([SessionId("ses-1"), SessionId("ses-2")])),
                sensitivity=draw(st.sampled_from(Sensitivity)),
                origin=draw(st.sampled_from(Origin)),
                source=draw(st.sampled_from(Source)),
                pinned=draw(st.booleans()),
            )
        )
    return found


@settings(max_examples=150, deadline=None)
@given(memories())
def test_whatever_goes_is_stood_for_by_something_trusted_as_much_for_the_same_readers(told: list[Memory]) -> None:
    left, before = comparable(told, now=START + timedelta(days=1), audience=Audience.PERSON), NOTHING_BEFORE
    gone = set[MemoryId]()
    stood_for = set[MemoryId]()
    for step in (same_words, like_worded, near_in_meaning):
        if step is same_words:
            found = same_words(left)
        elif step is like_worded:
            found = like_worded(left, before)
        else:
            found = near_in_meaning(left, {place: range(place) for place in range(len(left))}, before)
        for group in found.groups:
            for memory in group.removed:
                assert memory.id not in gone | stood_for
                assert readers(memory) == readers(group.kept)
                assert trust(memory.origin) <= trust(group.kept.origin)
                assert compare(memory.content, group.kept.content).verdict is not Verdict.DIFFERENT
                gone.add(memory.id)
            assert group.kept.id not in gone
            stood_for.add(group.kept.id)
            whole = merged(group.kept, group.removed)
            assert (whole.origin, whole.content) == (group.kept.origin, group.kept.content)
        for pair in found.doubtful:
            assert readers(pair.memory) == readers(pair.other)
        before = before.and_then(found)
        left = [memory for memory in left if memory.id not in found.gone]
    assert {memory.id for memory in left} | gone == {memory.id for memory in told}
