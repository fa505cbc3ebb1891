"""The gate: whether what was found is good enough to be said, or silence is better, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from backstory.domain.ranking import Score


class Relevance(StrEnum):
    """How sure to be before offering something unasked."""

    QUIET = "quiet"
    BALANCED = "balanced"
    KEEN = "keen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A memory passes when its meaning alone is close, or its words cover the query, or both do somewhat.

    ``similarity`` is a cosine of all-MiniLM-L6-v2; ``coverage`` a share of the query's rare words. ``joint`` is the
    sum ``similarity + coverage`` that passes when neither is enough.
    """

    similarity: float
    coverage: float
    joint: float
    words: int


# Fitted by hand on labelled prompts of coding sessions; see docs/explanation/recall.md for the figures.
UNASKED = {
    Relevance.QUIET: Threshold(similarity=0.55, coverage=0.75, joint=0.85, words=2),
    Relevance.BALANCED: Threshold(similarity=0.45, coverage=0.6, joint=0.7, words=2),
    Relevance.KEEN: Threshold(similarity=0.38, coverage=0.45, joint=0.55, words=1),
}
# Asked for by name, weaker matches are worth showing, and one word in common is reason enough.
REQUESTED = Threshold(similarity=0.25, coverage=0.1, joint=0.3, words=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Which of the scored memories may be said (positions, in order), or why none."""

    passed: tuple[int, ...]
    silent_because: str | None


def judge(scores: Sequence[Score], threshold: Threshold) -> Verdict:
    """Let through what passes the threshold; ``scores`` are best first. Never empty without a reason."""
    if not scores:
        return Verdict(passed=(), silent_because="no memory shares a word or a meaning with this")
    passed = tuple(position for position, score in enumerate(scores) if passes(score, threshold))
    if passed:
        return Verdict(passed=passed, silent_because=None)
    return Verdict(passed=(), silent_because=_too_weak(scores[0], threshold))


def passes(score: Score, threshold: Threshold) -> bool:
    """Whether one memory is close enough."""
    enough_words = len(score.matched) >= threshold.words
    by_words = score.coverage >= threshold.coverage and enough_words
    if score.similarity is None:
        return by_words
    by_meaning = score.similarity >= threshold.similarity
    together = score.similarity + score.coverage >= threshold.joint and enough_words
    return by_meaning or by_words or together


def _too_weak(best: Score, threshold: Threshold) -> str:
    words = f"its words cover {best.coverage:.0%} of the query (needed {threshold.coverage:.0%})"
    if best.similarity is None:
        return f"the best match is too weak: {words}"
    return f"the best match is too weak: meaning {best.similarity:.2f} (needed {threshold.similarity:.2f}), {words}"
