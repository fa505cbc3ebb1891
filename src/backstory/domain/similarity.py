"""How alike two texts look, letter by letter. Likeness of meaning (vectors) and finding texts are elsewhere."""

from __future__ import annotations

from backstory.domain.text import normalise


def trigrams(text: str) -> frozenset[str]:
    """All runs of three characters of the normalised text, edges marked by a blank; empty for a blank text.

    A text of one character has a trigram too.
    """
    normal = normalise(text)
    if not normal:
        return frozenset()
    padded = f" {normal} "
    return frozenset(padded[i : i + 3] for i in range(len(padded) - 2))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """The share of what both have in what either has, in [0, 1]; two empty sets have nothing in common, so 0."""
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared) if shared else 0.0
