"""Session questions: which messages of a coding agent's session hold the answer, among all of that session."""

from __future__ import annotations

import argparse

import anyio

from bench.evidence import as_table, ask_every_system, figures
from bench.evidence_sets import read_transcripts
from bench.report import Report


def run(options: argparse.Namespace) -> Report:
    """Measure Backstory with meaning and by words alone, and the baselines; each session is a kind."""
    systems = anyio.run(ask_every_system, read_transcripts(options.data), options.store)
    others: dict[str, object] = {name: figures(answers) for name, answers in systems.items() if name != "hybrid"}
    return Report(
        bench="sessions",
        store=options.store,
        data="coding-prompts/sessions",
        figures=figures(systems["hybrid"]),
        others=others,
        text=as_table(systems),
    )
