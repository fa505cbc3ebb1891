"""Fit the weights of the ranking on the labelled prompts, and judge them on projects they have not seen.

Listwise: the weights make the memories that answer a prompt the most likely ones among all that came back (the
top-one loss of ListNet: Cao et al., ICML 2007). Plain gradient descent with Adam; no randomness.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import anyio
import numpy as np
from numpy.typing import NDArray

from backstory.adapters.embedders.minilm import MiniLmEmbedder
from backstory.domain.ranking import Score, usual_agreement
from bench.asking import Asked, ask
from bench.labelled import ANSWERS, LabelledSet, read_sets
from bench.report import Report, table

Floats = NDArray[np.float64]

EVIDENCE = ("similarity", "agreement", "coverage", "names", "length", "own_project")
STEPS = 400
RATE = 0.05
RIDGE = 1e-3
SIMILARITY_WEIGHT = 10.0  # only ratios order memories; the shipped weights count in this unit


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt that has an answer: a row of evidence for each memory that came back, and which of them answer.

    Memories that are merely useful take no part in the fit.
    """

    evidence: Floats
    answers: NDArray[np.bool_]
    useful: NDArray[np.bool_]
    wanted: int
    fold: str


def run(options: argparse.Namespace) -> Report:
    """Fit on the prompts of coding sessions; the folds are their projects."""
    labelled = next(item for item in read_sets(options.data) if item.name == "coding-prompts")
    asked = anyio.run(partial(ask, labelled, embedder=MiniLmEmbedder(None), store=options.store, results=100))
    prompts = [_prompt(row, labelled) for row in asked if row.question.answers and not row.question.history]
    weights = fit(prompts)
    held_out = judge_across(prompts)
    shown = weights * SIMILARITY_WEIGHT / weights[0]
    rows = [(name, round(float(weight), 2)) for name, weight in zip(EVIDENCE, shown, strict=True)]
    figures = {"weights": dict(rows), "held_out": held_out, "prompts": len(prompts)}
    text = table(("evidence", "weight"), rows) + f"\n\nacross projects: {held_out}, {len(prompts)} prompts"
    return Report(bench="fit-ranking", store=options.store, data=options.data.name, figures=figures, text=text)


def fit(prompts: Sequence[Prompt]) -> Floats:
    """The weights, in the units of the evidence."""
    everything = np.concatenate([prompt.evidence for prompt in prompts])
    width = everything.std(axis=0) + 1e-9
    weights, first, second = (np.zeros(everything.shape[1]) for _ in range(3))
    for step in range(1, STEPS + 1):
        slope = sum((_slope(prompt, weights, width) for prompt in prompts), RIDGE * len(prompts) * weights)
        slope = slope / len(prompts)
        first = 0.9 * first + 0.1 * slope
        second = 0.99 * second + 0.01 * slope * slope
        weights = weights - RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    scaled: Floats = weights / width
    return scaled


def judge_across(prompts: Sequence[Prompt]) -> dict[str, float]:
    """R@1 and R@5 in per cent, each prompt ranked by weights that have not seen its project."""
    first, five = [], []
    for fold in sorted({prompt.fold for prompt in prompts}):
        weights = fit([prompt for prompt in prompts if prompt.fold != fold])
        for prompt in prompts:
            if prompt.fold == fold:
                order = np.argsort(-(prompt.evidence @ weights), kind="stable")
                first.append(bool(len(order)) and bool(prompt.answers[order[0]]))
                five.append(float(prompt.answers[order[:5]].sum()) / prompt.wanted)
    return {"r_at_1": round(100 * float(np.mean(first)), 1), "r_at_5": round(100 * float(np.mean(five)), 1)}


def _slope(prompt: Prompt, weights: Floats, width: Floats) -> Floats:
    counted = ~prompt.useful
    if not prompt.answers.any():
        return np.zeros_like(weights)
    rows = prompt.evidence[counted] / width
    likely = np.exp(rows @ weights - (rows @ weights).max())
    target = prompt.answers[counted] / prompt.answers.sum()
    slope: Floats = rows.T @ (likely / likely.sum() - target)
    return slope


def _prompt(row: Asked, labelled: LabelledSet) -> Prompt:
    projects = {stored.id: stored.project for stored in labelled.memories}
    grades = np.array([row.question.grades.get(name, 0) for name in row.found])
    own = [float(row.question.project is not None and projects[name] == row.question.project) for name in row.found]
    evidence = np.array([_evidence(score, mine) for score, mine in zip(row.scores, own, strict=True)])
    return Prompt(
        evidence=evidence,
        answers=grades == ANSWERS,
        useful=grades == 1,
        wanted=len(row.question.answers),
        fold=str(row.question.project),
    )


def _evidence(score: Score, own_project: float) -> tuple[float, ...]:
    similarity = score.similarity or 0.0
    agreed = usual_agreement(similarity) if score.agreement is None else score.agreement  # as in the ranking
    covered = score.coverage**3 * (0.5 + 0.5 * score.lexical)
    return (similarity, agreed, covered, score.named, -score.length, own_project)
