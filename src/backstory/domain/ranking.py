"""How well a memory answers a query: one scoring for every backend, explained part by part.

Finding candidates is the index's; whether the best of them is good enough is ``relevance.py``'s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backstory.domain.ids import ProjectId
from backstory.domain.memory import Memory, Superseded
from backstory.domain.small_talk import SMALL_TALK
from backstory.domain.text import QueryTerm

# BM25's usual constants (Robertson and Zaragoza, 2009).
BM25_K1 = 1.2
BM25_B = 0.75

# Memories that every store is taken to hold beside its own, none with any of the words asked for. In a store of one, a
# word would otherwise be common as soon as its only memory has it. No measurable effect from 200 memories on.
PRIOR_MEMORIES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class WordStatistics:
    """What is known of the words of a store: how many memories there are, how long, and how many hold each token."""

    documents: int
    mean_length: float
    frequency: Mapping[str, int]

    def idf(self, token: str) -> float:
        """Rarity of a token, above 0: lowest when every memory holds it, highest (``rarest``) when none does."""
        return self._idf(self.frequency.get(token, 0))

    @property
    def rarest(self) -> float:
        """The rarity of a word that no memory holds."""
        return self._idf(0)

    def _idf(self, count: int) -> float:
        others = max(self.documents - count, 0) + PRIOR_MEMORIES
        return math.log(1.0 + (others + 0.5) / (count + 0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingPolicy:
    """The weights. A tie-breaker never beats a clearly better match.

    ``lexical_weight`` and the cube of the coverage follow measurements (``python -m bench quality``): a plain sum lets
    a memory that shares half of the words beat the one that means the same, and loses to the cosine alone.
    """

    lexical_weight: float = 0.8
    coverage_power: int = 3
    same_project: float = 0.01
    session: float = 0.002
    sessions_at_most: int = 5
    freshness: float = 0.01
    half_life: timedelta = timedelta(days=45)
    superseded_penalty: float = 0.1

    @property
    def ties_at_most(self) -> float:
        """What all tie-breakers together can give."""
        return self.same_project + self.session * self.sessions_at_most + self.freshness


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A score and where it comes from.

    ``total`` lies in [0, 1]. ``similarity`` is the cosine to the query, None where no vector took part. ``lexical`` is
    BM25 divided by its best possible value and ``coverage`` the share of the query's weight in rare words that the
    memory holds; both in [0, 1]. ``ties`` is the sum of the tie-breakers in ``total``; ``rarity`` and ``asked`` are
    those of ``WordMatch``.
    """

    total: float
    similarity: float | None
    lexical: float
    coverage: float
    ties: float
    matched: tuple[str, ...] = ()
    rarity: float = 0.0
    asked: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WordMatch:
    """What the words alone say about one memory.

    ``rarity`` is how much the matched words tell, small talk left out; a word that no memory holds would tell 1.
    ``asked`` is the number of words in the query, a part of a name by its weight; 0 when all of them are small talk.
    """

    lexical: float
    coverage: float
    matched: tuple[str, ...]
    rarity: float = 0.0
    asked: float = 0.0


NO_WORDS = WordMatch(lexical=0.0, coverage=0.0, matched=())


def match_words(
    terms: Sequence[QueryTerm], *, held: Mapping[str, int], length: int, statistics: WordStatistics
) -> WordMatch:
    """Score the words of one memory against a query.

    ``held`` counts the query's tokens in the memory. A query word that no memory holds still counts in the coverage: it
    asks for something that is not here. Nothing ``held`` gives what the query asks, matched by nothing.
    """
    mass = scored = covered = rare = asked = 0.0
    asks = False
    for term in terms:
        weight = term.weight * statistics.idf(term.token)
        telling = term.token not in SMALL_TALK
        asks = asks or telling
        mass += weight
        asked += term.weight
        count = held.get(term.token, 0)
        if count:
            covered += weight
            rare += weight * telling
            scored += weight * _saturation(count, length=length, mean_length=statistics.mean_length)
    if mass == 0.0:
        return NO_WORDS
    return WordMatch(
        lexical=scored / (mass * (BM25_K1 + 1.0)),
        coverage=covered / mass,
        matched=tuple(term.token for term in terms if held.get(term.token, 0)),
        rarity=rare / statistics.rarest,
        asked=asked if asks else 0.0,
    )


def score_memory(
    memory: Memory,
    *,
    words: WordMatch,
    similarity: float | None,
    project: ProjectId | None,
    now: datetime,
    policy: RankingPolicy,
) -> Score:
    """Join what words and meaning (``match``) and circumstances say about one memory."""
    matching = match(words, similarity, policy)
    ties = _ties(memory, project=project, now=now, policy=policy)
    if isinstance(memory.status, Superseded):
        matching = max(0.0, matching - policy.superseded_penalty)
    return Score(
        total=matching * (1.0 - policy.ties_at_most) + ties,
        similarity=similarity,
        lexical=words.lexical,
        coverage=words.coverage,
        ties=ties,
        matched=words.matched,
        rarity=words.rarity,
        asked=words.asked,
    )


def match(words: WordMatch, similarity: float | None, policy: RankingPolicy) -> float:
    """What words and meaning say about a memory, in [0, 1], whatever else is known of it.

    With a vector: the cosine, of whose distance to 1 the words close a share as far as they cover the query. Without:
    the lexical part alone, in which a memory that covers everything asked scores high whatever its length.
    """
    wording = 0.5 + 0.5 * words.lexical
    if similarity is None:
        return words.coverage * wording
    agreement = policy.lexical_weight * words.coverage**policy.coverage_power * wording
    return 1.0 - (1.0 - min(max(similarity, 0.0), 1.0)) * (1.0 - agreement)


def rank_key(memory: Memory, score: Score) -> tuple[float, datetime, int]:
    """Sort by this, in descending order: best score, then newest, then highest number."""
    return (score.total, memory.times.learned, memory.n)


def freshness(memory: Memory, *, now: datetime, policy: RankingPolicy) -> float:
    """Freshness in [0, 1]: halved with each half-life since it was last confirmed; a pinned memory stays at 1."""
    if memory.pinned:
        return 1.0
    age = max(now - memory.times.confirmed, timedelta(0))
    return float(0.5 ** (age / policy.half_life))


def explain(score: Score) -> tuple[str, ...]:
    """The reasons for a score, for people: strongest kinds of evidence first."""
    reasons = []
    if score.similarity is not None:
        reasons.append(f"meaning {score.similarity:.2f}")
    if score.matched:
        reasons.append(f"words {score.coverage:.0%} of the query ({', '.join(score.matched[:6])})")
    if not reasons:
        reasons.append("newest")
    return tuple(reasons)


def _saturation(count: int, *, length: int, mean_length: float) -> float:
    norm = 1.0 - BM25_B + BM25_B * (length / mean_length if mean_length else 1.0)
    return count * (BM25_K1 + 1.0) / (count + BM25_K1 * norm)


def _ties(memory: Memory, *, project: ProjectId | None, now: datetime, policy: RankingPolicy) -> float:
    here = policy.same_project if memory.project is not None and memory.project == project else 0.0
    sessions = policy.session * min(memory.counters.sessions, policy.sessions_at_most)
    return here + sessions + policy.freshness * freshness(memory, now=now, policy=policy)
