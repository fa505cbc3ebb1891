"""The gate: whether what was found is good enough to be said, or silence is better, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from backstory.domain.ranking import Score


class Relevance(StrEnum):
    """How sure to be before offering something unasked."""

    QUIET = "quiet"
    BALANCED = "balanced"
    KEEN = "keen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sure:
    """What is offered unasked must be likely to answer; limits are confidences in [0, 1].

    ``with_meaning`` holds where a vector took part, ``by_words`` where the words decide alone. A memory is offered
    beside a better one only if its total is at least the share ``beside_best`` of the better one's; a doubt does not
    hide it.
    """

    with_meaning: float
    by_words: float
    beside_best: float = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Fair:
    """What was asked for by name passes when its meaning is not far, it holds some of the query's words, or a second
    model tells it apart from all others (``APART``).

    ``similarity`` is one of all-MiniLM-L6-v2; ``coverage`` a share of the query's weight in rare words.
    """

    similarity: float
    coverage: float


Threshold = Sure | Fair


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """A logistic model: what each kind of evidence adds to the log-odds that a memory answers.

    ``covered`` weighs the cube of the coverage: half of the words are in some memory by chance, nearly all of them in
    the one that answers. ``brevity`` and ``excess`` weigh what ``length_evidence`` gives: a prompt of one or two words
    asks for little, a pasted file for nothing in particular.
    """

    start: float
    similarity: float = 0.0
    answered: float = 0.0
    coverage: float = 0.0
    covered: float = 0.0
    rarity: float = 0.0
    brevity: float = 0.0
    excess: float = 0.0
    question: float = 0.0


ENOUGH_WORDS = 6
MANY_WORDS = 10
MOST_WORDS = 40  # longer prompts were too rare to learn from
MIN_NEARNESS = 0.46  # of similarity and answered together, unless half of the query's rare words are there
MIN_SIMILARITY = 0.25  # the same where a model gives no vectors of words
HALF = 0.5
FAR_OFF = "far off, neither near in meaning nor with half of the words"
ASKS_NOTHING = "the prompt has no word that asks for anything"
MIN_COVERAGE = 0.15  # below it, a few words of a long prompt are here by chance

# Fitted by ``python -m bench fit-gate`` on 662 labelled prompts of coding sessions (535 and 127), and rounded. The
# figures of these models on projects they were not fitted on stand in bench/RESULTS.md; the limits and floors below
# were picked on the same prompts. The first is for a model that gives vectors of words, the second for one that gives
# none.
_WORD_BY_WORD = _Evidence(
    start=-3.0, similarity=5.6, answered=10.1, covered=3.1, brevity=2.6, excess=-3.2, question=1.9
)
_WITH_MEANING = _Evidence(start=-0.9, similarity=8.5, coverage=2.3, brevity=3.0, excess=-1.9, question=1.6)
_BY_WORDS = _Evidence(start=-5.7, coverage=3.3, rarity=5.4)

# A question in another language lies farther from everything, its answer too, so that no limit on the similarity itself
# tells them apart; how far it lies above the nearest others does. Of the 15 labelled prompts in another language that
# coding sessions have, 3 were shown their answer without this, 13 with it; prompts without an answer were shown 3.8
# memories instead of 3.2.
APART = 0.1

UNASKED: dict[Relevance, Threshold] = {
    Relevance.QUIET: Sure(with_meaning=0.82, by_words=0.5),
    Relevance.BALANCED: Sure(with_meaning=0.75, by_words=0.3),
    Relevance.KEEN: Sure(with_meaning=0.62, by_words=0.18),
}
# Asked for by name, weaker matches are worth showing, and one word in common is reason enough.
REQUESTED: Threshold = Fair(similarity=0.21, coverage=0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Which of the scored memories may be said (positions, in order), or why none."""

    passed: tuple[int, ...]
    silent_because: str | None


def judge(scores: Sequence[Score], threshold: Threshold) -> Verdict:
    """Let through what passes the threshold; ``scores`` are best first. Never empty without a reason."""
    if not scores:
        return Verdict(passed=(), silent_because="no memory shares a word or a meaning with this")
    passing = [position for position, score in enumerate(scores) if passes(score, threshold)]
    if not passing:
        return Verdict(passed=(), silent_because=_too_weak(max(scores, key=confidence), threshold))
    share = threshold.beside_best if isinstance(threshold, Sure) else 0.0
    least = share * scores[passing[0]].total
    near = (position for position in passing if max(scores[position].total, scores[position].undoubted) >= least)
    return Verdict(passed=tuple(near), silent_because=None)


def passes(score: Score, threshold: Threshold) -> bool:
    """Whether one memory is close enough."""
    match threshold:
        case Sure():
            return score.asked > 0.0 and not _is_far(score) and confidence(score) >= _limit(score, threshold)
        case Fair():
            by_meaning = score.similarity is not None and score.similarity >= threshold.similarity
            by_second = score.apart is not None and score.apart >= APART
            return by_meaning or by_second or (bool(score.matched) and score.coverage >= threshold.coverage)
        case _:
            assert_never(threshold)


def confidence(score: Score) -> float:
    """How likely a memory with this score answers the query, in [0, 1], judged by labelled prompts.

    Comparable between queries, and between stores of any size; not between scores with and without a similarity.
    """
    if score.similarity is None and score.coverage < MIN_COVERAGE:
        return 0.0
    weights = _weights(score)
    brevity, excess = length_evidence(score.asked)
    odds = (
        weights.start
        + weights.similarity * (score.similarity or 0.0)
        + weights.answered * (score.answered or 0.0)
        + weights.coverage * score.coverage
        + weights.covered * score.coverage**3
        + weights.rarity * math.log1p(score.rarity)
        + weights.brevity * brevity
        + weights.excess * excess
        + weights.question * score.question
    )
    return 1.0 / (1.0 + math.exp(-odds))


def sureness(score: Score, threshold: Threshold) -> str:
    """How sure the gate is of a score and how sure it has to be; or why it does not go by that."""
    match threshold:
        case Fair():
            return f"score {score.total:.2f}"
        case Sure() if score.asked == 0.0:
            return ASKS_NOTHING
        case Sure():
            sure, needed = confidence(score), _limit(score, threshold)
            return FAR_OFF if sure >= needed and _is_far(score) else f"{sure:.0%} sure, needed {needed:.0%}"
        case _:
            assert_never(threshold)


def _is_far(score: Score) -> bool:
    """Whether a memory is further off than anything the models have learned from; they would be guessing.

    Labelled stores hold dozens of memories, so that the best one is always somewhat near; in a store of five it may
    not be. The floor costs 1 % of the answered prompts there.
    """
    if score.similarity is None:
        return False  # ``confidence`` has a floor of its own for words alone
    if score.answered is None:
        return score.similarity < MIN_SIMILARITY and score.coverage < HALF
    return score.similarity + score.answered < MIN_NEARNESS and score.coverage < HALF


def _weights(score: Score) -> _Evidence:
    if score.similarity is None:
        return _BY_WORDS
    return _WITH_MEANING if score.answered is None else _WORD_BY_WORD


def length_evidence(asked: float) -> tuple[float, float]:
    """How far a prompt falls short of ``ENOUGH_WORDS`` (at most 0), and how far it goes beyond ``MANY_WORDS`` (at least
    0); both as logarithms of a ratio."""
    brevity = math.log((1.0 + min(asked, ENOUGH_WORDS)) / (1.0 + ENOUGH_WORDS))
    excess = math.log(min(max(asked, MANY_WORDS), MOST_WORDS) / MANY_WORDS)
    return brevity, excess


def _limit(score: Score, threshold: Sure) -> float:
    return threshold.by_words if score.similarity is None else threshold.with_meaning


def _too_weak(best: Score, threshold: Threshold) -> str:
    words = f"its words cover {best.coverage:.0%} of the query"
    found = words if best.similarity is None else f"meaning {best.similarity:.2f}, {words}"
    match threshold:
        case Sure() if best.asked == 0.0:
            return ASKS_NOTHING
        case Sure():
            sure, least = confidence(best), _limit(best, threshold)
            odds = FAR_OFF if sure >= least else f"{sure:.0%} sure (needed {least:.0%})"
            return f"the best match is too weak: {found}; {odds}"
        case Fair():
            needed = f"needed {threshold.coverage:.0%} of the words"
            if best.similarity is not None:
                needed = f"needed meaning {threshold.similarity:.2f}, or {threshold.coverage:.0%} of the words"
            return f"the best match is too weak: {found} ({needed})"
        case _:
            assert_never(threshold)
