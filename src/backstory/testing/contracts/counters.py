"""The contract of the MemoryStore on counters: what is counted, and what is decided."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from backstory.domain.history import Action, Edit, undo_edits
from backstory.domain.ids import MemoryId, SessionId
from backstory.domain.memory import Counters
from backstory.ports.store import Use
from backstory.testing.contracts.checks import Checks, MakeBackend
from backstory.testing.fakes import START, add_memories, sample_change, sample_memory, ulid

COUNTER_CHECKS = Checks()
LATER = START + timedelta(hours=1)


@COUNTER_CHECKS
async def use_is_counted_by_kind_and_by_session(make: MakeBackend) -> None:
    store = make().memories
    (memory,) = await add_memories(store, sample_memory())
    for session, surfaced in (("a", False), ("a", True), ("b", True), (None, True)):
        use = Use(
            memories=(memory.id, MemoryId(ulid(404))),
            at=LATER,
            session=None if session is None else SessionId(session),
            surfaced=surfaced,
        )
        await store.record_use(use)
    found = (await store.get([memory.id]))[memory.id]
    assert found.counters == Counters(recalled=1, surfaced=3, sessions=2)
    assert (found.times.used, found.times.surfaced) == (LATER, LATER)
    assert (found.revision, found.times.confirmed) == (1, START)


@COUNTER_CHECKS
async def a_write_never_takes_back_what_was_counted(make: MakeBackend) -> None:
    store = make().memories
    (memory,) = await add_memories(store, sample_memory())
    await store.record_use(Use(memories=(memory.id,), at=LATER, session=None, surfaced=True))
    await store.record_use(Use(memories=(memory.id,), at=LATER, session=None, surfaced=False))
    await store.commit(sample_change(2, Edit(before=memory, after=replace(memory, content="other"))))
    found = (await store.get([memory.id]))[memory.id]
    assert found.counters == Counters(surfaced=1, recalled=1)
    assert (found.times.surfaced, found.times.used) == (LATER, LATER)


@COUNTER_CHECKS
async def helpful_and_irrelevant_are_written_as_decided_and_the_rest_stays_as_counted(make: MakeBackend) -> None:
    store = make().memories
    (memory,) = await add_memories(store, sample_memory(counters=Counters(helpful=2, irrelevant=3, sessions=4)))
    await store.record_use(Use(memories=(memory.id,), at=LATER, session=SessionId("a"), surfaced=True))
    rated = replace(memory, counters=Counters(helpful=7, irrelevant=1, surfaced=99, recalled=99, sessions=99))
    edit = Edit(before=memory, after=replace(rated, times=replace(memory.times, surfaced=START, used=START)))
    change = await store.commit(sample_change(2, edit, action=Action.FEEDBACK))
    found = (await store.get([memory.id]))[memory.id]
    assert found.counters == Counters(helpful=7, irrelevant=1, surfaced=1, recalled=0, sessions=5)
    assert (found.times.surfaced, found.times.used, found.revision) == (LATER, None, 2)
    kept = (await store.history(memory=memory.id))[0].edits[0]
    assert (kept.after.counters.helpful, kept.after.counters.irrelevant) == (7, 1)
    assert change.edits[0].after.counters.helpful == 7
    await store.commit(sample_change(3, Edit(before=found, after=replace(found, counters=Counters()))))
    assert (await store.get([memory.id]))[memory.id].counters == Counters(surfaced=1, sessions=5)


@COUNTER_CHECKS
async def undoing_a_rating_takes_it_back_and_leaves_what_was_counted(make: MakeBackend) -> None:
    store = make().memories
    (memory,) = await add_memories(store, sample_memory(counters=Counters(helpful=1, irrelevant=2)))
    await store.record_use(Use(memories=(memory.id,), at=LATER, session=None, surfaced=True))
    current = (await store.get([memory.id]))[memory.id]
    rated = replace(current, counters=replace(current.counters, helpful=2, irrelevant=0))
    change = await store.commit(sample_change(2, Edit(before=current, after=rated), action=Action.FEEDBACK))
    await store.record_use(Use(memories=(memory.id,), at=LATER, session=SessionId("a"), surfaced=False))
    kept = await store.change(change.id)
    assert kept is not None
    edits = undo_edits(kept, await store.get([memory.id]), now=LATER)
    await store.commit(sample_change(3, *edits, action=Action.UNDO, undoes=change.id))
    found = (await store.get([memory.id]))[memory.id]
    assert found.counters == Counters(helpful=1, irrelevant=2, surfaced=1, recalled=1, sessions=1)
