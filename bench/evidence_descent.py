"""Weights of evidence by gradient descent: the listwise softmax of each message that answers against those that do not.

Smooth, so that neither a rank's luck nor a step of a grid decides; nothing is drawn at random.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from backstory.domain.evidence import EvidenceWeights
from bench.evidence_table import SIGNS, SignTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROUNDS = 3
"""How often the best passage of each message, its surroundings and the rivals are chosen anew."""
STEPS = 120
RATE = 0.05
RIVALS = 50
"""Messages that do not answer, the best of each question, against which those that do are held."""
SHARPNESS = 3.0
"""What a score is multiplied with before the softmax, so that weights stay about 1."""
PULL = 0.002
"""Of each weight towards 0."""
NAMES = (*SIGNS, "neighbour", "session")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question's candidates, the messages that answer, and what the question counts."""

    signs: SignTable
    gold: Collection[str]
    weight: float


def descend(cases: Sequence[Case], start: EvidenceWeights, *, fixed: Collection[str] = ()) -> EvidenceWeights:
    """The weights, none below 0, after some rounds of Adam; those named in ``fixed`` stay at 0."""
    weights = start
    for _ in range(ROUNDS):
        kept = [rows for case in cases if (rows := _rows(case, weights)) is not None]
        theta = _adam(_Rows.joined(kept), SHARPNESS * _vector(weights), [NAMES.index(name) for name in fixed])
        weights = replace(weights, **{n: float(x) / SHARPNESS for n, x in zip(NAMES, theta, strict=True)})
    return replace(weights, **{name: round(getattr(weights, name), 2) for name in NAMES})


@dataclass(frozen=True, slots=True)
class _Rows:
    """Messages as rows of signs, question after question; ``starts`` are the first rows, ``weight`` a question's."""

    signs: NDArray[np.float64]
    answers: NDArray[np.bool_]
    starts: NDArray[np.intp]
    question: NDArray[np.intp]
    weight: NDArray[np.float64]

    @classmethod
    def joined(cls, parts: Sequence[tuple[NDArray[np.float64], NDArray[np.bool_], float]]) -> _Rows:
        sizes = np.array([len(signs) for signs, _, _ in parts])
        return cls(
            signs=np.concatenate([signs for signs, _, _ in parts]),
            answers=np.concatenate([answers for _, answers, _ in parts]),
            starts=np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp),
            question=np.repeat(np.arange(len(parts)), sizes),
            weight=np.array([weight for _, _, weight in parts]),
        )

    def gradient(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = self.signs @ theta
        raised = np.exp(scores - np.maximum.reduceat(scores, self.starts)[self.question])
        rivals = np.add.reduceat(np.where(self.answers, 0.0, raised), self.starts)
        whole = raised + rivals[self.question]
        weight = self.weight[self.question]
        pulled = np.add.reduceat(np.where(self.answers, weight / whole, 0.0), self.starts)
        push = np.where(self.answers, -weight * (1.0 - raised / whole), raised * pulled[self.question])
        gradient: NDArray[np.float64] = self.signs.T @ push / self.weight.sum() + PULL * theta / len(theta)
        return gradient


def _rows(case: Case, weights: EvidenceWeights) -> tuple[NDArray[np.float64], NDArray[np.bool_], float] | None:
    signs, scores = case.signs.message_signs(weights)
    answers = np.array([message in case.gold for message in case.signs.messages], dtype=np.bool_)
    if not answers.any():
        return None
    order = np.argsort(-scores, kind="stable")
    chosen = np.concatenate([order[answers[order]], order[~answers[order]][:RIVALS]])
    return signs[chosen], answers[chosen], case.weight / len(case.gold)


def _vector(weights: EvidenceWeights) -> NDArray[np.float64]:
    return np.array([getattr(weights, name) for name in NAMES])


def _adam(rows: _Rows, theta: NDArray[np.float64], fixed: Sequence[int]) -> NDArray[np.float64]:
    """Kingma and Ba, 2015, with decay rates 0.9 and 0.99; a weight that would fall below 0 stays there."""
    mean, square = np.zeros_like(theta), np.zeros_like(theta)
    for step in range(1, STEPS + 1):
        gradient = rows.gradient(theta)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        theta = theta - RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-9)
        theta = np.maximum(theta, 0.0)
        theta[list(fixed)] = 0.0
    return theta
