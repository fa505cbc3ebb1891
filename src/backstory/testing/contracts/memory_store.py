"""The contract of the MemoryStore: what is written and read. Changes and the history are in ``change_history.py``,
counters in ``counters.py``, what a selection means in ``selections.py``."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from backstory.domain.history import Action, Edit
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.memory import Conflicted, Deleted, Kind, Memory, Superseded, Visibility
from backstory.domain.outline import outline_of
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.errors import Conflict, InputError
from backstory.testing.contracts.checks import Checks, MakeBackend, expect_error
from backstory.testing.fakes import FULL_MEMORY, ORCHARD, START, add_memories, sample_change, sample_memory, ulid

MEMORY_STORE_CHECKS = Checks()
LATER = START + timedelta(hours=1)


def everything(**conditions: object) -> Selection:
    """All current memories, as a person sees them in every project."""
    viewer = Viewer(project=ORCHARD, audience=Audience.PERSON, all_projects=True)
    return replace(Selection(viewer=viewer, now=LATER), **conditions)  # type: ignore[arg-type]  # fields of Selection


def reworded(memory: Memory, content: str) -> Edit:
    """The edit that changes a memory's text."""
    return Edit(before=memory, after=replace(memory, content=content))


@MEMORY_STORE_CHECKS
async def a_memory_comes_back_as_it_was_added(make: MakeBackend) -> None:
    store = make().memories
    (stored,) = await add_memories(store, FULL_MEMORY)
    assert stored == replace(FULL_MEMORY, n=stored.n, revision=1)
    assert await store.get([FULL_MEMORY.id]) == {FULL_MEMORY.id: stored}
    assert await store.by_number(stored.n) == stored


@MEMORY_STORE_CHECKS
async def every_status_comes_back(make: MakeBackend) -> None:
    store = make().memories
    statuses = (
        Conflicted(evidence="the log says otherwise", since=START, against=MemoryId(ulid(9))),
        Superseded(by=MemoryId(ulid(8)), since=START),
        Deleted(since=START, reason="wrong"),
        Deleted(since=START),
    )
    memories = [sample_memory(f"status {n}", status=status) for n, status in enumerate(statuses)]
    stored = await add_memories(store, *memories)
    found = await store.get([memory.id for memory in memories])
    assert [found[memory.id].status for memory in stored] == list(statuses)


@MEMORY_STORE_CHECKS
async def numbers_count_up_and_are_never_given_again(make: MakeBackend) -> None:
    store = make().memories
    first, second = await add_memories(store, sample_memory("one"), sample_memory("two"))
    gone = replace(second, status=Deleted(since=LATER))
    await store.commit(sample_change(3, Edit(before=second, after=gone), action=Action.FORGET))
    failing = [Edit(before=None, after=sample_memory("three")), Edit(before=None, after=first)]
    await expect_error(Conflict, store.commit(sample_change(4, *failing)))
    (fourth,) = await add_memories(store, sample_memory("four"), first_change=5)
    assert first.n < second.n < fourth.n


@MEMORY_STORE_CHECKS
async def a_number_in_the_draft_does_not_matter(make: MakeBackend) -> None:
    store = make().memories
    stored = await add_memories(store, sample_memory("one", n=7, revision=9), sample_memory("two", n=7))
    assert stored[0].n != stored[1].n
    assert [memory.revision for memory in stored] == [1, 1]


@MEMORY_STORE_CHECKS
async def unknown_ids_and_numbers_find_nothing(make: MakeBackend) -> None:
    store = make().memories
    (stored,) = await add_memories(store, sample_memory())
    assert await store.get([]) == {}
    assert await store.get([MemoryId(ulid(404)), MemoryId("no such form"), stored.id]) == {stored.id: stored}
    for number in (0, -1, -stored.n, stored.n + 1, 2**63 - 1, 2**63, 10**30):
        assert await store.by_number(number) is None


@MEMORY_STORE_CHECKS
async def many_ids_are_found_at_once(make: MakeBackend) -> None:
    store = make().memories
    memories = [sample_memory(f"fact {n}", tags=(f"t{n}",)) for n in range(1201)]
    await store.commit(sample_change(1, *(Edit(before=None, after=memory) for memory in memories)))
    found = await store.get([memory.id for memory in memories])
    assert [found[memory.id].tags for memory in memories] == [memory.tags for memory in memories]
    assert len(await store.select(everything(), limit=5000)) == 1201


@MEMORY_STORE_CHECKS
async def each_write_raises_the_revision_and_keeps_the_number(make: MakeBackend) -> None:
    store = make().memories
    (memory,) = await add_memories(store, sample_memory())
    change = await store.commit(sample_change(2, reworded(memory, "other"), action=Action.UPDATE))
    assert change.edits[0].after == replace(memory, content="other", revision=2)
    assert (await store.get([memory.id]))[memory.id] == change.edits[0].after


@MEMORY_STORE_CHECKS
async def a_stale_write_is_a_conflict(make: MakeBackend) -> None:
    store = make().memories
    (memory,) = await add_memories(store, sample_memory())
    await store.commit(sample_change(2, reworded(memory, "first")))
    await expect_error(Conflict, store.commit(sample_change(3, reworded(memory, "second"))))
    assert (await store.get([memory.id]))[memory.id].content == "first"
    assert await store.change(ChangeId(ulid(3, series=1))) is None


@MEMORY_STORE_CHECKS
async def changing_what_is_not_there_is_a_conflict(make: MakeBackend) -> None:
    store = make().memories
    await expect_error(Conflict, store.commit(sample_change(1, reworded(sample_memory(n=1, revision=1), "x"))))
    assert await store.history() == []


@MEMORY_STORE_CHECKS
async def adding_an_id_twice_is_a_conflict(make: MakeBackend) -> None:
    store = make().memories
    await add_memories(store, sample_memory())
    await expect_error(Conflict, store.commit(sample_change(2, Edit(before=None, after=sample_memory()))))
    twice = Edit(before=None, after=sample_memory("new"))
    await expect_error(Conflict, store.commit(sample_change(3, twice, twice)))
    assert await store.count(everything()) == 1


@MEMORY_STORE_CHECKS
async def a_memory_stands_once_in_a_change(make: MakeBackend) -> None:
    store = make().memories
    (memory,) = await add_memories(store, sample_memory())
    edits = (reworded(memory, "a"), reworded(memory, "b"))
    await expect_error(Conflict, store.commit(sample_change(2, *edits)))
    assert (await store.get([memory.id]))[memory.id] == memory


@MEMORY_STORE_CHECKS
async def all_that_are_meant_are_outlined_the_oldest_words_first(make: MakeBackend) -> None:
    store = make().memories
    [_, late, _, _] = await add_memories(
        store,
        sample_memory("one", tags=("db", "ci"), area="deploy/staging"),
        sample_memory("two", kind=Kind.BLOCKER, visibility=Visibility.GLOBAL, project=None),
        sample_memory("three", tags=("ci",)),
        sample_memory("four", status=Deleted(since=START)),
    )
    anew = replace(late, content="two, reworded", times=replace(late.times, updated=START - timedelta(days=9)))
    await store.commit(sample_change(9, Edit(before=late, after=anew)))
    for selection in (everything(), everything(tags=("ci",))):
        meant = await store.select(selection, limit=9)
        expected = sorted(map(outline_of, meant), key=lambda outline: (outline.updated, outline.n))
        assert await store.outlines(selection) == expected
    assert [outline.content for outline in await store.outlines(everything())] == ["two, reworded", "one", "three"]


@MEMORY_STORE_CHECKS
async def tags_are_counted_most_used_first(make: MakeBackend) -> None:
    store = make().memories
    await add_memories(
        store,
        sample_memory("one", tags=("ci", "db")),
        sample_memory("two", tags=("db", "äther")),
        sample_memory("three", tags=("zoo",), status=Deleted(since=START)),
    )
    assert await store.tag_counts(everything(), limit=9) == [("db", 2), ("ci", 1), ("äther", 1)]
    assert await store.tag_counts(everything(), limit=1) == [("db", 2)]
    assert await store.tag_counts(everything(tags=("ci",)), limit=9) == [("ci", 1), ("db", 1)]


@MEMORY_STORE_CHECKS
async def tags_keep_their_order_when_they_change(make: MakeBackend) -> None:
    store = make().memories
    (memory,) = await add_memories(store, sample_memory(tags=("b", "a", "c")))
    await store.commit(sample_change(2, Edit(before=memory, after=replace(memory, tags=("c", "b")))))
    assert (await store.get([memory.id]))[memory.id].tags == ("c", "b")


@MEMORY_STORE_CHECKS
async def half_a_character_is_refused_or_kept_but_breaks_nothing(make: MakeBackend) -> None:
    store = make().memories
    half = replace(sample_memory("plain"), content="half \ud83d emoji")
    try:
        await add_memories(store, half)
    except InputError:
        assert await store.count(everything()) == 0
    else:
        assert (await store.get([half.id]))[half.id].content == half.content
    await add_memories(store, sample_memory("after"), first_change=2)
    try:
        assert await store.count(everything(contains="\ud83d no such text")) == 0
    except InputError:
        assert await store.count(everything()) > 0


@MEMORY_STORE_CHECKS
async def closing_twice_is_fine(make: MakeBackend) -> None:
    store = make().memories
    await add_memories(store, sample_memory())
    await store.close()
    await store.close()
