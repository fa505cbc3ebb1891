"""A score taken apart: what each kind of evidence and each circumstance added, for people who ask why.

Scoring itself is ``ranking.py``'s; here its result is read backwards, so that the parts always make up the whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from backstory.domain.ids import ProjectId
from backstory.domain.memory import Conflicted, Memory, Superseded, Visibility
from backstory.domain.ranking import EVEN_EVIDENCE, EVIDENCE_STEP, RankingPolicy, Score, freshness
from backstory.domain.second_model import joined
from backstory.domain.typed_words import AS_TOKENS, Wording
from backstory.domain.worth import usefulness

_TOO_SMALL = 0.005  # a part that would be shown as 0.00


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one thing added to the evidence, or took (below 0), and a few words on it. ``EVEN_EVIDENCE`` in all is a
    score of 0.5."""

    name: str
    value: float
    detail: str = ""


def score_parts(
    memory: Memory,
    score: Score,
    *,
    project: ProjectId | None,
    now: datetime,
    policy: RankingPolicy,
    wording: Wording = AS_TOKENS,
) -> tuple[Part, ...]:
    """The parts of a score that a memory got for a query asked from ``project``, evidence first.

    Their sum is the evidence behind ``score.total``. Parts that are nothing are left out; there are none for a score of
    0, of a memory that was not compared with anything.
    """
    if score.total == 0.0:
        return ()
    parts = [
        *_of_words_and_meaning(score, policy, wording),
        *_of_circumstances(memory, score, project, now, policy),
    ]
    return tuple(part for part in parts if abs(part.value) >= _TOO_SMALL)


def evidence(score: Score) -> float:
    """The evidence behind a score; a score beyond all measure counts as one in a thousand million."""
    return _behind(score.total)


def _behind(total: float) -> float:
    likely = min(max(total, 1e-9), 1.0 - 1e-9)
    return EVEN_EVIDENCE + EVIDENCE_STEP * math.log(likely / (1.0 - likely))


def _of_words_and_meaning(score: Score, policy: RankingPolicy, wording: Wording) -> Iterable[Part]:
    matched = evidence(score) - score.ties
    held = f"{score.coverage:.0%} of what the query's words tell" + _listed(wording.of(score.matched))
    if score.similarity is None:
        yield Part(name="words", value=matched, detail=f"{held}; the meaning was not compared")
        return
    similarity = policy.similarity * max(joined(score.similarity, score.second), 0.0)
    coverage = policy.coverage * score.coverage**3 * (0.5 + 0.5 * score.lexical)
    names = policy.names * score.named
    rest = matched - similarity - coverage - names
    other = "" if score.second is None else f", {score.second:.2f} by the second model; the mean counts"
    yield Part(name="meaning", value=similarity, detail=f"similarity {score.similarity:.2f}{other}")
    if score.agreement is None:
        yield Part(name="agreement", value=rest, detail="taken as usual at this similarity; words were not compared")
    else:
        agreement = policy.agreement * score.agreement
        yield Part(name="agreement", value=agreement, detail=f"word by word {score.agreement:.2f}")
    yield Part(name="coverage", value=coverage, detail=held)
    yield Part(name="names", value=names, detail=f"names are {score.named:.0%} of the query's words and match whole")
    told = "a longer text has more words that are near by chance"
    yield Part(
        name="length", value=-policy.length * score.length, detail=told if score.length > 0.0 else "a short text"
    )


def _of_circumstances(
    memory: Memory, score: Score, project: ProjectId | None, now: datetime, policy: RankingPolicy
) -> Iterable[Part]:
    fresh = freshness(memory, now=now, policy=policy)
    sessions = memory.counters.sessions
    known = [Part(name="freshness", value=policy.freshness * fresh, detail=_confirmed(memory))]
    if project is not None and memory.project == project and memory.visibility is not Visibility.GLOBAL:
        known.append(Part(name="project", value=policy.own_project, detail="it is this project's own"))
    if sessions:
        used = policy.session * min(sessions, policy.sessions_at_most)
        known.append(
            Part(
                name="sessions",
                value=used,
                detail=f"it came up in {sessions} {'session' if sessions == 1 else 'sessions'}",
            )
        )
    counters = memory.counters
    if counters.helpful or counters.irrelevant:
        told = f"found useful {counters.helpful} times, irrelevant {counters.irrelevant} times"
        known.append(Part(name="feedback", value=policy.useful * usefulness(memory), detail=told))
    if isinstance(memory.status, Superseded):
        known.append(Part(name="replaced", value=-policy.superseded_penalty, detail="something newer took its place"))
    known += _against(memory, score, policy)
    yield from known
    yield Part(name="other circumstances", value=score.ties - sum(part.value for part in known))


def _against(memory: Memory, score: Score, policy: RankingPolicy) -> Iterable[Part]:
    """What is held against a memory; the rest of it, where a conflict alone does not account for it, is doubt."""
    taken = _behind(score.undoubted) - evidence(score) if score.undoubted else 0.0
    if isinstance(memory.status, Conflicted):
        yield Part(name="disputed", value=-policy.conflicted_penalty, detail="another memory says something else")
        taken -= policy.conflicted_penalty
    yield Part(name="doubted", value=-taken, detail="what it names in the repository is to be checked")


def _confirmed(memory: Memory) -> str:
    return "pinned" if memory.pinned else f"confirmed {memory.times.confirmed:%Y-%m-%d}"


def _listed(matched: Sequence[str]) -> str:
    return f" ({', '.join(matched[:6])})" if matched else ""
