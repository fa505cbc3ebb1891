"""Which memories are near each other in meaning, by vectors of what they say, with as few texts embedded as may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from backstory.domain.consolidation import MOST_COMPARED, NEAR
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory, Sensitivity, searchable_text
from backstory.domain.restatement import readers
from backstory.errors import ModelUnavailable
from backstory.ports.index import VectorIndex
from backstory.ports.models import Embedder, Vector
from backstory.services.conversation import Aside

PERHAPS_NEAR = 0.4
"""Cosine of stored vectors from which two memories are looked at again without their labels. Of 46 pairs of short texts
that are near each other, with up to six labels of its own beside each, 46 reached it; with labels beside one of the
two, 45."""
MOST_EMBEDDED = 3_000
"""Labelled memories that are embedded again in one run, those with the nearest others first: 9 s with the local model.
For the rest their stored vectors stand, labels included."""
_BATCH = 256

Progress = Callable[[int], None]


class Nearness(Protocol):
    """Vectors that are compared with each other."""

    def add(self, vector: Vector) -> None:
        """Add one more."""
        ...

    def earlier(self, *, at_least: float, most: int) -> list[Sequence[int]]:
        """For each in order, the places of those before it whose cosine with it is at least so much, nearest first."""
        ...

    def accompanied(self, *, at_least: float) -> list[int]:
        """The places of those that have another whose cosine with it is at least so much, those with the nearest
        first."""
        ...


class NearInMeaning:
    """Finds them by the vectors that are stored. Those stand for a memory's labels too, which change a cosine: where
    that may matter, what the memory says is embedded alone."""

    def __init__(
        self,
        vectors: VectorIndex,
        embedder: Embedder | None,
        *,
        no_embedder: str,
        nearness: Callable[[], Nearness],
        aside: Aside,
    ) -> None:
        self._vectors = vectors
        self._embedder = embedder
        self._no_embedder = no_embedder
        self._nearness = nearness
        self._aside = aside

    async def near(self, memories: Sequence[Memory], progress: Progress | None) -> dict[int, Sequence[int]]:
        """For the places of memories, the earlier places for the same readers whose cosine is at least ``NEAR``,
        nearest first. ``progress`` is told of memories embedded.

        Embedded is what has no vector yet, and of labelled memories at most ``MOST_EMBEDDED``; nothing local-only.
        Raises ModelUnavailable and ModelOutputInvalid.
        """
        if self._embedder is None:
            raise ModelUnavailable(self._no_embedder)
        places = [place for place, memory in enumerate(memories) if memory.sensitivity is not Sensitivity.LOCAL_ONLY]
        vectors = await self._stored(self._embedder, memories, places)
        labelled = {place for place in vectors if searchable_text(memories[place]) != memories[place].content}
        missing = [place for place in places if place not in vectors]
        vectors |= await self._embed(self._embedder, memories, missing, progress)
        doubtful: list[int] = []
        for circle in _circles(memories, vectors):
            accompanied = await self._aside(partial(self._compared(vectors, circle).accompanied, at_least=PERHAPS_NEAR))
            doubtful += [circle[at] for at in accompanied if circle[at] in labelled]
        vectors |= await self._embed(self._embedder, memories, doubtful[:MOST_EMBEDDED], progress)
        near: dict[int, Sequence[int]] = {}
        for circle in _circles(memories, vectors):
            compared = self._compared(vectors, circle)
            earlier = await self._aside(partial(compared.earlier, at_least=NEAR, most=MOST_COMPARED))
            near |= {place: [circle[other] for other in found] for place, found in zip(circle, earlier, strict=True)}
        return near

    async def _stored(self, embedder: Embedder, memories: Sequence[Memory], places: Sequence[int]) -> dict[int, Vector]:
        place_of: dict[MemoryId, int] = {memories[place].id: place for place in places}
        found = await self._vectors.vectors_of(list(place_of), model=await embedder.model())
        return {place_of[memory_id]: vector for memory_id, vector in found.items()}

    async def _embed(
        self, embedder: Embedder, memories: Sequence[Memory], places: Sequence[int], progress: Progress | None
    ) -> dict[int, Vector]:
        """Vectors of what memories say; those that say nothing to the model are left out."""
        found: dict[int, Vector] = {}
        for start in range(0, len(places), _BATCH):
            batch = places[start : start + _BATCH]
            vectors = await embedder.embed([memories[place].content for place in batch])
            found |= {place: vector for place, vector in zip(batch, vectors, strict=True) if vector is not None}
            if progress is not None:
                progress(len(batch))
        return found

    def _compared(self, vectors: dict[int, Vector], places: Sequence[int]) -> Nearness:
        compared = self._nearness()
        for place in places:
            compared.add(vectors[place])
        return compared


def _circles(memories: Sequence[Memory], vectors: dict[int, Vector]) -> list[list[int]]:
    """The places that have a vector, in order, by who may read what is there."""
    circles: dict[object, list[int]] = {}
    for place in sorted(vectors):
        circles.setdefault(readers(memories[place]), []).append(place)
    return list(circles.values())
