"""Vectors for a store too large to embed in a bench: those of some real rows, each shifted by seeded noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from backstory.ports.backend import Backend
from backstory.ports.index import Embedded, Unembedded
from backstory.ports.models import Embedder, Passage

REAL_ROWS = 2_000
_ASKED = 20_000  # without a vector: to find them costs a walk past all that have one
BATCH = 1_000
SEED = 20260115
NOISE = 0.5
"""Length of the noise added to a vector of length 1: the cosine of a row to the one it was made from is about 0.89, as
that of two memories from one template is."""


async def embed_made_up(
    backend: Backend, embedder: Embedder, real: Sequence[str], *, progress: Callable[[int], None]
) -> None:
    """Give every memory without a vector the passage of one of the ``real`` texts, its vector with noise."""
    passages = [passage for passage in await embedder.read(list(real)) if passage is not None]
    model = await embedder.model()
    dice = np.random.default_rng(SEED)
    while missing := await backend.vectors.unembedded(model=model, limit=_ASKED):
        for first in range(0, len(missing), BATCH):
            batch = missing[first : first + BATCH]
            chosen = [passages[place] for place in dice.integers(len(passages), size=len(batch))]
            await backend.vectors.put_vectors(_shifted(batch, chosen, dice), model=model)
            progress(len(batch))


def _shifted(missing: Sequence[Unembedded], chosen: Sequence[Passage], dice: np.random.Generator) -> list[Embedded]:
    vectors = np.array([passage.vector for passage in chosen])
    noise = dice.normal(size=vectors.shape)
    vectors += NOISE * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [
        Embedded(id=item.id, revision=item.revision, vector=vector, words=passage.words)
        for item, passage, vector in zip(missing, chosen, vectors.tolist(), strict=True)
    ]
