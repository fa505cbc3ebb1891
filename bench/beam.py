"""BEAM-100K: which messages of twenty long chats with an assistant hold the answer to a probing question."""

from __future__ import annotations

import argparse

import anyio

from bench.evidence import as_table, ask_every_system, figures
from bench.evidence_sets import read_beam
from bench.report import Report


def run(options: argparse.Namespace) -> Report:
    """Measure Backstory with meaning and by words alone, and the baselines."""
    systems = anyio.run(ask_every_system, read_beam(options.data), options.store)
    others: dict[str, object] = {name: figures(answers) for name, answers in systems.items() if name != "hybrid"}
    return Report(
        bench="beam",
        store=options.store,
        data="beam-100k",
        figures=figures(systems["hybrid"]),
        others=others,
        text=as_table(systems),
    )
