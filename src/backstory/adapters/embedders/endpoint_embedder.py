"""An embedder that asks a server: batches, texts that are too long for it, and distrust of what comes back.

The wire format of each kind of server is in ``openai.py`` and ``ollama.py``; HTTP itself is in ``endpoint.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from backstory.adapters.blocking import run_blocking
from backstory.adapters.embedders.endpoint import JsonEndpoint, Refused
from backstory.adapters.embedders.input_text import clean
from backstory.errors import ModelOutputInvalid, ModelUnavailable
from backstory.ports.models import EmbeddingModel, Passage, Vector

MAX_BATCH_TEXTS = 32
"""The smallest limit among common servers (text-embeddings-inference as shipped)."""
MAX_CHARS = 8_000
"""About the window of the widest common models (8,191 tokens) for the densest text, near one token a character."""
SHORTER_CHARS = (4_000, 2_000, 1_000, 500, 250)
"""What a refused text is cut to, one after the other: the server knows its window, we do not."""

SMALLEST_LENGTH = 1e-100


class Wire(Protocol):
    """How one kind of server is asked for embeddings."""

    provider: str
    path: str

    def request(self, model: str, texts: Sequence[str]) -> Mapping[str, object]:
        """The body to send."""
        ...

    def vectors(self, answer: object) -> Sequence[object] | None:
        """The vectors in the order of the texts, unchecked; None if the answer has another shape."""
        ...

    def if_missing(self, model: str) -> str:
        """What a 404 means and what to do."""
        ...


class EndpointEmbedder:
    """Embeds by asking ``endpoint``. Safe to share between threads and event loops.

    The endpoint's timeout holds for each batch of 32 texts. The dimension is whatever the server's first vector has;
    any other later is ModelOutputInvalid.
    """

    def __init__(self, endpoint: JsonEndpoint, wire: Wire, *, model: str) -> None:
        self._endpoint = endpoint
        self._wire = wire
        self._model = model
        self._dimension: int | None = None

    async def model(self) -> EmbeddingModel:
        """Name and dimension; asks the server for one embedding if it has not answered yet."""
        if self._dimension is None:
            await run_blocking(partial(self._ask, ["dimension"]), abandon_on_cancel=True)
        assert self._dimension is not None
        return EmbeddingModel(name=f"{self._wire.provider}:{self._model}", dimension=self._dimension)

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """See ``Embedder``. A cancelled call returns at once; the request under way ends in its thread."""
        vectors: list[Vector | None] = [None] * len(texts)
        cleaned = [(place, text) for place, raw in enumerate(texts) if (text := clean(raw, max_chars=MAX_CHARS))]
        for start in range(0, len(cleaned), MAX_BATCH_TEXTS):
            batch = cleaned[start : start + MAX_BATCH_TEXTS]
            ask = partial(self._ask, [text for _, text in batch])
            for (place, _), vector in zip(batch, await run_blocking(ask, abandon_on_cancel=True), strict=True):
                vectors[place] = vector
        return vectors

    async def read(self, texts: Sequence[str]) -> list[Passage | None]:
        """See ``Embedder``. Servers give no vectors of words."""
        return [None if vector is None else Passage(vector=vector) for vector in await self.embed(texts)]

    async def close(self) -> None:
        """Close the connections; using the embedder again opens new ones."""
        await run_blocking(self._endpoint.close)

    def _ask(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text. What the server refuses together is halved, and what it refuses alone is cut.

        So a text that is too long costs extra requests, but neither fails nor shortens its neighbours.
        """
        body = self._wire.request(self._model, texts)
        answer = self._endpoint.post(self._wire.path, body, if_missing=self._wire.if_missing(self._model))
        if not isinstance(answer, Refused):
            return self._check(answer, count=len(texts))
        if len(texts) > 1:
            middle = len(texts) // 2
            return self._ask(texts[:middle]) + self._ask(texts[middle:])
        shorter = next((chars for chars in SHORTER_CHARS if chars < len(texts[0])), None)
        if shorter is None:
            raise ModelUnavailable(f"{self._endpoint.address} refused a short text (answered {answer.status})")
        return self._ask([texts[0][:shorter]])

    def _check(self, answer: object, *, count: int) -> list[Vector]:
        raw = self._wire.vectors(answer)
        if raw is None:
            raise ModelOutputInvalid(f"{self._endpoint.address} gave an answer without embeddings")
        if len(raw) != count:
            raise ModelOutputInvalid(f"{self._endpoint.address} gave {len(raw)} embeddings for {count} texts")
        vectors: list[Vector] = []
        for numbers in raw:
            vector = unit_vector(numbers)
            if vector is None:
                raise ModelOutputInvalid(f"{self._endpoint.address} gave an embedding that is not a list of numbers")
            self._dimension = self._dimension or len(vector)
            if len(vector) != self._dimension:
                raise ModelOutputInvalid(
                    f"{self._endpoint.address} gave an embedding of {len(vector)} numbers, before of {self._dimension}"
                )
            vectors.append(vector)
        return vectors


def unit_vector(numbers: object) -> list[float] | None:
    """The numbers scaled to Euclidean length 1; None unless they are a list of finite numbers that has a direction.

    All zeros have none, nor has anything so small that it rounds to nothing.
    """
    if not isinstance(numbers, list) or not all(type(number) in (int, float) for number in numbers):
        return None
    try:
        length = math.hypot(*numbers)
    except OverflowError:
        return None
    if not SMALLEST_LENGTH < length < math.inf:
        return None
    return [number / length for number in numbers]
