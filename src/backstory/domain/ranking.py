"""How well a memory answers a query: one scoring for every backend, explained part by part.

What the words alone say is told by ``word_match.py``; finding candidates is the index's; whether the best of them is
good enough is ``relevance.py``'s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from backstory.domain.doubt import Doubt
from backstory.domain.ids import ProjectId
from backstory.domain.memory import Conflicted, Memory, Superseded, Visibility
from backstory.domain.second_model import joined
from backstory.domain.typed_words import AS_TOKENS, Wording
from backstory.domain.word_match import WordMatch
from backstory.domain.worth import LEAST_USEFULNESS, usefulness

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
