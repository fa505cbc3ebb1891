"""The contract of the VectorIndex."""

from __future__ import annotations

import math
from dataclasses import replace

from backstory.domain.history import Edit
from backstory.domain.ids import MemoryId, ProjectId
from backstory.domain.memory import Deleted, Memory, Sensitivity, Superseded, searchable_text
from backstory.domain.scope import Viewer
from backstory.domain.selection import Selection
from backstory.errors import InputError
from backstory.ports.backend import Backend
from backstory.ports.index import Embedded, VectorHit
from backstory.ports.models import EmbeddingModel, Vector
from backstory.testing.contracts.checks import Checks, MakeBackend, expect_error
from backstory.testing.fakes import ORCHARD, START, add_memories, hash_words, sample_change, sample_memory, ulid

VECTOR_INDEX_CHECKS = Checks()
HERE = Selection(viewer=Viewer(project=ORCHARD), now=START)
MODEL = EmbeddingModel(name="compass", dimension=4)
OTHER_MODEL = EmbeddingModel(name="sextant", dimension=4)
NORTH = (1.0, 0.0, 0.0, 0.0)
CROWD_SIZE, FEW = 10_000, 20


def turned(degrees: float) -> Vector:
    """A unit vector at that angle from ``NORTH``."""
    return (math.cos(math.radians(degrees)), math.sin(math.radians(degrees)), 0.0, 0.0)


async def put(backend: Backend, memory: Memory, vector: Vector, model: EmbeddingModel = MODEL) -> int:
    """Store the vector of one memory."""
    embedded = Embedded(id=memory.id, revision=memory.revision, vector=vector)
    return await backend.vectors.put_vectors([embedded], model=model)


async def nearest(
    backend: Backend,
    vector: Vector = NORTH,
    *,
    selection: Selection = HERE,
    model: EmbeddingModel = MODEL,
    limit: int = 9,
) -> list[MemoryId]:
    """The ids of the nearest memories."""
    hits = await backend.vectors.search_vectors(vector, selection, model=model, limit=limit)
    return [hit.id for hit in hits]


async def filled(make: MakeBackend, *degrees: float) -> tuple[Backend, list[Memory]]:
    """A backend with a memory for each angle."""
    backend = make()
    stored = await add_memories(backend.memories, *(sample_memory(f"at {angle}") for angle in degrees))
    for memory, angle in zip(stored, degrees, strict=True):
        assert await put(backend, memory, turned(angle)) == 1
    return backend, stored


@VECTOR_INDEX_CHECKS
async def the_nearest_come_first_with_their_cosine(make: MakeBackend) -> None:
    backend, (far, near, opposite) = await filled(make, 60, 10, 180)
    hits = await backend.vectors.search_vectors(NORTH, HERE, model=MODEL, limit=9)
    assert [hit.id for hit in hits] == [near.id, far.id, opposite.id]
    for hit, angle in zip(hits, (10, 60, 180), strict=True):
        assert abs(hit.similarity - math.cos(math.radians(angle))) < 2e-3
    assert await nearest(backend, limit=1) == [near.id]


@VECTOR_INDEX_CHECKS
async def only_the_selection_is_searched(make: MakeBackend) -> None:
    backend, (memory,) = await filled(make, 10)
    elsewhere = Viewer(project=ProjectId(ulid(1, series=2)))
    assert await nearest(backend, selection=replace(HERE, viewer=elsewhere)) == []
    forgotten = replace(memory, status=Deleted(since=START))
    await backend.memories.commit(sample_change(2, Edit(before=memory, after=forgotten)))
    assert await nearest(backend) == []
    assert await nearest(backend, selection=replace(HERE, states=frozenset({"deleted"}))) == [memory.id]


@VECTOR_INDEX_CHECKS
async def a_store_without_vectors_finds_nothing(make: MakeBackend) -> None:
    backend = make()
    await add_memories(backend.memories, sample_memory())
    assert await nearest(backend) == []
    assert await backend.vectors.vector_counts() == {}


@VECTOR_INDEX_CHECKS
async def vectors_of_two_models_are_never_compared(make: MakeBackend) -> None:
    backend, (first, second) = await filled(make, 10, 20)
    await put(backend, second, NORTH, OTHER_MODEL)
    assert await nearest(backend) == [first.id, second.id]
    assert await nearest(backend, model=OTHER_MODEL) == [second.id]
    assert await backend.vectors.vector_counts() == {"compass": 2, "sextant": 1}
    assert await backend.vectors.drop_vectors(model_name="compass") == 2
    assert await backend.vectors.drop_vectors(model_name="compass") == 0
    assert await nearest(backend) == []
    assert await nearest(backend, model=OTHER_MODEL) == [second.id]


@VECTOR_INDEX_CHECKS
async def a_vector_of_the_wrong_length_is_refused(make: MakeBackend) -> None:
    backend, (memory,) = await filled(make, 10)
    for vector in ((1.0, 0.0), (*NORTH, 0.0), ()):
        await expect_error(InputError, nearest(backend, vector))
        await expect_error(InputError, put(backend, memory, vector))
    assert await nearest(backend) == [memory.id]


@VECTOR_INDEX_CHECKS
async def a_model_that_changed_its_dimension_embeds_anew(make: MakeBackend) -> None:
    backend, (memory,) = await filled(make, 10)
    wider = replace(MODEL, dimension=6)
    assert await nearest(backend, (1.0, 0, 0, 0, 0, 0), model=wider) == []
    assert [item.id for item in await backend.vectors.unembedded(model=wider, limit=9)] == [memory.id]
    assert await put(backend, memory, (1.0, 0, 0, 0, 0, 0), wider) == 1
    assert await nearest(backend, (1.0, 0, 0, 0, 0, 0), model=wider) == [memory.id]
    assert await nearest(backend) == []


@VECTOR_INDEX_CHECKS
async def a_vector_is_skipped_when_its_memory_has_moved_on(make: MakeBackend) -> None:
    backend = make()
    (memory,) = await add_memories(backend.memories, sample_memory())
    await backend.memories.commit(sample_change(2, Edit(before=memory, after=replace(memory, pinned=True))))
    assert await put(backend, memory, NORTH) == 0
    assert await put(backend, replace(memory, id=MemoryId(ulid(404))), NORTH) == 0
    assert await nearest(backend) == []
    (missing,) = await backend.vectors.unembedded(model=MODEL, limit=9)
    assert (missing.id, missing.revision) == (memory.id, 2)


@VECTOR_INDEX_CHECKS
async def a_changed_text_loses_its_vectors_and_other_changes_do_not(make: MakeBackend) -> None:
    backend, (memory,) = await filled(make, 10)
    await put(backend, memory, NORTH, OTHER_MODEL)
    change = await backend.memories.commit(
        sample_change(2, Edit(before=memory, after=replace(memory, pinned=True, confidence=0.5)))
    )
    assert await nearest(backend) == [memory.id]
    pinned = change.edits[0].after
    change = await backend.memories.commit(
        sample_change(3, Edit(before=pinned, after=replace(pinned, tags=("new words",))))
    )
    assert await nearest(backend) == await nearest(backend, model=OTHER_MODEL) == []
    tagged = change.edits[0].after
    await backend.memories.commit(sample_change(4, Edit(before=tagged, after=replace(tagged, tags=()))))
    assert await nearest(backend) == []
    assert await backend.vectors.vector_counts() == {}


@VECTOR_INDEX_CHECKS
async def a_second_vector_takes_the_place_of_the_first(make: MakeBackend) -> None:
    backend, (memory, other) = await filled(make, 10, 40)
    assert await nearest(backend) == [memory.id, other.id]
    await put(backend, memory, turned(80))
    hits = await backend.vectors.search_vectors(NORTH, HERE, model=MODEL, limit=9)
    assert [hit.id for hit in hits] == [other.id, memory.id]
    assert await backend.vectors.vector_counts() == {"compass": 2}


@VECTOR_INDEX_CHECKS
async def what_has_no_vector_is_told_newest_first(make: MakeBackend) -> None:
    backend = make()
    superseded = Superseded(by=MemoryId(ulid(1)), since=START)
    stored = await add_memories(
        backend.memories,
        sample_memory("one", tags=("tag",), area="area"),
        sample_memory("two", status=superseded),
        sample_memory("three", status=Deleted(since=START)),
        sample_memory("four"),
        sample_memory("five", sensitivity=Sensitivity.LOCAL_ONLY),
    )
    await put(backend, stored[3], NORTH)
    missing = await backend.vectors.unembedded(model=MODEL, limit=9)
    assert [item.id for item in missing] == [stored[1].id, stored[0].id]
    assert missing[1].text == searchable_text(stored[0])
    assert [item.id for item in await backend.vectors.unembedded(model=MODEL, limit=1)] == [stored[1].id]
    assert len(await backend.vectors.unembedded(model=OTHER_MODEL, limit=9)) == 3


@VECTOR_INDEX_CHECKS
async def a_small_project_is_not_starved_by_a_large_one(make: MakeBackend) -> None:
    backend = make()
    crowd = [
        sample_memory(id=MemoryId(ulid(n, series=3)), project=ProjectId(ulid(1, series=2))) for n in range(CROWD_SIZE)
    ]
    few = [sample_memory(f"ours {n}") for n in range(FEW)]
    stored = await backend.memories.commit(sample_change(1, *(Edit(before=None, after=m) for m in (*crowd, *few))))
    memories = [edit.after for edit in stored.edits]
    vectors = [NORTH] * CROWD_SIZE + [turned(60 + n) for n in range(FEW)]
    embedded = [
        Embedded(id=memory.id, revision=memory.revision, vector=vector)
        for memory, vector in zip(memories, vectors, strict=True)
    ]
    assert await backend.vectors.put_vectors(embedded, model=MODEL) == CROWD_SIZE + FEW
    assert await nearest(backend, limit=10) == [memory.id for memory in few[:10]]
    assert len(await nearest(backend, limit=60)) == FEW
    both: list[VectorHit] = await backend.vectors.search_vectors(
        NORTH, replace(HERE, viewer=replace(HERE.viewer, all_projects=True)), model=MODEL, limit=60
    )
    assert {round(hit.similarity, 2) for hit in both} == {1.0}


@VECTOR_INDEX_CHECKS
async def stored_vectors_are_read_back(make: MakeBackend) -> None:
    backend = make()
    first, second, bare = await add_memories(backend.memories, *(sample_memory(f"plum {n}") for n in range(3)))
    await put(backend, first, turned(10))
    await put(backend, second, turned(60))
    await put(backend, second, NORTH, OTHER_MODEL)
    asked = [second.id, bare.id, MemoryId(ulid(404)), first.id, second.id]
    found = await backend.vectors.vectors_of(asked, model=MODEL)
    assert found.keys() == {first.id, second.id}
    for memory, angle in ((first, 10), (second, 60)):
        assert len(found[memory.id]) == MODEL.dimension
        for read, written in zip(found[memory.id], turned(angle), strict=True):
            assert abs(read - written) < 1e-3
    assert (await backend.vectors.vectors_of([first.id, second.id], model=OTHER_MODEL)).keys() == {second.id}
    assert await backend.vectors.vectors_of([first.id], model=replace(MODEL, dimension=6)) == {}
    assert await backend.vectors.vectors_of([], model=MODEL) == {}


@VECTOR_INDEX_CHECKS
async def a_vector_of_a_text_that_changed_is_not_read_back(make: MakeBackend) -> None:
    backend, (memory,) = await filled(make, 10)
    retagged = replace(memory, tags=("new words",))
    await backend.memories.commit(sample_change(2, Edit(before=memory, after=retagged)))
    assert await backend.vectors.vectors_of([memory.id], model=MODEL) == {}


@VECTOR_INDEX_CHECKS
async def many_stored_vectors_are_read_back_at_once(make: MakeBackend) -> None:
    backend = make()
    many = [sample_memory(id=MemoryId(ulid(n, series=3))) for n in range(1_100)]
    stored = await backend.memories.commit(sample_change(1, *(Edit(before=None, after=m) for m in many)))
    ids = [edit.after.id for edit in stored.edits]
    embedded = [Embedded(id=edit.after.id, revision=edit.after.revision, vector=NORTH) for edit in stored.edits]
    assert await backend.vectors.put_vectors(embedded, model=MODEL) == len(ids)
    assert (await backend.vectors.vectors_of(ids, model=MODEL)).keys() == set(ids)


@VECTOR_INDEX_CHECKS
async def words_that_agree_are_found_in_their_memory(make: MakeBackend) -> None:
    backend = make()
    gate, door = await add_memories(
        backend.memories, sample_memory("the gate is shut"), sample_memory("a door stands open")
    )
    for memory in (gate, door):
        words = hash_words(memory.content)
        embedded = Embedded(id=memory.id, revision=memory.revision, vector=NORTH, words=words)
        assert await backend.vectors.put_vectors([embedded], model=MODEL) == 1
    agreements = await backend.vectors.compare_words(hash_words("gate shut"), [gate.id, door.id], model=MODEL)
    assert all(cosine > 0.99 for cosine in agreements[gate.id].nearest)
    assert all(cosine < 0.9 for cosine in agreements[door.id].nearest)
    assert agreements[gate.id].answered > agreements[door.id].answered


@VECTOR_INDEX_CHECKS
async def memories_without_vectors_of_words_take_no_part_in_comparing(make: MakeBackend) -> None:
    backend = make()
    bare, new = await add_memories(backend.memories, sample_memory("no words"), sample_memory("not embedded yet"))
    assert await put(backend, bare, NORTH) == 1
    words = hash_words("anything")
    assert await backend.vectors.compare_words(words, [bare.id, new.id], model=MODEL) == {}
    assert await backend.vectors.compare_words(words, [], model=MODEL) == {}
    assert await backend.vectors.compare_words(words, [bare.id], model=OTHER_MODEL) == {}


@VECTOR_INDEX_CHECKS
async def a_memory_that_moves_takes_its_vector_along(make: MakeBackend) -> None:
    backend, (memory, other) = await filled(make, 0.0, 20.0)
    there = replace(HERE, viewer=Viewer(project=ProjectId("elsewhere")))
    assert await nearest(backend) == [memory.id, other.id]
    moved = replace(memory, project=ProjectId("elsewhere"))
    await backend.memories.commit(sample_change(9, Edit(before=memory, after=moved)))
    assert (await nearest(backend), await nearest(backend, selection=there)) == ([other.id], [memory.id])
