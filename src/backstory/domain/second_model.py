"""A second embedding model beside the first: what its cosine is worth, and how the two are joined.

Vectors of two models are never compared. What is joined are two cosines, each between vectors of one model.
"""

from __future__ import annotations

# Cosines of multilingual-e5-small crowd together: between prompts and the memories found for them they are
# 0.800 ± 0.024 on the labelled coding prompts, those of all-MiniLM-L6-v2 0.019 ± 0.097. This maps one spread onto the
# other; answers took no part in it (docs/adr/0014).
_STEEPNESS = 4.0
_USUAL = 0.795  # the cosine that says as little as one of 0 by the first model


def as_first(cosine: float) -> float:
    """A cosine by the second model on the scale of the first: 0 says nothing, and few are above 0.5."""
    return _STEEPNESS * (cosine - _USUAL)


def joined(first: float, second: float | None) -> float:
    """How near two texts are by both models; ``second`` is on the scale of the first, None where it took no part.

    The plain mean. On the labelled coding prompts other shares are no better: more of the second helps other languages
    and costs reworded English prompts.
    """
    return first if second is None else (first + second) / 2.0
