"""How well answers rank and how well their certainty tells prompts apart: pure arithmetic on what a system returned.

Shares lie in [0, 1]. A system that returned nothing for a prompt is sure of it to minus infinity.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.labelled import EVERY_PROJECT, LabelledSet, Question

SHOWN = 5
"""How many results a reader is taken to look at, where outdated ones are counted."""
KEPT = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
Figures = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a system returned for a prompt: the set's ids of memories, best first, and how sure it is that any of them
    answers. Certainties are comparable between prompts, and between nothing else."""

    question: Question
    found: tuple[str, ...]
    certainty: float


def rank(found: Sequence[str], answers: frozenset[str]) -> dict[str, float]:
    """R@1 (the first result answers), R@5 and R@10 (share of the answers among so many), MRR (of the first answer)."""
    ranks = sorted(found.index(answer) + 1 for answer in answers if answer in found)
    return {
        "r_at_1": float(ranks[:1] == [1]),
        "r_at_5": sum(place <= 5 for place in ranks) / len(answers),
        "r_at_10": sum(place <= 10 for place in ranks) / len(answers),
        "mrr": 1 / ranks[0] if ranks else 0.0,
    }


def area_under_curve(higher: Sequence[float], lower: Sequence[float]) -> float:
    """The chance that one of ``higher`` is above one of ``lower``; equal ones count half. NaN without either."""
    ordered = sorted(lower)
    wins = sum(bisect.bisect_left(ordered, one) + bisect.bisect_right(ordered, one) for one in higher)
    return wins / (2 * len(higher) * len(lower)) if higher and lower else math.nan


def limit_keeping(share: float, certainties: Sequence[float]) -> float:
    """The highest limit that at least ``share`` of the certainties reach."""
    return sorted(certainties, reverse=True)[math.ceil(share * len(certainties)) - 1]


def reaching(limit: float, certainties: Sequence[float]) -> float:
    """The share of the certainties at or above a limit; 0 of none."""
    return sum(certainty >= limit for certainty in certainties) / len(certainties) if certainties else 0.0


def measure(answers: Sequence[Answer], labelled: LabelledSet) -> Figures:
    """All figures of one system.

    Prompts about what no longer holds (``history``) are reported by kind only: the relation to what replaced it is
    theirs to ask about, and they take no part in "all" and in the gate.
    """
    yes = [answer for answer in answers if answer.question.grades and not answer.question.history]
    no = [answer for answer in answers if not answer.question.grades]
    return {
        **ranking(yes),
        **gate([answer.certainty for answer in yes], [answer.certainty for answer in no]),
        "fp_by_kept": fp_by_kept([answer.certainty for answer in yes], [answer.certainty for answer in no]),
        "outdated_shown": outdated_shown([*yes, *no], labelled),
        "leaks": leaks(answers, labelled),
        "by_kind": by_kind(answers, yes, no),
    }


def ranking(answers: Sequence[Answer]) -> Figures:
    """The means of ``rank``, and of how many prompts."""
    rows = [rank(answer.found, answer.question.answers) for answer in answers]
    means = {key: round(sum(row[key] for row in rows) / len(rows), 4) for key in (rows[0] if rows else ())}
    return {"n": len(rows), **means}


def gate(yes: Sequence[float], no: Sequence[float]) -> Figures:
    """AUC, and the share of prompts without an answer that come through where 90 % of those with one do."""
    if not yes or not no:
        return {}
    passing = reaching(limit_keeping(0.9, yes), no)
    return {"auc": round(area_under_curve(yes, no), 4), "fp_at_90": round(passing, 4)}


def fp_by_kept(yes: Sequence[float], no: Sequence[float]) -> dict[str, float]:
    """The whole curve: for each share of answerable prompts kept (in per cent), the share of the others passing."""
    return {f"{share:.0%}"[:-1]: round(reaching(limit_keeping(share, yes), no), 4) for share in KEPT} if yes else {}


def by_kind(answers: Sequence[Answer], yes: Sequence[Answer], no: Sequence[Answer]) -> dict[str, Figures]:
    """Ranking and gate of each kind, with its sub-kinds as ``kind/sub``; each against all prompts without an answer.

    A kind without answers has the share of its prompts that pass where 90 % of all answerable ones do.
    """
    unanswerable = [answer.certainty for answer in no]
    limit = limit_keeping(0.9, [answer.certainty for answer in yes]) if yes else math.inf
    figures: dict[str, Figures] = {}
    for kind, rows in _kinds(answers).items():
        certainties = [row.certainty for row in rows]
        if not rows[0].question.grades:
            figures[kind] = {"n": len(rows), "fp_at_90": round(reaching(limit, certainties), 4)}
        else:
            figures[kind] = {**ranking(rows), **({} if kind == "history" else gate(certainties, unanswerable))}
    return figures


def kinds_of(question: Question) -> Iterator[str]:
    """The kinds under which a prompt is counted, the wider one first."""
    if question.history:
        yield "history"
        return
    yield question.kind
    if question.sub:
        yield f"{question.kind}/{question.sub}"


def _kinds(answers: Sequence[Answer]) -> Mapping[str, list[Answer]]:
    kinds: dict[str, list[Answer]] = {}
    for answer in answers:
        for kind in kinds_of(answer.question):
            kinds.setdefault(kind, []).append(answer)
    return dict(sorted(kinds.items(), key=lambda item: (not item[1][0].question.grades, item[0])))


def outdated_shown(answers: Sequence[Answer], labelled: LabelledSet) -> int:
    """How many superseded memories stand among the first ``SHOWN`` results, over all prompts."""
    outdated = {memory.supersedes for memory in labelled.memories if memory.supersedes is not None}
    return sum(name in outdated for answer in answers for name in answer.found[:SHOWN])


def leaks(answers: Sequence[Answer], labelled: LabelledSet) -> int:
    """How many memories of another project were shown, over all prompts."""
    home = {memory.id: memory.project for memory in labelled.memories}
    return sum(
        answer.question.project != EVERY_PROJECT and home.get(name) not in (None, answer.question.project)
        for answer in answers
        for name in answer.found
    )
