"""BEAM-100K: which messages of twenty long chats with an assistant hold the answer to a probing question."""

from __future__ import annotations

import argparse
from functools import partial

import anyio

from bench.evidence import Answered, archived, as_table, ask, baselines, figures
from bench.evidence_sets import read_beam
from bench.report import Report


def run(options: argparse.Namespace) -> Report:
    """Measure Backstory with meaning and by words alone, and the baselines."""
    systems = anyio.run(partial(_ask, options))
    others: dict[str, object] = {name: figures(answers) for name, answers in systems.items() if name != "hybrid"}
    return Report(
        bench="beam",
        store=options.store,
        data="beam-100k",
        figures=figures(systems["hybrid"]),
        others=others,
        text=as_table(systems),
    )


async def _ask(options: argparse.Namespace) -> dict[str, list[Answered]]:
    conversations = read_beam(options.data)
    async with archived(conversations) as archive:
        return {
            "hybrid": await ask(archive, conversations, lexical_only=False),
            "words": await ask(archive, conversations, lexical_only=True),
            **await baselines(archive, conversations),
        }
