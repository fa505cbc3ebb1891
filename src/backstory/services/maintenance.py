"""Work that keeps the store in shape: embedding what has no vector yet, and dropping vectors of old models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from backstory.errors import ModelError
from backstory.ports.backend import Backend
from backstory.ports.index import Embedded
from backstory.ports.models import Embedder

BATCH = 32

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingReport:
    """What an embedding run did; ``stopped_because`` is set when the embedder failed and memories are left over."""

    model: str | None
    embedded: int
    dropped: int = 0
    stopped_because: str | None = None


class Maintenance:
    """Background work over the whole store."""

    def __init__(self, backend: Backend, embedder: Embedder | None, *, no_embedder: str) -> None:
        self._backend = backend
        self._embedder = embedder
        self._no_embedder = no_embedder

    async def embed_missing(self, *, at_most: int | None = None, progress: Progress | None = None) -> EmbeddingReport:
        """Give every memory a vector of the current model, newest first; then drop vectors of other models.

        Safe to stop at any moment and to run in several processes. A text the embedder cannot use is left without a
        vector and does not stop the rest. An embedder that fails ends the run with a reason.
        """
        if self._embedder is None:
            return EmbeddingReport(model=None, embedded=0, stopped_because=self._no_embedder)
        done = 0
        complete = False
        try:
            model = await self._embedder.model()
            while at_most is None or done < at_most:
                missing = await self._backend.vectors.unembedded(
                    model=model, limit=BATCH if at_most is None else min(BATCH, at_most - done)
                )
                if not missing:
                    complete = True
                    break
                passages = await self._embedder.read([item.text for item in missing])
                ready = [
                    Embedded(id=item.id, revision=item.revision, vector=passage.vector, words=passage.words)
                    for item, passage in zip(missing, passages, strict=True)
                    if passage is not None
                ]
                stored = await self._backend.vectors.put_vectors(ready, model=model)
                done += stored
                if progress is not None:
                    progress(stored)
                if not stored:
                    break  # all of them changed meanwhile, or none can be embedded; the next run looks again
        except ModelError as error:
            return EmbeddingReport(model=None, embedded=done, stopped_because=str(error))
        dropped = await self._drop_others(model.name) if complete else 0
        return EmbeddingReport(model=model.name, embedded=done, dropped=dropped)

    async def _drop_others(self, keep: str) -> int:
        """Vectors of former models are of no use once the current one has embedded everything."""
        counts = await self._backend.vectors.vector_counts()
        others = [name for name in counts if name != keep]
        return sum([await self._backend.vectors.drop_vectors(model_name=name) for name in others])
