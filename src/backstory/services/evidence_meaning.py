"""The half of a search in evidence that goes by meaning: the vector of a question, and how near passages are to it.

Where there is no vector, or none to compare it with, the search goes by words alone, and is told why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backstory.domain.evidence_passages import LoadedPassage, PassageNumber
from backstory.domain.evidence_signs import ComparedWords
from backstory.domain.evidence_talk import speakers_between_themselves, telling_places
from backstory.errors import ModelError
from backstory.ports.evidence import EvidenceIndex, Sight
from backstory.ports.models import Embedder, EmbeddingModel, Vector, WordVectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question as the model reads it, and its words if the model tells them apart; without a vector, ``skipped`` says
    why unless none was wanted."""

    model: EmbeddingModel | None = None
    vector: Vector | None = None
    words: WordVectors | None = None
    skipped: str | None = None


class MeaningSearch:
    """Reads questions with ``embedder``, and compares them with what the index holds of its model."""

    def __init__(self, index: EvidenceIndex, embedder: Embedder | None, *, no_embedder: str) -> None:
        """``no_embedder`` says why ``embedder`` is None."""
        self._index = index
        self._embedder = embedder
        self._no_embedder = no_embedder
        self._searchable: str | None = None  # the model of which vectors were seen; saves counting them each time

    async def read(self, text: str, *, lexical_only: bool) -> Asked:
        """The question's vector, or why there is none."""
        if lexical_only:
            return Asked()
        if self._embedder is None:
            return Asked(skipped=self._no_embedder)
        try:
            model = await self._embedder.model()
            if self._searchable != model.name:
                counts = await self._index.vector_counts()
                if not counts:
                    return Asked(skipped="nothing that was said is embedded yet")
                if model.name not in counts:
                    others = ", ".join(sorted(counts))
                    return Asked(skipped=f"embedded by {others}, not yet by {model.name}")
                self._searchable = model.name
            from backstory.domain.admission import admit_evidence  # not needed by a search by words

            passage = (await self._embedder.read([admit_evidence(text)]))[0]
        except ModelError as error:
            return Asked(skipped=str(error))
        if passage is None:
            return Asked(model=model)
        return Asked(model=model, vector=passage.vector, words=passage.words)

    async def nearest(self, asked: Asked, sight: Sight, *, limit: int) -> Mapping[PassageNumber, float]:
        """The passages nearest to a question, and their similarities; none where it has no vector."""
        if asked.model is None or asked.vector is None:
            return {}
        return await self._index.search_vectors(asked.vector, sight, model=asked.model, limit=limit)

    async def similarities(
        self, asked: Asked, known: Mapping[PassageNumber, float], loaded: Sequence[LoadedPassage]
    ) -> Mapping[PassageNumber, float]:
        """Those that are known, and those of the other passages that have a vector."""
        if asked.model is None or asked.vector is None:
            return {}
        others = [item.passage.number for item in loaded if item.passage.number not in known]
        return {**known, **await self._index.similarities(asked.vector, others, model=asked.model)}

    async def compare_words(self, asked: Asked, loaded: Sequence[LoadedPassage]) -> ComparedWords | None:
        """The question's words, without the speakers' names, held against those of passages of a chat between people.

        None where it is no such chat, and where most passages have no vectors of words.
        """
        if asked.model is None or asked.words is None:
            return None
        speakers = speakers_between_themselves([item.passage for item in loaded])
        if not speakers:
            return None
        words = asked.words.at(telling_places(asked.words.words, names=speakers))
        numbers = [item.passage.number for item in loaded]
        nearest = await self._index.compare_words(words, numbers, model=asked.model)
        return ComparedWords(words=words.words, nearest=nearest) if 2 * len(nearest) > len(loaded) else None
