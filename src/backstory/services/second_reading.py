"""Letting a second model read a query, where one is set and memories have its vectors."""

from __future__ import annotations

from dataclasses import dataclass

from backstory.errors import ModelError, ModelUnavailable
from backstory.ports.index import VectorIndex
from backstory.ports.models import EmbeddingModel, SecondEmbedder, Vector
from backstory.services.query import Skipped

PART = "second model"


@dataclass(frozen=True, slots=True)
class ReadBySecond:
    """A query as the second model reads it."""

    vector: Vector
    model: EmbeddingModel


class SecondReader:
    """Reads queries with the second model. Without one, nothing is read and nothing is missed."""

    def __init__(self, vectors: VectorIndex, second: SecondEmbedder | None) -> None:
        self._vectors = vectors
        self._second = second
        self._seen = False  # whether memories have its vectors; saves counting them each time

    async def read(self, text: str, *, within_s: float | None) -> ReadBySecond | Skipped | None:
        """The query as the model reads it, or why that could not be done; None where there is no second model, or no
        memory has its vectors yet. ``within_s`` bounds the wait; None waits."""
        if self._second is None:
            return None
        try:
            model = await self._second.model()
            if not self._seen and model.name not in await self._vectors.vector_counts():
                return None
            self._seen = True
            from backstory.domain.admission import admit_evidence  # not needed by a search without a second model

            vector = await _within(self._second, admit_evidence(text), within_s)
        except ModelError as error:
            return Skipped(part=PART, reason=str(error))
        return None if vector is None else ReadBySecond(vector, model)


async def _within(second: SecondEmbedder, text: str, seconds: float | None) -> Vector | None:
    """The query's vector, within a time. Raises ModelUnavailable when it took longer."""
    if seconds is None:
        return await second.query(text)
    import anyio

    with anyio.move_on_after(seconds):
        return await second.query(text)
    raise ModelUnavailable(f"the second model did not answer within {seconds:.1f} s")
