"""Letting the embedding model read a query, where there is something to compare it with."""

from __future__ import annotations

from dataclasses import dataclass

from backstory.errors import ModelError
from backstory.ports.index import VectorIndex
from backstory.ports.models import Embedder, EmbeddingModel, Passage
from backstory.services.query import Skipped


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """A query as a model reads it."""

    passage: Passage
    model: EmbeddingModel


class QueryReader:
    """Reads queries with the embedder, if there is one and memories have its vectors."""

    def __init__(self, vectors: VectorIndex, embedder: Embedder | None, *, no_embedder: str) -> None:
        self._vectors = vectors
        self._embedder = embedder
        self._no_embedder = no_embedder
        self._searchable: str | None = None  # the model of which vectors were seen; saves counting them each time

    @property
    def can_read(self) -> bool:
        """Whether there is an embedder at all."""
        return self._embedder is not None

    async def read(self, text: str, *, within_s: float | None) -> ReadQuery | Skipped | None:
        """The query as the model reads it, or why that could not be done; None where there is nothing to compare it
        with. ``within_s`` bounds the wait for the model; None waits."""
        if self._embedder is None:
            return Skipped(part="meaning", reason=self._no_embedder)
        try:
            model = await self._searchable_model(self._embedder)
            if not isinstance(model, EmbeddingModel):
                return model
            from backstory.domain.admission import admit_evidence  # not needed by a lexical search

            passage = await _within(self._embedder, admit_evidence(text), within_s)
        except ModelError as error:
            return Skipped(part="meaning", reason=str(error))
        return None if passage is None else ReadQuery(passage, model)

    async def _searchable_model(self, embedder: Embedder) -> EmbeddingModel | Skipped | None:
        """The model whose vectors can be searched; None when there are none, so that no model is loaded for nothing."""
        if self._searchable is None:
            counts = await self._vectors.vector_counts()
            if not counts:
                return None
            model = await embedder.model()
            if model.name not in counts:
                others = ", ".join(sorted(counts))
                reason = f"embedded by {others}, not yet by {model.name}; words alone for now"
                return Skipped(part="meaning", reason=reason)
            self._searchable = model.name
        return await embedder.model()


async def _within(embedder: Embedder, text: str, seconds: float | None) -> Passage | None:
    """The query as the model reads it, within a time. Raises ModelUnavailable when it took longer."""
    if seconds is None:
        return (await embedder.read([text]))[0]
    import anyio

    from backstory.errors import ModelUnavailable

    with anyio.move_on_after(seconds):
        return (await embedder.read([text]))[0]
    raise ModelUnavailable(f"the embedder did not answer within {seconds:.1f} s")
