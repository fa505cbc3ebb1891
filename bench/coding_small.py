"""The same measurement on the small set: one store for every project, prompts asked across all of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from bench.comparison import WITHOUT_MULTI, run_on
from bench.labelled import read_coding_small
from bench.measures import Answer, Figures, ranking
from bench.report import Report

SEVERAL = "multi"
"""The kind of prompts with several answers, which published figures on this set leave out."""


def run(options: argparse.Namespace) -> Report:
    """Measure on ``coding_memories.json`` of ``--data``, or of ``coding-memories`` in it. Raises Unavailable."""
    inside = options.data / "coding-memories"
    labelled = read_coding_small(inside if inside.is_dir() else options.data)
    return run_on(labelled, "coding-small", options, extra=_single_answers)


def _single_answers(answers: Sequence[Answer]) -> Figures:
    """The ranking of prompts with one answer, comparable with figures published elsewhere."""
    single = [row for row in answers if row.question.grades and row.question.kind != SEVERAL]
    return {WITHOUT_MULTI: ranking(single)}
