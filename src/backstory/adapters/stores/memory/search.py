"""Words and vectors over the memories of the in-memory store, by looking at every one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backstory.adapters.stores.memory.memories import InMemoryMemories
from backstory.adapters.word_agreement import agreements
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Deleted, Memory, Sensitivity, searchable_text
from backstory.domain.selection import Selection, selects
from backstory.domain.text import analyse
from backstory.ports.index import (
    Embedded,
    TextHit,
    TextSearch,
    Unembedded,
    VectorHit,
    WordAgreement,
    affordable,
    check_length,
    is_common,
)
from backstory.ports.models import EmbeddingModel, Vector, WordVectors


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
        wanted, dropped = affordable(frequency, documents=len(counts))
        rarity = {token: 1.0 / frequency[token] for token in wanted}
        matching = [hit for hit in hits if not rarity.keys().isdisjoint(hit.matched)]
        if any(is_common(frequency[token], documents=len(counts)) for token in wanted):
            matching.sort(key=lambda hit: -self._memories.rows[hit.id].n)
        else:
            matching.sort(key=lambda hit: (-sum(rarity.get(token, 0.0) for token in hit.matched), hit.id))
        total = sum(held.total() for held in counts.values())
        return TextSearch(
            hits=matching[:limit],
            frequency=frequency,
            documents=len(counts),
            mean_length=total / len(counts) if counts else 0.0,
            dropped=dropped,
        )

    def _counts(self, memory: Memory) -> Counter[str]:
        text = searchable_text(memory)
        if text not in self._tokens:
            self._tokens[text] = Counter(analyse(text))
        return self._tokens[text]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """A vector, and the revision at which the text it stands for was written."""

    dimension: int
    text_since: int
    vector: tuple[float, ...]
    words: bytes | None = None


class InMemoryVectorIndex:
    """The VectorIndex; a vector of a text that has changed since counts as not there."""

    def __init__(self, memories: InMemoryMemories) -> None:
        self._memories = memories
        self._held: dict[tuple[str, MemoryId], _Held] = {}

    async def search_vectors(
        self, vector: Vector, selection: Selection, *, model: EmbeddingModel, limit: int
    ) -> list[VectorHit]:
        check_length(vector, model)
        hits = [
            VectorHit(id=memory.id, similarity=sum(a * b for a, b in zip(vector, held.vector, strict=True)))
            for memory in self._memories.rows.values()
            if selects(selection, memory) and (held := self._of(model, memory.id)) is not None
        ]
        hits.sort(key=lambda hit: (-hit.similarity, -self._memories.rows[hit.id].n))
        return hits[:limit]

    async def unembedded(self, *, model: EmbeddingModel, limit: int) -> list[Unembedded]:
        newest_first = sorted(self._memories.rows.values(), key=lambda memory: -memory.n)
        missing = [
            Unembedded(id=memory.id, revision=memory.revision, text=searchable_text(memory))
            for memory in newest_first
            if not isinstance(memory.status, Deleted)
            and memory.sensitivity is not Sensitivity.LOCAL_ONLY
            and self._of(model, memory.id) is None
        ]
        return missing[:limit]

    async def put_vectors(self, vectors: Sequence[Embedded], *, model: EmbeddingModel) -> int:
        for item in vectors:
            check_length(item.vector, model)
        return sum(self._put(item, model) for item in vectors)

    async def vectors_of(self, ids: Sequence[MemoryId], *, model: EmbeddingModel) -> Mapping[MemoryId, Vector]:
        held = {memory_id: self._of(model, memory_id) for memory_id in ids if memory_id in self._memories.rows}
        return {memory_id: item.vector for memory_id, item in held.items() if item is not None}

    async def compare_words(
        self, words: WordVectors, ids: Sequence[MemoryId], *, model: EmbeddingModel
    ) -> Mapping[MemoryId, WordAgreement]:
        held = {memory_id: self._of(model, memory_id) for memory_id in ids if memory_id in self._memories.rows}
        return agreements(words, {key: item.words for key, item in held.items() if item and item.words is not None})

    async def vector_counts(self) -> Mapping[str, int]:
        return dict(
            Counter(name for (name, memory_id), held in self._held.items() if self._is_current(memory_id, held))
        )

    async def drop_vectors(self, *, model_name: str) -> int:
        counts = await self.vector_counts()
        self._held = {key: held for key, held in self._held.items() if key[0] != model_name}
        return counts.get(model_name, 0)

    def _put(self, item: Embedded, model: EmbeddingModel) -> bool:
        memory = self._memories.rows.get(item.id)
        if memory is None or memory.revision != item.revision:
            return False
        self._held[(model.name, item.id)] = _Held(
            dimension=model.dimension,
            text_since=self._memories.text_since[item.id],
            vector=tuple(float(number) for number in item.vector),
            words=None if item.words is None else item.words.matrix,
        )
        return True

    def _of(self, model: EmbeddingModel, memory_id: MemoryId) -> _Held | None:
        held = self._held.get((model.name, memory_id))
        current = held is not None and held.dimension == model.dimension and self._is_current(memory_id, held)
        return held if current else None

    def _is_current(self, memory_id: MemoryId, held: _Held) -> bool:
        return held.text_since == self._memories.text_since[memory_id]


def _hit(memory_id: MemoryId, held: Counter[str], tokens: Sequence[str]) -> TextHit:
    matched = {token: held[token] for token in tokens if token in held}
    return TextHit(id=memory_id, matched=matched, length=held.total())
