"""How well recall serves the prompts of coding sessions, and how well it keeps silent: ranking, gate, scope, noise;
and what becomes of the traps among them."""

from __future__ import annotations

import argparse
from dataclasses import replace

import anyio

from backstory.adapters.embedders.minilm import MiniLmEmbedder
from bench.comparison import run_on
from bench.kept_passages import KeptPassages
from bench.labelled import LabelledSet, read_coding
from bench.measures import Figures
from bench.report import Report
from bench.traps import trap, traps_as_text


def run(options: argparse.Namespace) -> Report:
    """Measure Backstory, grep, FTS5 and the cosine on ``memories.json`` and ``prompts.json`` of ``--data``.

    A folder that holds ``coding-prompts`` will do as well. Raises Unavailable when something is missing.
    """
    inside = options.data / "coding-prompts"
    labelled = read_coding(inside if inside.is_dir() else options.data)
    report = run_on(labelled, "coding", options)
    traps = anyio.run(_trap, labelled, options.store)
    return replace(
        report,
        text=f"{report.text}\n\n{traps_as_text(traps)}",
        conditions={**report.conditions, "traps": traps},
    )


async def _trap(labelled: LabelledSet, store: str) -> dict[str, Figures]:
    embedder = KeptPassages(MiniLmEmbedder(None))
    try:
        return await trap(labelled, embedder, store=store)
    finally:
        await embedder.close()
