"""The weights of evidence, fitted on half of the conversations of every set and judged on the other half."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import anyio

from backstory.domain.evidence import BY_WORDS, WITH_MEANING, EvidenceWeights, score_messages
from backstory.domain.scope import Viewer
from backstory.ports.evidence import Sight
from backstory.services.evidence import Signs
from bench.evidence import HELD_OUT, Answered, archived, recall_figures
from bench.evidence_sets import ADVERSARIAL, Asked, Conversation, read_beam, read_locomo, read_transcripts
from bench.report import Report, table

ROUNDS = 2
SHARES = {"locomo": 1.0, "beam": 1.0, "sessions": 0.5}
"""What each set counts in the fit; the sessions have 48 questions on either side, the others hundreds."""
STEPS = {
    "words_around": (0.0, 0.2, 0.4, 0.7, 1.0),
    "coverage": (0.0, 0.2, 0.4, 0.7, 1.0),
    "meaning": (0.5, 0.8, 1.0, 1.3, 1.6),
    "meaning_around": (0.0, 0.3, 0.6, 1.0, 1.3),
    "speaker": (0.0, 0.1, 0.2, 0.3, 0.4),
    "date": (0.0, 0.2, 0.4, 0.6),
    "user": (0.0, 0.1, 0.2, 0.3, 0.5, 0.7),
    "neighbour": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
    "session": (0.0, 0.2, 0.4, 0.6, 1.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A question with what is known of its candidates."""

    question: Asked
    conversation: Conversation
    signs: Signs
    held_out: bool


def run(options: argparse.Namespace) -> Report:
    """Coordinate search for recall@10 and MRR, once with meaning and once by words alone."""
    measured: dict[str, object] = {}
    parts = []
    for mode, start in {"with meaning": WITH_MEANING, "by words": BY_WORDS}.items():
        rows = anyio.run(partial(_rows, options, lexical_only=mode == "by words"))
        fitted = _fit(rows, start)
        judged = {
            f"{name}, {label}": recall_figures(_answers([row for row in rows[name] if row.held_out], weights))
            for name in rows
            for label, weights in (("as shipped", start), ("fitted", fitted))
        }
        measured[mode] = {"weights": asdict(fitted), "held_out": judged}
        lines = [[name, *(f"{100 * value:.1f}" for value in list(row.values())[:4])] for name, row in judged.items()]
        weights = ", ".join(f"{name} {value}" for name, value in asdict(fitted).items())
        parts.append(f"{mode}: {weights}\n\n{table(['held out', 'R@1', 'R@5', 'R@10', 'MRR'], lines)}")
    return Report(
        bench="fit-evidence", store=options.store, data=options.data.name, figures=measured, text="\n\n".join(parts)
    )


async def _rows(options: argparse.Namespace, *, lexical_only: bool) -> dict[str, list[Row]]:
    sets = {
        "locomo": read_locomo(options.data),
        "beam": read_beam(options.data),
        "sessions": read_transcripts(options.data),
    }
    rows: dict[str, list[Row]] = {}
    for name, conversations in sets.items():
        async with archived(conversations) as archive:
            rows[name] = []
            for place, conversation in enumerate(conversations):
                archive.stand_after(conversation)
                sight = Sight(viewer=Viewer(project=conversation.project), session=conversation.session)
                for question in conversation.questions:
                    if question.kind != ADVERSARIAL:
                        signs = await archive.recall.signs(question.text, sight=sight, lexical_only=lexical_only)
                        held_out = place % 2 == HELD_OUT
                        rows[name].append(
                            Row(question=question, conversation=conversation, signs=signs, held_out=held_out)
                        )
    return rows


def _fit(rows: dict[str, list[Row]], start: EvidenceWeights) -> EvidenceWeights:
    training = {name: [row for row in rows[name] if not row.held_out] for name in rows}
    best, weights = _gain(training, start), start
    for _ in range(ROUNDS):
        for name, steps in STEPS.items():
            if name.startswith("meaning") and start.meaning == 0.0:
                continue
            for step in steps:
                if step == getattr(weights, name):
                    continue
                tried = replace(weights, **{name: step})
                gain = _gain(training, tried)
                if gain > best + 1e-6:
                    best, weights = gain, tried
            print(f"{name} {getattr(weights, name)}: {best:.4f}", file=sys.stderr)
    return weights


def _gain(rows: dict[str, list[Row]], weights: EvidenceWeights) -> float:
    measured = {name: recall_figures(_answers(some, weights)) for name, some in rows.items()}
    return sum(SHARES[name] * (figures["r_at_10"] + figures["mrr"]) for name, figures in measured.items())


def _answers(rows: Sequence[Row], weights: EvidenceWeights) -> list[Answered]:
    return [
        Answered(
            question=row.question,
            ranking=[score.best.message for score in score_messages(row.signs.signs, weights)],
            session_of={},
            held_out=row.held_out,
        )
        for row in rows
    ]
