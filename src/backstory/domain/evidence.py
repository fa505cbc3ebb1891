"""How well what was said answers a question: passages scored with their neighbours, messages by their best passage.

Cutting messages is in ``evidence_passages.py``; what a question says of speakers and days in ``evidence_hints.py``.
Evidence is never ranked in one list with memories, so its scores need not be theirs.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

from backstory.domain.conversation import Role
from backstory.domain.evidence_hints import DateHint, SpeakerHint
from backstory.domain.evidence_passages import LoadedPassage, PassageNumber
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.ranking import BM25_B, BM25_K1
from backstory.domain.small_talk import SMALL_TALK
from backstory.domain.text import QueryTerm

_BEST_OF_SESSION = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceWeights:
    """What each sign counts. Words and meaning are first divided by the best of the question's candidates.

    ``words`` and ``meaning`` are those of the passage, ``words_around`` and ``meaning_around`` those of the passage
    joined with its neighbours, ``coverage`` the share of the question's rare words in the joined one. ``speaker``,
    ``date`` and ``user`` are added where the passage is of the speaker or the day that the question names, or a user's.
    ``length`` is taken off for each doubling of a message's passages among the candidates: of many, one fits by chance.
    Then a message gets ``neighbour`` times the score of the better message beside it, and ``session`` times the mean
    of its session's best three.
    """

    words: float
    words_around: float
    coverage: float
    meaning: float
    meaning_around: float
    speaker: float
    date: float
    user: float
    length: float
    neighbour: float
    session: float


# Fitted by ``python -m bench fit-evidence`` on every second conversation of LoCoMo, BEAM and the labelled transcripts
# together, each set counting the same, and judged on the others; figures in bench/RESULTS.md.
WITH_MEANING = EvidenceWeights(
    words=1.0,
    words_around=0.4,
    coverage=1.0,
    meaning=1.0,
    meaning_around=0.3,
    speaker=0.6,
    date=0.6,
    user=0.5,
    length=0.2,
    neighbour=0.2,
    session=0.2,
)
BY_WORDS = EvidenceWeights(
    words=1.0,
    words_around=0.4,
    coverage=0.4,
    meaning=0.0,
    meaning_around=0.0,
    speaker=0.6,
    date=0.2,
    user=0.5,
    length=0.15,
    neighbour=0.3,
    session=0.6,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceStatistics:
    """What is known of the words of all passages: how many there are, how long, and how many hold each token."""

    documents: int
    mean_length: float
    frequency: Mapping[str, int]

    def idf(self, token: str) -> float:
        """Rarity of a token, above 0."""
        count = min(self.frequency.get(token, 0), self.documents)
        return math.log(1.0 + (self.documents - count + 0.5) / (count + 0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageSigns:
    """What was found out about one passage. ``words`` and ``words_around`` are BM25 (unbounded), ``coverage`` lies in
    [0, 1], cosines are None where there is no vector; ``date`` lies in [0, 2]; ``length`` is the binary logarithm of
    how many passages of its message are candidates. ``matched`` are words of the question, here or beside it;
    ``telling`` says whether one of them is more than small talk."""

    passage: PassageNumber
    message: MessageId
    session: SessionId
    follows: bool
    words: float
    words_around: float
    coverage: float
    cosine: float | None
    cosine_around: float | None
    speaker: float
    date: float
    user: float
    length: float
    matched: tuple[str, ...]
    telling: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceScore:
    """A message's score in [0, 1], and its best passage with the signs for it."""

    total: float
    best: PassageSigns


def read_signs(
    terms: Sequence[QueryTerm],
    loaded: Sequence[LoadedPassage],
    *,
    statistics: EvidenceStatistics,
    cosines: Mapping[PassageNumber, float],
    speaker: SpeakerHint,
    date: DateHint | None,
) -> list[PassageSigns]:
    """The signs of each passage, in order. ``loaded`` is in the order of the sessions, as the index gives it.

    A passage's neighbours are those loaded directly before and after it. The vector of the joined passage is taken to
    be the mean of theirs.
    """
    idf = {term.token: term.weight * statistics.idf(term.token) for term in terms}
    mass = sum(idf.values()) or 1.0
    pieces = Counter(item.passage.message for item in loaded)
    signs = []
    for place, item in enumerate(loaded):
        around = _around(loaded, place)
        held = _summed([other.held for other in around])
        known = [cosines[other.passage.number] for other in around if other.passage.number in cosines]
        length = sum(other.length for other in around)
        signs.append(
            PassageSigns(
                passage=item.passage.number,
                message=item.passage.message,
                session=item.passage.session,
                follows=place > 0 and item.before == loaded[place - 1].passage.number,
                words=_bm25(item.held, item.length, statistics.mean_length, idf),
                words_around=_bm25(held, length, 3 * statistics.mean_length, idf),
                coverage=sum(idf[token] for token in held) / mass,
                cosine=cosines.get(item.passage.number),
                cosine_around=sum(known) / len(known) if known else None,
                speaker=float(speaker.fits(item.passage)),
                date=0.0 if date is None else date.fit(item.passage.at),
                user=float(item.passage.role is Role.USER),
                length=math.log2(pieces[item.passage.message]),
                matched=tuple(term.token for term in terms if term.token in held),
                telling=any(token not in SMALL_TALK for token in held),
            )
        )
    return signs


def score_messages(signs: Sequence[PassageSigns], weights: EvidenceWeights) -> list[EvidenceScore]:
    """Every message with its score, best first, ties in the order of the passages."""
    best = _best_passages(signs, _own_scores(signs, weights))
    beside = _neighbouring_messages(signs)
    of_session: defaultdict[SessionId, list[float]] = defaultdict(list)
    smoothed: dict[MessageId, float] = {}
    for message, (own, sign) in best.items():
        neighbour = max((best[other][0] for other in beside[message]), default=0.0)
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


def explain_evidence(signs: PassageSigns) -> tuple[str, ...]:
    """The reasons for a message, for people."""
    reasons = []
    if signs.cosine is not None:
        reasons.append(f"meaning {max(signs.cosine, signs.cosine_around or 0.0):.2f}")
    if signs.matched:
        reasons.append(f"words {signs.coverage:.0%} of the question ({', '.join(signs.matched[:6])})")
    if signs.speaker:
        reasons.append("the speaker asked for")
    if signs.date:
        reasons.append("the time asked for")
    return tuple(reasons)


# The first values of a search on request, as for memories; a question of small talk alone asks for nothing.
NEAR_ENOUGH = 0.25
COVERED_ENOUGH = 0.1


def answers(signs: PassageSigns) -> bool:
    """Whether a passage is near enough to be shown to somebody who asked."""
    near = max(signs.cosine or 0.0, signs.cosine_around or 0.0) >= NEAR_ENOUGH
    return near or (signs.telling and signs.coverage >= COVERED_ENOUGH)


def _around(loaded: Sequence[LoadedPassage], place: int) -> list[LoadedPassage]:
    around = [loaded[place]]
    if place > 0 and loaded[place].before == loaded[place - 1].passage.number:
        around.append(loaded[place - 1])
    if place + 1 < len(loaded) and loaded[place + 1].before == loaded[place].passage.number:
        around.append(loaded[place + 1])
    return around


def _summed(held: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for counts in held:
        for token, count in counts.items():
            total[token] = total.get(token, 0) + count
    return total


def _bm25(held: Mapping[str, int], length: int, mean_length: float, idf: Mapping[str, float]) -> float:
    norm = BM25_K1 * (1.0 - BM25_B + BM25_B * (length / mean_length if mean_length else 1.0))
    return sum(idf[token] * count * (BM25_K1 + 1.0) / (count + norm) for token, count in held.items())


def _own_scores(signs: Sequence[PassageSigns], weights: EvidenceWeights) -> list[float]:
    words = max((sign.words for sign in signs), default=0.0) or 1.0
    words_around = max((sign.words_around for sign in signs), default=0.0) or 1.0
    near = max((sign.cosine for sign in signs if sign.cosine is not None), default=0.0)
    near_around = max((sign.cosine_around for sign in signs if sign.cosine_around is not None), default=0.0)
    scores = []
    for sign in signs:
        wording, wording_around = sign.words / words, sign.words_around / words_around
        score = weights.words * wording + weights.words_around * wording_around + weights.coverage * sign.coverage
        if near > 0.0:
            # without a vector of its own yet, a passage is taken to mean what its words say
            score += weights.meaning * (wording if sign.cosine is None else max(sign.cosine, 0.0) / near)
        if near_around > 0.0:
            around = wording_around if sign.cosine_around is None else max(sign.cosine_around, 0.0) / near_around
            score += weights.meaning_around * around
        score += weights.speaker * sign.speaker + weights.date * sign.date + weights.user * sign.user
        scores.append(score - weights.length * sign.length)
    return scores


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
    others = ("neighbour", "session", "length")
    own = sum(getattr(weights, field.name) for field in fields(weights) if field.name not in others) + weights.date
    return float(own) * (1.0 + weights.neighbour) * (1.0 + weights.session)
