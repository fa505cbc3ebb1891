"""How well what was said answers a question: the signs of passages weighed, messages scored by their best passage.

The signs are read in ``evidence_signs.py``; cutting messages is in ``evidence_passages.py``; what a question says of
speakers, days and details in ``evidence_hints.py``. Evidence is never ranked in one list with memories, so its scores
need not be theirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

from backstory.domain.evidence_signs import PassageSigns
from backstory.domain.evidence_talk import TalkSigns, nearness
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.typed_words import AS_TOKENS, Wording

_BEST_OF_SESSION = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceWeights:
    """What each sign counts. Words are first divided by the best of the question's candidates.

    ``words`` are those of the passage, ``words_far`` those of the passage joined with up to four on either side,
    ``coverage`` the share of the question's rare words in the passage and its neighbours, ``session_words`` that share
    in all that was loaded of its session, ``together`` the share that stands in the passage beside a word it stands
    beside in the question. ``meaning`` counts by how far the cosine lies above that of the other
    candidates (four standard deviations are 1), ``meaning_around`` by the mean cosine of the passage and its
    neighbours, divided by the best. ``speaker``, ``date`` and ``user`` are added where the passage is of the speaker or
    the day that the question names, or a user's; ``asked`` where a user answers a question that holds the words;
    ``dated`` and ``counted`` where it tells a time or a number and the question wants one. ``length`` is taken off for
    each doubling of a message's passages among the candidates: of many, one fits by chance. ``brief`` is taken off a
    passage of next to nothing. Those from ``alike`` on count what ``TalkSigns`` tells, where there are any.
    Then a message gets ``neighbour`` times the score of the better message beside it, and ``session`` times the mean
    of its session's best three.
    """

    words: float
    words_far: float
    coverage: float
    session_words: float
    together: float
    meaning: float
    meaning_around: float
    speaker: float
    date: float
    user: float
    asked: float
    dated: float
    counted: float
    length: float
    brief: float
    neighbour: float
    session: float
    alike: float = 0.0
    alike_near: float = 0.0
    alike_session: float = 0.0
    meaning_near: float = 0.0
    meaning_far: float = 0.0
    opening: float = 0.0
    of_oneself: float = 0.0


# Fitted by ``python -m bench fit-evidence`` on every second conversation of LoCoMo, BEAM and the labelled transcripts
# together, and judged on the others; figures in bench/RESULTS.md, the method in docs/adr/0009-evidence-signs.md.
WITH_MEANING = EvidenceWeights(
    words=0.43,
    words_far=0.26,
    coverage=0.27,
    session_words=0.9,
    together=0.76,
    meaning=0.66,
    meaning_around=0.07,
    speaker=0.71,
    date=0.5,
    user=0.2,
    asked=0.22,
    dated=0.19,
    counted=0.58,
    length=0.21,
    brief=0.79,
    neighbour=0.29,
    session=0.13,
)
BY_WORDS = EvidenceWeights(
    words=0.97,
    words_far=0.43,
    coverage=0.11,
    session_words=0.83,
    together=0.85,
    meaning=0.0,
    meaning_around=0.0,
    speaker=0.76,
    date=0.42,
    user=0.26,
    asked=0.21,
    dated=0.31,
    counted=0.55,
    length=0.22,
    brief=0.56,
    neighbour=0.3,
    session=0.08,
)
# For chats between people: fitted on every second conversation of LoCoMo alone (docs/adr/0020).
WORD_BY_WORD = EvidenceWeights(
    words=0.1,
    words_far=0.35,
    coverage=0.27,
    session_words=0.0,
    together=0.47,
    meaning=0.09,
    meaning_around=0.0,
    speaker=0.85,
    date=0.95,
    user=0.0,
    asked=0.5,
    dated=0.55,
    counted=0.24,
    length=0.0,
    brief=0.36,
    neighbour=0.05,
    session=0.0,
    alike=0.51,
    alike_near=0.37,
    alike_session=0.59,
    meaning_near=0.23,
    meaning_far=0.21,
    opening=0.2,
    of_oneself=0.18,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceScore:
    """A message's score in [0, 1], and its best passage with the signs for it."""

    total: float
    best: PassageSigns


def score_messages(signs: Sequence[PassageSigns], weights: EvidenceWeights) -> list[EvidenceScore]:
    """Every message with its score, best first, ties in the order of the passages."""
    best = _best_passages(signs, _own_scores(signs, weights))
    beside = _neighbouring_messages(signs)
    of_session: defaultdict[SessionId, list[float]] = defaultdict(list)
    smoothed: dict[MessageId, float] = {}
    for message, (own, sign) in best.items():
        neighbour = max([0.0, *(best[other][0] for other in beside[message])])
        smoothed[message] = own + weights.neighbour * neighbour
        of_session[sign.session].append(smoothed[message])
    lift = {
        session: weights.session * sum(sorted(scores)[-_BEST_OF_SESSION:]) / _BEST_OF_SESSION
        for session, scores in of_session.items()
    }
    highest = _highest(weights)
    scores = [
        EvidenceScore(total=max(0.0, smoothed[message] + lift[sign.session]) / highest, best=sign)
        for message, (_, sign) in best.items()
    ]
    return sorted(scores, key=lambda score: -score.total)


def explain_evidence(signs: PassageSigns, wording: Wording = AS_TOKENS) -> tuple[str, ...]:
    """The reasons for a message, for people; ``wording`` has the question's words as they were typed."""
    reasons = []
    if signs.cosine is not None:
        reasons.append(f"meaning {max(signs.cosine, signs.cosine_around or 0.0):.2f}")
    if signs.matched:
        reasons.append(f"words {signs.coverage:.0%} of the question ({', '.join(wording.of(signs.matched)[:6])})")
    if signs.talk is not None and signs.talk.alike >= LIKE_ENOUGH:
        reasons.append("like words")
    if signs.speaker:
        reasons.append("the speaker asked for")
    if signs.date:
        reasons.append("the time asked for")
    return tuple(reasons)


# The first values of a search on request, as for memories; a question of small talk alone asks for nothing.
NEAR_ENOUGH = 0.25
COVERED_ENOUGH = 0.1
LIKE_ENOUGH = 0.25
"""Agreement of words, one standard deviation above the usual, that is told among the reasons."""


def answers(signs: PassageSigns) -> bool:
    """Whether a passage is near enough to be shown to somebody who asked."""
    near = max(signs.cosine or 0.0, signs.cosine_around or 0.0) >= NEAR_ENOUGH
    return near or (signs.telling and signs.coverage >= COVERED_ENOUGH)


def _own_scores(signs: Sequence[PassageSigns], weights: EvidenceWeights) -> list[float]:
    words = max((sign.words for sign in signs), default=0.0) or 1.0
    words_far = max((sign.words_far for sign in signs), default=0.0) or 1.0
    near_around = max((sign.cosine_around for sign in signs if sign.cosine_around is not None), default=0.0)
    nearness = _nearness(signs)
    embedded = any(near is not None for near in nearness)
    scores = []
    for sign, near in zip(signs, nearness, strict=True):
        wording, wording_far = sign.words / words, sign.words_far / words_far
        score = weights.words * wording + weights.words_far * wording_far + weights.coverage * sign.coverage
        score += weights.session_words * sign.session_words + weights.together * sign.together
        score += weights.asked * sign.asked / words
        if embedded:
            # without a vector of its own yet, a passage is taken to mean what its words say
            score += weights.meaning * (wording if near is None else near)
        if near_around > 0.0:
            around = wording if sign.cosine_around is None else max(sign.cosine_around, 0.0) / near_around
            score += weights.meaning_around * around
        score += weights.speaker * sign.speaker + weights.date * sign.date + weights.user * sign.user
        score += weights.dated * sign.dated + weights.counted * sign.counted
        score += 0.0 if sign.talk is None else _of_talk(sign.talk, weights)
        scores.append(score - weights.length * sign.length - weights.brief * sign.brief)
    return scores


def _of_talk(talk: TalkSigns, weights: EvidenceWeights) -> float:
    agreed = weights.alike * talk.alike + weights.alike_near * talk.alike_near
    agreed += weights.alike_session * talk.alike_session
    agreed += weights.meaning_near * talk.meaning_near + weights.meaning_far * talk.meaning_far
    return agreed + weights.opening * talk.opening + weights.of_oneself * talk.of_oneself


def _nearness(signs: Sequence[PassageSigns]) -> list[float | None]:
    """How far each cosine lies above the usual one of the candidates, -1 to 1; None where there is none."""
    cosines = [sign.cosine for sign in signs]
    return [None if cosine is None else near for cosine, near in zip(cosines, nearness(cosines), strict=True)]


def _best_passages(
    signs: Sequence[PassageSigns], scores: Sequence[float]
) -> dict[MessageId, tuple[float, PassageSigns]]:
    best: dict[MessageId, tuple[float, PassageSigns]] = {}
    for sign, score in zip(signs, scores, strict=True):
        if sign.message not in best or score > best[sign.message][0]:
            best[sign.message] = (score, sign)
    return best


def _neighbouring_messages(signs: Sequence[PassageSigns]) -> defaultdict[MessageId, list[MessageId]]:
    beside: defaultdict[MessageId, list[MessageId]] = defaultdict(list)
    for previous, sign in pairwise(signs):
        if sign.follows and sign.message != previous.message:
            beside[sign.message].append(previous.message)
            beside[previous.message].append(sign.message)
    return beside


def _highest(weights: EvidenceWeights) -> float:
    """The score of a message that is best in everything, with such a one beside it and three in its session."""
    others = ("neighbour", "session", "length", "brief")
    own = sum(getattr(weights, field.name) for field in fields(weights) if field.name not in others) + weights.date
    return float(own) * (1.0 + weights.neighbour) * (1.0 + weights.session)
