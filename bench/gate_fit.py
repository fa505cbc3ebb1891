"""Fit the gate's logistic models, and judge each on projects it has not seen. Plain ridge regression, Newton steps.

The gate speaks if any memory is sure enough, so it is fitted on the surest of each prompt. Which one that is depends on
the weights; so they are fitted on the best ones first, and then again on those that the last weights are surest of.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import anyio
import numpy as np
from numpy.typing import NDArray

from backstory.adapters.embedders.minilm import MiniLmEmbedder, availability
from backstory.domain.ranking import Score
from backstory.domain.relevance import length_evidence
from bench.asking import Asked, ask
from bench.labelled import read_sets
from bench.report import Report, Unavailable, table

Floats = NDArray[np.float64]

WITH_MEANING = ("similarity", "answered", "covered", "brevity", "excess", "question")
BY_WORDS = ("coverage", "rarity")
RIDGE = 1.0
STEPS = 30
ROUNDS = 4
KEPT = (0.7, 0.8, 0.85, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Weights on the log-odds, fitted on everything; and figures across folds: for each share of positive prompts that
    is kept, the limit that keeps it and the share of negative ones that come through."""

    weights: dict[str, float]
    auc: float
    passing: dict[float, tuple[float, float]]
    prompts: int

    def as_figures(self) -> dict[str, object]:
        passing = {f"{kept:.0%}": {"limit": limit, "passing": share} for kept, (limit, share) in self.passing.items()}
        return {"weights": self.weights, "auc_across_folds": self.auc, "kept": passing, "prompts": self.prompts}

    def as_text(self, mode: str) -> str:
        weights = ", ".join(f"{name} {weight:+.2f}" for name, weight in self.weights.items())
        rows = [(f"{kept:.0%}", limit, f"{share:.0%}") for kept, (limit, share) in self.passing.items()]
        head = f"fit, {mode}: {weights}\nacross folds: AUC {self.auc:.3f}, {self.prompts} prompts\n"
        return head + table(("kept", "confidence", "wrongly kept"), rows)


def run(options: argparse.Namespace) -> Report:
    """Fit both gates on both sets: the folds are projects, and the smaller set is a fold of its own."""
    if (missing := availability()) is not None:
        raise Unavailable(missing)
    fitted = {}
    for mode, embedder in (("meaning", MiniLmEmbedder(None)), ("words", None)):
        asked = {
            labelled.name: anyio.run(partial(ask, labelled, embedder=embedder, store=options.store))
            for labelled in read_sets(options.data)
        }
        fitted[mode] = _fit_on(asked, by_words=mode == "words")
    return Report(
        bench="fit-gate",
        store=options.store,
        data=options.data.name,
        figures={mode: fit.as_figures() for mode, fit in fitted.items()},
        text="\n\n".join(fit.as_text(mode) for mode, fit in fitted.items()),
    )


def _fit_on(asked: Mapping[str, Sequence[Asked]], *, by_words: bool) -> Fitted:
    """With meaning, the label is whether the prompt has an answer at all. By words alone it is whether the best memory
    is of use, since a prompt whose answer shares no word with it has to stay silent."""
    found, labels, folds = [], [], []
    for name, rows in asked.items():
        for row in rows:
            if row.scores and not row.question.history:
                found.append(row.scores[:1] if by_words else row.scores)
                labels.append(row.found[0] in row.question.grades if by_words else bool(row.question.grades))
                folds.append(f"{name}/{row.question.project}")
    return fit_gates(found, labels, folds, by_words=by_words)


def fit_gates(
    found: Sequence[Sequence[Score]], labels: Sequence[bool], folds: Sequence[str], *, by_words: bool
) -> Fitted:
    """Fit on all prompts; judge each fold by a model fitted on the others. ``found`` are the memories that came back
    for each prompt, best first."""
    names = BY_WORDS if by_words else WITH_MEANING
    evidence = [np.array([_evidence(score, names) for score in scores]) for scores in found]
    truth = np.array(labels, dtype=np.float64)
    fold = np.array(folds)
    odds = np.zeros(len(truth))
    for held_out in sorted(set(folds)):
        weights = _fit_surest(evidence, truth, np.flatnonzero(fold != held_out))
        for place in np.flatnonzero(fold == held_out):
            odds[place] = _apply(weights, evidence[place]).max()
    weights = _fit_surest(evidence, truth, np.arange(len(truth)))
    return Fitted(
        weights=dict(zip(("start", *names), weights.round(2).tolist(), strict=True)),
        auc=_auc(odds, truth),
        passing={kept: _passing(odds, truth, kept) for kept in KEPT},
        prompts=len(truth),
    )


def _evidence(score: Score, names: Sequence[str]) -> list[float]:
    brevity, excess = length_evidence(score.asked)
    values = {
        "similarity": score.similarity or 0.0,
        "answered": score.answered or 0.0,
        "question": float(score.question),
        "coverage": score.coverage,
        "covered": score.coverage**3,
        "rarity": float(np.log1p(score.rarity)),
        "brevity": brevity,
        "excess": excess,
    }
    return [values[name] for name in names]


def _fit_surest(evidence: Sequence[Floats], truth: Floats, places: NDArray[np.intp]) -> Floats:
    """Start and weights from the prompts at these places, each by the memory that is surest to answer it."""
    surest = [rows[0] for rows in evidence]
    for _ in range(ROUNDS):
        weights = _fit(np.array([surest[place] for place in places]), truth[places])
        surest = [rows[int(np.argmax(_apply(weights, rows)))] for rows in evidence]
    return weights


def _fit(evidence: Floats, truth: Floats) -> Floats:
    """Start and weights of the least penalised loss; the penalty acts on standardised evidence."""
    middle, width = evidence.mean(axis=0), evidence.std(axis=0) + 1e-9
    columns = np.column_stack([np.ones(len(evidence)), (evidence - middle) / width])
    penalty = np.diag([0.0] + [RIDGE] * evidence.shape[1])
    weights = np.zeros(columns.shape[1])
    for _ in range(STEPS):
        sure = 1.0 / (1.0 + np.exp(-columns @ weights))
        curvature = (columns * (sure * (1.0 - sure))[:, None]).T @ columns + penalty
        weights = weights + np.linalg.solve(curvature, columns.T @ (truth - sure) - penalty @ weights)
    scaled = weights[1:] / width
    return np.concatenate([[weights[0] - float(scaled @ middle)], scaled])


def _apply(weights: Floats, evidence: Floats) -> Floats:
    odds: Floats = weights[0] + evidence @ weights[1:]
    return odds


def _auc(odds: Floats, truth: Floats) -> float:
    above = odds[truth == 1][:, None] - odds[truth == 0][None, :]
    return round(float(((above > 0) + 0.5 * (above == 0)).mean()), 3)


def _passing(odds: Floats, truth: Floats, kept: float) -> tuple[float, float]:
    positive = np.sort(odds[truth == 1])[::-1]
    limit = positive[int(np.ceil(kept * len(positive))) - 1]
    return round(float(1.0 / (1.0 + np.exp(-limit))), 3), round(float((odds[truth == 0] >= limit).mean()), 3)
