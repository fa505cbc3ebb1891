"""The contract of the MemoryStore: writing and history. Counters are in ``counters.py``, what a selection means is in
``selections.py``."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from backstory.domain.history import Action, Author, Edit, in_sight, touched
from backstory.domain.ids import ChangeId, MemoryId, MessageId, ProjectId, SessionId
from backstory.domain.memory import (
    Conflicted,
    Deleted,
    Memory,
    Sensitivity,
    Superseded,
    Visibility,
)
from backstory.domain.provenance import Provenance
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
async def a_change_is_written_as_a_whole_or_not_at_all(make: MakeBackend) -> None:
    backend = make()
    store = backend.memories
    one, two = await add_memories(store, sample_memory("one", tags=("old",)), sample_memory("two"))
    stale = replace(two, revision=7)
    edits = (
        Edit(before=one, after=replace(one, content="kiwi", tags=("new",))),
        Edit(before=None, after=sample_memory("lychee")),
        reworded(stale, "mango"),
    )
    await expect_error(Conflict, store.commit(sample_change(3, *edits)))
    assert await store.get([one.id, two.id, edits[1].after.id]) == {one.id: one, two.id: two}
    assert await store.tag_counts(everything(), limit=9) == [("old", 1)]
    assert [change.id for change in await store.history()] == [ulid(2, series=1), ulid(1, series=1)]
    search = await backend.text.search_text(["kiwi", "lychee", "mango"], everything(), limit=9)
    assert (search.hits, search.documents) == ([], 2)


@MEMORY_STORE_CHECKS
async def several_edits_make_one_change(make: MakeBackend) -> None:
    store = make().memories
    (old,) = await add_memories(store, sample_memory("old"))
    new = sample_memory("new")
    superseded = replace(old, status=Superseded(by=new.id, since=LATER))
    change = sample_change(
        2,
        Edit(before=None, after=new),
        Edit(before=old, after=superseded),
        at=LATER,
        author=Author.AGENT,
        action=Action.SUPERSEDE,
        reason="because “it” changed",
        session=SessionId("ses"),
        undoes=ChangeId(ulid(1, series=1)),
        key="k",
    )
    committed = await store.commit(change)
    assert [edit.after.revision for edit in committed.edits] == [1, 2]
    assert committed == replace(change, edits=committed.edits)
    assert await store.change(change.id) == committed
    assert await store.history(memory=old.id) == [committed, await store.change(ChangeId(ulid(1, series=1)))]
    assert await store.history(memory=new.id) == [committed]


@MEMORY_STORE_CHECKS
async def a_key_is_committed_once(make: MakeBackend) -> None:
    store = make().memories
    first = await store.commit(sample_change(1, Edit(before=None, after=sample_memory("one")), key="capture:m1"))
    again = await store.commit(sample_change(2, Edit(before=None, after=sample_memory("two")), key="capture:m1"))
    assert again == first
    assert await store.count(everything()) == 1
    stale = reworded(replace(first.edits[0].after, revision=5), "x")
    assert await store.commit(sample_change(3, stale, key="capture:m1")) == first
    await store.commit(sample_change(4, Edit(before=None, after=sample_memory("three")), key="capture:m2"))
    assert await store.count(everything()) == 2


@MEMORY_STORE_CHECKS
async def a_change_id_is_committed_once(make: MakeBackend) -> None:
    store = make().memories
    await store.commit(sample_change(1, Edit(before=None, after=sample_memory("one"))))
    await expect_error(Conflict, store.commit(sample_change(1, Edit(before=None, after=sample_memory("two")))))
    assert await store.count(everything()) == 1


@MEMORY_STORE_CHECKS
async def a_guarded_change_is_refused_when_somebody_was_first(make: MakeBackend) -> None:
    store = make().memories
    await add_memories(store, sample_memory("Use tabs"))
    add = sample_change(2, Edit(before=None, after=sample_memory("use TABS")))
    await expect_error(Conflict, store.commit(add, absent=everything(same_text="use tabs")))
    assert await store.count(everything()) == 1
    await store.commit(add, absent=everything(same_text="use blanks"))
    assert await store.count(everything()) == 2


@MEMORY_STORE_CHECKS
async def a_guard_does_not_stand_in_the_way_of_a_known_key(make: MakeBackend) -> None:
    store = make().memories
    first = await store.commit(sample_change(1, Edit(before=None, after=sample_memory("Use tabs")), key="k"))
    again = sample_change(2, Edit(before=None, after=sample_memory("use tabs")), key="k")
    assert await store.commit(again, absent=everything(same_text="use tabs")) == first


@MEMORY_STORE_CHECKS
async def history_is_newest_first_and_limited(make: MakeBackend) -> None:
    store = make().memories
    times = [START, START + timedelta(seconds=2), START + timedelta(seconds=1), START]
    memories = [sample_memory(f"fact {n}", at=at) for n, at in enumerate(times)]
    await add_memories(store, *memories)
    newest = [ulid(n, series=1) for n in (2, 3, 4, 1)]
    assert [change.id for change in await store.history()] == newest
    assert [change.id for change in await store.history(limit=2)] == newest[:2]
    assert [change.id for change in await store.history(memory=memories[0].id)] == [ulid(1, series=1)]
    assert await store.history(memory=MemoryId(ulid(404))) == []
    assert await store.change(ChangeId(ulid(404))) is None


@MEMORY_STORE_CHECKS
async def what_a_memory_was_made_from_comes_back_in_it_and_in_its_history(make: MakeBackend) -> None:
    store = make().memories
    sources = (MemoryId(ulid(7)), MemoryId(ulid(3)), MemoryId("no such form"))
    made = Provenance(derived_from=sources, messages=(MessageId("m1"),))
    (memory,) = await add_memories(store, sample_memory("derived", provenance=made))
    assert (await store.get([memory.id]))[memory.id].provenance == made
    plain = replace(memory, provenance=Provenance())
    change = await store.commit(sample_change(2, Edit(before=memory, after=plain)))
    assert (await store.get([memory.id]))[memory.id].provenance == Provenance()
    [second, first] = await store.history(memory=memory.id)
    assert second == await store.change(change.id)
    assert second.edits[0].before == memory
    assert first.edits[0].after.provenance.derived_from == sources


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


@MEMORY_STORE_CHECKS
async def a_change_without_edits_is_refused(make: MakeBackend) -> None:
    store = make().memories
    await expect_error(InputError, store.commit(sample_change(1)))
    assert await store.history() == []


@MEMORY_STORE_CHECKS
async def a_viewer_sees_the_changes_of_what_was_always_in_its_sight(make: MakeBackend) -> None:
    store = make().memories
    elsewhere = ProjectId(ulid(9, series=2))
    samples = (
        sample_memory("ours"),
        sample_memory("theirs", project=elsewhere),
        sample_memory("everybody's", visibility=Visibility.GLOBAL, project=None),
        sample_memory("of a session", visibility=Visibility.SESSION, session=SessionId("ses-7")),
        sample_memory("for people", sensitivity=Sensitivity.LOCAL_ONLY),
        sample_memory("hidden later"),
        sample_memory("moved here", project=elsewhere),
    )
    stored = [(await add_memories(store, memory, first_change=n))[0] for n, memory in enumerate(samples, start=1)]
    hidden = replace(stored[5], sensitivity=Sensitivity.LOCAL_ONLY)
    moved = replace(stored[6], project=ORCHARD)
    await store.commit(sample_change(8, Edit(before=stored[5], after=hidden)))
    await store.commit(sample_change(9, Edit(before=stored[6], after=moved)))
    both = [Edit(before=memory, after=replace(memory, pinned=True)) for memory in stored[:2]]
    await store.commit(sample_change(10, *both))
    viewers = [
        Viewer(project=project, session=session, audience=audience, all_projects=wide)
        for project in (ORCHARD, elsewhere, None)
        for session in (SessionId("ses-7"), None)
        for audience in Audience
        for wide in (False, True)
    ]
    everything_told = await store.history()
    current = await store.get([memory.id for memory in samples])
    for viewer in viewers:
        meant = [change for change in everything_told if in_sight(change, current, viewer)]
        assert await store.history(viewer=viewer) == meant
        assert await store.history(viewer=viewer, limit=2) == meant[:2]
        assert await store.history(viewer=viewer, memory=stored[0].id) == [
            change for change in meant if stored[0].id in touched(change)
        ]
    model = Viewer(project=ORCHARD)
    assert [change.edits[0].after.content for change in await store.history(viewer=model)] == ["everybody's", "ours"]
