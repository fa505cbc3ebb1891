"""How well a memory answers a query: one scoring for every backend, explained part by part.

Finding candidates is the index's; whether the best of them is good enough is ``relevance.py``'s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from backstory.domain.doubt import Doubt
from backstory.domain.ids import ProjectId
from backstory.domain.memory import Conflicted, Memory, Superseded, Visibility
from backstory.domain.second_model import joined
from backstory.domain.small_talk import SMALL_TALK
from backstory.domain.text import QueryTerm, analyse_query
from backstory.domain.typed_words import AS_TOKENS, Wording
from backstory.domain.worth import LEAST_USEFULNESS, usefulness

# BM25's usual constants (Robertson and Zaragoza, 2009).
BM25_K1 = 1.2
BM25_B = 0.75

# Memories that every store is taken to hold beside its own, none with any of the words asked for. In a store of one, a
# word would otherwise be common as soon as its only memory has it. No measurable effect from 200 memories on.
PRIOR_MEMORIES = 100


# Evidence at which the labelled prompts were answered as often as not, and how much more makes it e times as likely.
EVEN_EVIDENCE = 12.0
EVIDENCE_STEP = 2.8
# Evidence for a memory that holds every word asked, where the words must decide alone: as much as a close meaning
# gives, so that a memory that has no vector yet does not stand behind one that has.
WORDS_ALONE = 25.0
# The share of it for holding the words at all; the rest is for how much of the memory they are. With 0.5 it outweighs
# ``own_project`` too often: by words alone R@1 is 38.7 instead of 39.0 on the coding prompts, R@5 46.3 with both.
FOR_HOLDING_THEM = 0.6

# A memory of so many words agrees as much as it does; a longer one has more chances that one of them is near by luck.
USUAL_WORDS = 15
FEW_WORDS = 4  # so few are not lucky but short

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
class RankingPolicy:
    """The weights, as data.

    The first six say what each kind of evidence adds where a vector took part; only their ratios order memories.
    Chosen by hand on the 381 labelled prompts of coding sessions, near their listwise fit (``python -m bench
    fit-ranking``), with an eye on the small set alone and among 10,000 turns; so no figure on those sets is a held-out
    one for these weights. What the fit ranks on projects it has not seen is in bench/RESULTS.md (docs/adr/0019).
    ``names`` lets a name that is matched whole outweigh a text that is merely about the same; ``length`` takes back
    what a long text agrees by having many words (docs/adr/0010).
    A global memory answers a project's prompt far more rarely than one of its own: ``own_project`` was worth three to
    five points of R@1. The rest are tie-breakers, which never beat a clearly better match. ``useful`` counts a
    usefulness in [-0.5, 0.5]. What is doubted or disputed falls behind what answers as well; the gate does not hold
    that against it. ``doubted_penalty`` was set on the stale traps of ``python -m bench coding``.
    """

    similarity: float = 10.0
    agreement: float = 9.0
    coverage: float = 1.0
    names: float = 4.0
    length: float = 0.7
    own_project: float = 2.0
    session: float = 0.02
    sessions_at_most: int = 5
    freshness: float = 0.1
    half_life: timedelta = timedelta(days=45)
    useful: float = 0.6
    superseded_penalty: float = 1.0
    doubted_penalty: float = 3.6
    conflicted_penalty: float = 0.5

    @property
    def most_ties(self) -> float:
        """The most that circumstances can add to a memory."""
        useful = self.useful * -LEAST_USEFULNESS
        return self.own_project + self.session * self.sessions_at_most + self.freshness + useful

    def as_score(self, evidence: float) -> float:
        """Evidence on a scale that people can read: in (0, 1), about 0.5 where an answer is as likely as not."""
        return 1.0 / (1.0 + math.exp(-(evidence - EVEN_EVIDENCE) / EVIDENCE_STEP))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A score and where it comes from.

    ``total`` lies in [0, 1]. ``similarity`` is the cosine to the query, None where no vector took part. ``agreement``
    says how well each word of the query has its like in the memory, ``answered`` how well each word of the memory has
    its like in the query; both are means of cosines, None where the model gave no vectors of words. ``second`` is the
    similarity by a second model on the scale of the first and ``apart`` how far it lies above that of the others it
    found, both None where none took part. ``lexical`` is BM25
    divided by its best possible value and ``coverage`` the share of the query's weight in rare words that the memory
    holds; both in [0, 1]. ``ties`` is what circumstances added; ``rarity``, ``asked`` and ``named`` are those of
    ``WordMatch``, ``length`` is that of ``Meaning``.
    ``question`` tells that the query ends as one. ``undoubted`` is the total that it would have if the memory were
    neither doubted nor disputed.
    """

    total: float
    similarity: float | None
    lexical: float
    coverage: float
    ties: float
    matched: tuple[str, ...] = ()
    rarity: float = 0.0
    asked: float = 0.0
    named: float = 0.0
    agreement: float | None = None
    answered: float | None = None
    length: float = 0.0
    question: bool = False
    undoubted: float = 0.0
    second: float | None = None
    apart: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What the vectors say about one memory; see ``Score``. ``words`` is how many it has, where that is known."""

    similarity: float
    agreement: float | None = None
    answered: float | None = None
    words: int | None = None
    second: float | None = None
    apart: float | None = None

    @property
    def length(self) -> float:
        """The logarithm of how many times the usual number of words it has; 0 where the number is not known."""
        return math.log(max(self.words, FEW_WORDS) / USUAL_WORDS) if self.words else 0.0


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


def score_memory(
    memory: Memory,
    *,
    words: WordMatch,
    meaning: Meaning | None,
    question: bool = False,
    doubt: Doubt | None = None,
    project: ProjectId | None,
    now: datetime,
    policy: RankingPolicy,
) -> Score:
    """Join what words and meaning (``match``) and circumstances say about one memory."""
    against = _against(memory, doubt, policy)
    ties = _ties(memory, project=project, now=now, policy=policy) - against
    evidence = match(words, meaning, policy) + ties
    return Score(
        total=policy.as_score(evidence),
        undoubted=policy.as_score(evidence + against),
        similarity=None if meaning is None else meaning.similarity,
        lexical=words.lexical,
        coverage=words.coverage,
        ties=ties,
        matched=words.matched,
        rarity=words.rarity,
        asked=words.asked,
        named=words.named,
        agreement=None if meaning is None else meaning.agreement,
        answered=None if meaning is None else meaning.answered,
        length=0.0 if meaning is None else meaning.length,
        question=question,
        second=None if meaning is None else meaning.second,
        apart=None if meaning is None else meaning.apart,
    )


def match(words: WordMatch, meaning: Meaning | None, policy: RankingPolicy) -> float:
    """What words and meaning say about a memory, whatever else is known of it: a sum of evidence, higher is better.

    With a vector: the cosine of the texts (of two models, the mean), the agreement of their words for their number, the
    words themselves as far as they cover the query, and names above others. Without: the words alone, in which a memory
    that covers everything asked counts high whatever its length.
    """
    if meaning is None:
        return WORDS_ALONE * words.coverage * (FOR_HOLDING_THEM + (1.0 - FOR_HOLDING_THEM) * words.lexical)
    agreed = usual_agreement(meaning.similarity) if meaning.agreement is None else meaning.agreement
    return (
        policy.similarity * max(joined(meaning.similarity, meaning.second), 0.0)
        + policy.agreement * agreed
        + policy.coverage * words.coverage**3 * (0.5 + 0.5 * words.lexical)
        + policy.names * words.named
        - policy.length * meaning.length
    )


def usual_agreement(similarity: float) -> float:
    """What the words' agreement is on average at a similarity (least squares over the labelled prompts, r = 0.79)."""
    return 0.16 + 0.74 * similarity


def rank_key(memory: Memory, score: Score) -> tuple[float, datetime, int]:
    """Sort by this, in descending order: best score, then newest, then highest number."""
    return (score.total, memory.times.learned, memory.n)


def freshness(memory: Memory, *, now: datetime, policy: RankingPolicy) -> float:
    """Freshness in [0, 1]: halved with each half-life since it was last confirmed; a pinned memory stays at 1."""
    if memory.pinned:
        return 1.0
    age = max(now - memory.times.confirmed, timedelta(0))
    return float(0.5 ** (age / policy.half_life))


def explain(score: Score, doubt: Doubt | None = None, wording: Wording = AS_TOKENS) -> tuple[str, ...]:
    """The reasons for a score, for people: strongest kinds of evidence first, then what is to be checked. ``wording``
    has the query's words as they were typed."""
    reasons = []
    if score.similarity is not None:
        alike = "" if score.agreement is None else f", word by word {score.agreement:.2f}"
        other = "" if score.second is None else f", by the second model {score.second:.2f}"
        reasons.append(f"meaning {score.similarity:.2f}{alike}{other}")
    if score.matched:
        reasons.append(f"words {score.coverage:.0%} of the query ({', '.join(wording.of(score.matched)[:6])})")
    checks = () if doubt is None else (f"check: {doubt.reason}",)
    return (*(reasons or ["newest"]), *checks)


def _saturation(count: int, *, length: int, mean_length: float) -> float:
    norm = 1.0 - BM25_B + BM25_B * (length / mean_length if mean_length else 1.0)
    return count * (BM25_K1 + 1.0) / (count + BM25_K1 * norm)


def _ties(memory: Memory, *, project: ProjectId | None, now: datetime, policy: RankingPolicy) -> float:
    here = policy.own_project if project is not None and memory.project == project and not _is_global(memory) else 0.0
    sessions = policy.session * min(memory.counters.sessions, policy.sessions_at_most)
    replaced = policy.superseded_penalty if isinstance(memory.status, Superseded) else 0.0
    fresh = policy.freshness * freshness(memory, now=now, policy=policy)
    return here + sessions + fresh + policy.useful * usefulness(memory) - replaced


def _against(memory: Memory, doubt: Doubt | None, policy: RankingPolicy) -> float:
    """What is taken from a memory that may not hold."""
    doubted = 0.0 if doubt is None else policy.doubted_penalty
    return doubted + (policy.conflicted_penalty if isinstance(memory.status, Conflicted) else 0.0)


def _is_global(memory: Memory) -> bool:
    return memory.visibility is Visibility.GLOBAL
