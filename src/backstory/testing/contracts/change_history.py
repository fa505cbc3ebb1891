"""The contract of the MemoryStore: changes, written whole and once, and the history that they make."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from backstory.domain.history import Action, Author, Edit, in_sight, touched
from backstory.domain.ids import ChangeId, MemoryId, MessageId, ProjectId, SessionId
from backstory.domain.memory import Sensitivity, Superseded, Visibility
from backstory.domain.provenance import Provenance
from backstory.domain.scope import Audience, Viewer
from backstory.errors import Conflict, InputError
from backstory.testing.contracts.checks import Checks, MakeBackend, expect_error
from backstory.testing.contracts.memory_store import LATER, everything, reworded
from backstory.testing.fakes import ORCHARD, START, add_memories, sample_change, sample_memory, ulid

CHANGE_HISTORY_CHECKS = Checks()


@CHANGE_HISTORY_CHECKS
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


@CHANGE_HISTORY_CHECKS
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


@CHANGE_HISTORY_CHECKS
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


@CHANGE_HISTORY_CHECKS
async def a_change_id_is_committed_once(make: MakeBackend) -> None:
    store = make().memories
    await store.commit(sample_change(1, Edit(before=None, after=sample_memory("one"))))
    await expect_error(Conflict, store.commit(sample_change(1, Edit(before=None, after=sample_memory("two")))))
    assert await store.count(everything()) == 1


@CHANGE_HISTORY_CHECKS
async def a_guarded_change_is_refused_when_somebody_was_first(make: MakeBackend) -> None:
    store = make().memories
    await add_memories(store, sample_memory("Use tabs"))
    add = sample_change(2, Edit(before=None, after=sample_memory("use TABS")))
    await expect_error(Conflict, store.commit(add, absent=everything(same_text="use tabs")))
    assert await store.count(everything()) == 1
    await store.commit(add, absent=everything(same_text="use blanks"))
    assert await store.count(everything()) == 2


@CHANGE_HISTORY_CHECKS
async def a_guard_does_not_stand_in_the_way_of_a_known_key(make: MakeBackend) -> None:
    store = make().memories
    first = await store.commit(sample_change(1, Edit(before=None, after=sample_memory("Use tabs")), key="k"))
    again = sample_change(2, Edit(before=None, after=sample_memory("use tabs")), key="k")
    assert await store.commit(again, absent=everything(same_text="use tabs")) == first


@CHANGE_HISTORY_CHECKS
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


@CHANGE_HISTORY_CHECKS
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


@CHANGE_HISTORY_CHECKS
async def a_change_without_edits_is_refused(make: MakeBackend) -> None:
    store = make().memories
    await expect_error(InputError, store.commit(sample_change(1)))
    assert await store.history() == []


@CHANGE_HISTORY_CHECKS
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
