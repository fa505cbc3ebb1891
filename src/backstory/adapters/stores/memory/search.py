"""Words and vectors over the memories of the in-memory store, by looking at every one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from backstory.adapters.stores.memory.memories import InMemoryMemories
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Deleted, Memory, searchable_text
from backstory.domain.selection import Selection, selects
from backstory.domain.text import analyse
from backstory.errors import InputError
from backstory.ports.index import Embedded, TextHit, TextSearch, Unembedded, VectorHit
from backstory.ports.models import EmbeddingModel, Vector


class InMemoryTextIndex:
    """The TextIndex; tokens are made once for each text."""

    def __init__(self, memories: InMemoryMemories) -> None:
        self._memories = memories
        self._tokens: dict[str, Counter[str]] = {}

    async def search_text(self, tokens: Sequence[str], selection: Selection, *, limit: int) -> TextSearch:
        counts = {memory.id: self._counts(memory) for memory in self._memories.rows.values()}
        frequency = {token: sum(token in held for held in counts.values()) for token in tokens}
        hits = [
            _hit(memory.id, counts[memory.id], tokens)
            for memory in self._memories.rows.values()
            if selects(selection, memory)
        ]
        rarity = {token: 1.0 / count for token, count in frequency.items() if count}
        matching = [hit for hit in hits if hit.matched]
        matching.sort(key=lambda hit: (-sum(rarity[token] for token in hit.matched), hit.id))
        total = sum(held.total() for held in counts.values())
        return TextSearch(
            hits=matching[:limit],
            frequency=frequency,
            documents=len(counts),
            mean_length=total / len(counts) if counts else 0.0,
        )

    def _counts(self, memory: Memory) -> Counter[str]:
        text = searchable_text(memory)
        if text not in self._tokens:
            self._tokens[text] = Counter(analyse(text))
        return self._tokens[text]


class InMemoryVectorIndex:
    """The VectorIndex; a vector belongs to a text, so a changed text has none."""

    def __init__(self, memories: InMemoryMemories) -> None:
        self._memories = memories
        self._vectors: dict[str, dict[tuple[MemoryId, str], tuple[float, ...]]] = {}

    async def search_vectors(
        self, vector: Vector, selection: Selection, *, model: EmbeddingModel, limit: int
    ) -> list[VectorHit]:
        if len(vector) != model.dimension:
            raise InputError(
                f"the vector has {len(vector)} numbers; {model.name} makes {model.dimension}", field="vector"
            )
        hits = [
            VectorHit(id=memory.id, similarity=sum(a * b for a, b in zip(vector, held, strict=True)))
            for memory in self._memories.rows.values()
            if selects(selection, memory) and (held := self._of(model.name, memory)) is not None
        ]
        hits.sort(key=lambda hit: (-hit.similarity, -self._memories.rows[hit.id].n))
        return hits[:limit]

    async def unembedded(self, *, model: EmbeddingModel, limit: int) -> list[Unembedded]:
        newest_first = sorted(self._memories.rows.values(), key=lambda memory: -memory.n)
        missing = [
            Unembedded(id=memory.id, revision=memory.revision, text=searchable_text(memory))
            for memory in newest_first
            if not isinstance(memory.status, Deleted) and self._of(model.name, memory) is None
        ]
        return missing[:limit]

    async def put_vectors(self, vectors: Sequence[Embedded], *, model: EmbeddingModel) -> int:
        stored = 0
        for item in vectors:
            memory = self._memories.rows.get(item.id)
            if memory is not None and memory.revision == item.revision:
                of_model = self._vectors.setdefault(model.name, {})
                of_model[(memory.id, searchable_text(memory))] = tuple(float(number) for number in item.vector)
                stored += 1
        return stored

    async def vector_counts(self) -> Mapping[str, int]:
        current = {(memory.id, searchable_text(memory)) for memory in self._memories.rows.values()}
        counts = {name: len(current & vectors.keys()) for name, vectors in self._vectors.items()}
        return {name: count for name, count in counts.items() if count}

    async def drop_vectors(self, *, model_name: str) -> int:
        counts = await self.vector_counts()
        self._vectors.pop(model_name, None)
        return counts.get(model_name, 0)

    def _of(self, model_name: str, memory: Memory) -> tuple[float, ...] | None:
        return self._vectors.get(model_name, {}).get((memory.id, searchable_text(memory)))


def _hit(memory_id: MemoryId, held: Counter[str], tokens: Sequence[str]) -> TextHit:
    matched = {token: held[token] for token in tokens if token in held}
    return TextHit(id=memory_id, matched=matched, length=held.total())
