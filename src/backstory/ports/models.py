"""What services ask of models. Adapters live in ``adapters/embedders``; a missing model raises ModelUnavailable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Vector = Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel:
    """Which model made a vector. Vectors of two models are never compared, whatever their length.

    ``name`` identifies the exact weights (``all-MiniLM-L6-v2-int8``, ``ollama:nomic-embed-text``).
    """

    name: str
    dimension: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WordVectors:
    """The words of one text, each with a vector that says what it means there.

    ``matrix`` holds a row of ``dimension`` int8 numbers for each word, in order; only a row's direction counts.
    """

    words: tuple[str, ...]
    dimension: int
    matrix: bytes

    def at(self, places: Sequence[int]) -> WordVectors:
        """The words at these places, in their order, with their vectors."""
        width = self.dimension
        return WordVectors(
            words=tuple(self.words[place] for place in places),
            dimension=width,
            matrix=b"".join(self.matrix[place * width : (place + 1) * width] for place in places),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text as a model read it: its vector, and its words' vectors where the model gives them.

    ``query`` is the vector to look for memories with, of length 1, where that is another than the text's own; only a
    text that is read alone need have it.
    """

    vector: Vector
    words: WordVectors | None = None
    query: Vector | None = None


class SecondEmbedder(Protocol):
    """Another model's vectors of memories and of what is asked, beside the embedder's; only their cosines are joined.

    Cheap to construct: the model is loaded at the first use. Texts are cleaned and cut as by ``Embedder``. Every call
    raises ModelUnavailable and ModelOutputInvalid.
    """

    async def model(self) -> EmbeddingModel:
        """Name and dimension of the model; never those of the embedder beside it."""
        ...

    async def passages(self, texts: Sequence[str]) -> list[Vector | None]:
        """Vectors of texts that are to be found, in order, each of length 1; None for a text without content."""
        ...

    async def query(self, text: str) -> Vector | None:
        """The vector of what is looked for. Models that are trained for it read a question otherwise than a passage."""
        ...

    async def close(self) -> None:
        """Let go of the model. Calling twice is fine."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors of unit length.

    Cheap to construct: the model is loaded, or the endpoint asked, at the first use.
    """

    async def model(self) -> EmbeddingModel:
        """Name and dimension of the model; may load it or ask the endpoint. Raises ModelUnavailable."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed many texts, one vector each, in order; each of length 1 (Euclidean) and of the model's dimension.

        A text that is empty after cleaning gives None and is not sent anywhere. NUL and lone surrogates are removed
        first; a text beyond the model's window is cut, never an error for its neighbours.
        Raises ModelUnavailable (not installed, not reachable, too slow) and ModelOutputInvalid (wrong count or
        length, not numbers). Cost: about 3 ms a short text for the local model, after 0.4 s to load it.
        """
        ...

    async def read(self, texts: Sequence[str]) -> list[Passage | None]:
        """Like ``embed``, with the vectors of each text's words where the model gives them, at no further cost."""
        ...

    async def close(self) -> None:
        """Let go of the model or the connection. Calling twice is fine."""
        ...
