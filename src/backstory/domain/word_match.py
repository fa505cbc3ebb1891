"""What the words of a query say about a memory that holds some of them, weighed by how rare they are in the store.

What else speaks for a memory, and what all of it comes to, is ``ranking.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from backstory.domain.small_talk import SMALL_TALK
from backstory.domain.text import QueryTerm, analyse_query

# BM25's usual constants (Robertson and Zaragoza, 2009).
BM25_K1 = 1.2
BM25_B = 0.75

# Memories that every store is taken to hold beside its own, none with any of the words asked for. In a store of one, a
# word would otherwise be common as soon as its only memory has it. No measurable effect from 200 memories on.
PRIOR_MEMORIES = 100

# What a word counts that is in nearly every text: about the rarity of the commonest words of the labelled memories.
STOP_WORD_WEIGHT = 0.5


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
        return _idf(count, self.documents)


@lru_cache(maxsize=1024)  # asked again for each candidate
def _idf(count: int, documents: int) -> float:
    others = max(documents - count, 0) + PRIOR_MEMORIES
    return math.log(1.0 + (others + 0.5) / (count + 0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class WordMatch:
    """What the words alone say about one memory.

    ``rarity`` is how much the matched words tell, small talk left out; a word that no memory holds would tell 1.
    ``beyond`` is the same without the one that tells most: one word in common may be chance, a second hardly is.
    ``asked`` is the number of words in the query, a part of a name by its weight; 0 when all of them are small talk.
    ``named`` is the share of the query's words that are names and matched whole.
    """

    lexical: float
    coverage: float
    matched: tuple[str, ...]
    named: float = 0.0
    rarity: float = 0.0
    beyond: float = 0.0
    asked: float = 0.0


NO_WORDS = WordMatch(lexical=0.0, coverage=0.0, matched=())


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedQuery:
    """A query whose words have been weighed against a store: done once, then held against each memory.

    ``weights`` and ``telling`` are by token; what is small talk tells 0. ``mass`` is the sum of the weights. ``names``
    has the share of the query's words that each name is.
    """

    weights: Mapping[str, float]
    telling: Mapping[str, float]
    names: Mapping[str, float]
    mass: float
    asked: float
    rarest: float
    mean_length: float


def weigh_query(terms: Sequence[QueryTerm], statistics: WordStatistics) -> WeighedQuery:
    """Weigh each word by its rarity. A word that no memory holds still counts in the mass: it asks for something that
    is not here."""
    weights = {term.token: term.weight * statistics.idf(term.token) for term in terms}
    asks = any(term.token not in SMALL_TALK for term in terms)
    words = sum(term.weight for term in terms)
    return WeighedQuery(
        weights=weights,
        telling={token: 0.0 if token in SMALL_TALK else weight for token, weight in weights.items()},
        mass=sum(weights.values()),
        names={term.token: term.weight / words for term in terms if term.is_name},
        asked=words if asks else 0.0,
        rarest=statistics.rarest,
        mean_length=statistics.mean_length,
    )


def match_words(query: WeighedQuery, *, held: Mapping[str, int], length: int) -> WordMatch:
    """Score the words of one memory against a query.

    ``held`` counts tokens in the memory; those that are not asked for do not matter. Nothing ``held`` gives what the
    query asks, matched by nothing.
    """
    if query.mass == 0.0:
        return NO_WORDS
    matched = tuple(token for token in query.weights if held.get(token, 0))
    scored = covered = rare = most = 0.0
    for token in matched:
        weight, tells = query.weights[token], query.telling[token]
        covered += weight
        rare += tells
        most = max(most, tells)
        scored += weight * _saturation(held[token], length=length, mean_length=query.mean_length)
    return WordMatch(
        lexical=scored / (query.mass * (BM25_K1 + 1.0)),
        coverage=covered / query.mass,
        matched=matched,
        named=sum(share for name, share in query.names.items() if held.get(name, 0)),
        rarity=rare / query.rarest,
        beyond=(rare - most) / query.rarest,
        asked=query.asked,
    )


def weigh_words(words: Sequence[str], statistics: WordStatistics) -> tuple[float, ...]:
    """How much each word of a query tells: the root of its tokens' rarity; a stop word or a sign tells a little.

    The root lets several ordinary words outweigh a rare one; it was better than both the rarity itself and none.
    """
    return tuple(
        math.sqrt(
            max((term.weight * statistics.idf(term.token) for term in analyse_query(word)), default=STOP_WORD_WEIGHT)
        )
        for word in words
    )


def agreement(nearest: Sequence[float], weights: Sequence[float]) -> float:
    """The mean of the words' best cosines, each counted by how much the word tells; 0 without words."""
    total = sum(weights)
    return sum(cosine * weight for cosine, weight in zip(nearest, weights, strict=True)) / total if total else 0.0


def _saturation(count: int, *, length: int, mean_length: float) -> float:
    norm = 1.0 - BM25_B + BM25_B * (length / mean_length if mean_length else 1.0)
    return count * (BM25_K1 + 1.0) / (count + BM25_K1 * norm)
