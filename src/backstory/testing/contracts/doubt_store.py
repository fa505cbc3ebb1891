"""The contract of the DoubtStore."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from anyio import create_task_group

from backstory.domain.doubt import Doubt
from backstory.domain.history import Edit
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Conflicted, Deleted, Memory, Sensitivity, Superseded
from backstory.errors import Conflict, InputError
from backstory.ports.store import Use
from backstory.testing.contracts.checks import Checks, MakeBackend, expect_error
from backstory.testing.fakes import START, add_memories, sample_change, sample_memory, ulid

DOUBT_STORE_CHECKS = Checks()
MOMENT = datetime(2026, 3, 2, 12, 0, 0, 123456, tzinfo=UTC)


def doubt_of(memory: Memory, **fields: str) -> Doubt:
    """Something that a memory names is gone."""
    plain = Doubt(memory=memory.id, anchor="src/cart.py", reason="src/cart.py is gone", since=MOMENT)
    return replace(plain, **fields)  # type: ignore[arg-type]  # fields of Doubt that are texts


@DOUBT_STORE_CHECKS
async def doubts_come_back_as_they_were_kept(make: MakeBackend) -> None:
    backend = make()
    one, two, three = await add_memories(backend.memories, *(sample_memory(name) for name in ("one", "two", "three")))
    doubts = [doubt_of(one), doubt_of(three, anchor="größe 🚀", reason="“gone”\n\t since \u2028 then")]
    assert await backend.doubts.doubts() == {}
    await backend.doubts.replace([one.id, two.id, three.id], doubts)
    assert await backend.doubts.doubts() == {doubt.memory: doubt for doubt in doubts}
    assert await backend.doubts.doubts([two.id, three.id, MemoryId(ulid(404))]) == {three.id: doubts[1]}
    assert await backend.doubts.doubts([three.id, three.id]) == {three.id: doubts[1]}
    assert await backend.doubts.doubts([]) == {}


@DOUBT_STORE_CHECKS
async def a_look_replaces_the_doubts_of_what_it_looked_at_alone(make: MakeBackend) -> None:
    backend = make()
    store = backend.doubts
    one, two, three = await add_memories(backend.memories, *(sample_memory(name) for name in ("one", "two", "three")))
    ids = [one.id, two.id, three.id]
    await store.replace(ids, [doubt_of(one), doubt_of(two), doubt_of(three)])
    await store.replace([one.id, two.id], [doubt_of(two, reason="it was renamed")])
    assert await store.doubts() == {two.id: doubt_of(two, reason="it was renamed"), three.id: doubt_of(three)}
    await store.replace([], [])
    assert len(await store.doubts()) == 2
    await store.replace(ids, [])
    assert await store.doubts() == {}


@DOUBT_STORE_CHECKS
async def of_two_doubts_about_a_memory_the_last_is_kept(make: MakeBackend) -> None:
    backend = make()
    (one,) = await add_memories(backend.memories, sample_memory("one"))
    await backend.doubts.replace([one.id, one.id], [doubt_of(one), doubt_of(one, anchor="--flag")])
    assert await backend.doubts.doubts() == {one.id: doubt_of(one, anchor="--flag")}


@DOUBT_STORE_CHECKS
async def a_doubt_about_what_was_not_looked_at_or_is_not_there_is_not_kept(make: MakeBackend) -> None:
    backend = make()
    gone = sample_memory("gone", status=Deleted(since=START))
    one, two, forgotten = await add_memories(backend.memories, sample_memory("one"), sample_memory("two"), gone)
    unknown = sample_memory("unknown")
    looked_at = [one.id, unknown.id, forgotten.id]
    await backend.doubts.replace(looked_at, [doubt_of(memory) for memory in (one, two, unknown, forgotten)])
    assert await backend.doubts.doubts() == {one.id: doubt_of(one)}


@DOUBT_STORE_CHECKS
async def a_doubt_goes_when_its_memory_says_something_else_or_is_forgotten(make: MakeBackend) -> None:
    backend = make()
    reworded, forgotten, other = await add_memories(
        backend.memories, *(sample_memory(name) for name in ("reworded", "forgotten", "other"))
    )
    ids = [reworded.id, forgotten.id, other.id]
    await backend.doubts.replace(ids, [doubt_of(memory) for memory in (reworded, forgotten, other)])
    edits = (
        Edit(before=reworded, after=replace(reworded, content="src/shop.py holds the cart")),
        Edit(before=forgotten, after=replace(forgotten, status=Deleted(since=START))),
    )
    stale = Edit(before=replace(other, revision=7), after=other)
    await expect_error(Conflict, backend.memories.commit(sample_change(4, *edits, stale)))
    assert len(await backend.doubts.doubts()) == 3
    await backend.memories.commit(sample_change(5, *edits))
    assert await backend.doubts.doubts() == {other.id: doubt_of(other)}


@DOUBT_STORE_CHECKS
async def a_doubt_stays_when_its_memory_changes_in_anything_else(make: MakeBackend) -> None:
    backend = make()
    (memory,) = await add_memories(backend.memories, sample_memory("one"))
    await backend.doubts.replace([memory.id], [doubt_of(memory)])
    for number, fields in enumerate(
        (
            {"tags": ("ripe",)},
            {"pinned": True},
            {"sensitivity": Sensitivity.PRIVATE},
            {"status": Conflicted(evidence="?", since=START)},
            {"status": Superseded(by=MemoryId(ulid(8)), since=START)},
        ),
        start=2,
    ):
        edit = Edit(before=memory, after=replace(memory, **fields))  # type: ignore[arg-type]  # fields of Memory
        memory = (await backend.memories.commit(sample_change(number, edit))).edits[0].after
        await backend.memories.record_use(Use(memories=(memory.id,), at=START, session=None, surfaced=True))
        assert await backend.doubts.doubts([memory.id]) == {memory.id: doubt_of(memory)}


@DOUBT_STORE_CHECKS
async def no_doubt_outlives_a_memory_that_goes_while_it_is_kept(make: MakeBackend) -> None:
    backend = make()
    for number in range(1, 9, 2):
        (memory,) = await add_memories(backend.memories, sample_memory(f"fact {number}"), first_change=number)
        gone = Edit(before=memory, after=replace(memory, status=Deleted(since=START)))
        async with create_task_group() as group:
            group.start_soon(backend.doubts.replace, [memory.id], [doubt_of(memory)])
            group.start_soon(backend.memories.commit, sample_change(number + 1, gone))
        assert await backend.doubts.doubts() == {}


@DOUBT_STORE_CHECKS
async def many_doubts_are_kept_and_found_at_once(make: MakeBackend) -> None:
    backend = make()
    memories = [sample_memory(f"fact {n}") for n in range(1201)]
    await backend.memories.commit(sample_change(1, *(Edit(before=None, after=memory) for memory in memories)))
    ids = [memory.id for memory in memories]
    doubts = {memory.id: doubt_of(memory, anchor=memory.content) for memory in memories}
    await backend.doubts.replace(ids, list(doubts.values()))
    assert await backend.doubts.doubts(ids) == doubts
    assert await backend.doubts.doubts() == doubts


@DOUBT_STORE_CHECKS
async def doubts_may_hold_any_character(make: MakeBackend) -> None:
    backend = make()
    (memory,) = await add_memories(backend.memories, sample_memory("one"))
    for odd in ("a\x00b", "' OR 1=1 --", "日本 🚀", "", "\u2028\r\n\t\x7f", "%_\\", "é é"):
        strange = MemoryId(odd)
        doubts = [doubt_of(memory, anchor=odd, reason=odd), replace(doubt_of(memory), memory=strange)]
        await backend.doubts.replace([memory.id, strange], doubts)
        found = await backend.doubts.doubts([memory.id, strange])
        kept = odd if found[memory.id].anchor == odd else odd.replace("\x00", "\ufffd")
        assert found == {memory.id: doubt_of(memory, anchor=kept, reason=kept)}


@DOUBT_STORE_CHECKS
async def half_a_character_in_a_doubt_is_refused_whole_or_kept_as_well_as_can_be(make: MakeBackend) -> None:
    backend = make()
    one, two = await add_memories(backend.memories, sample_memory("one"), sample_memory("two"))
    before = {one.id: doubt_of(one)}
    await backend.doubts.replace([one.id], [doubt_of(one)])
    try:
        await backend.doubts.replace([one.id, two.id], [doubt_of(two), doubt_of(one, reason="half \ud83d of it")])
    except InputError:
        assert await backend.doubts.doubts() == before
    else:
        assert len(await backend.doubts.doubts()) == 2


@DOUBT_STORE_CHECKS
async def stores_do_not_share_doubts(make: MakeBackend) -> None:
    ours, theirs = make(), make()
    (memory,) = await add_memories(ours.memories, sample_memory("one"))
    await ours.doubts.replace([memory.id], [doubt_of(memory)])
    await theirs.doubts.replace([memory.id], [])
    assert await theirs.doubts.doubts() == {}
    assert await ours.doubts.doubts() == {memory.id: doubt_of(memory)}
