"""LoCoMo: which turns of ten long chats hold the answer to a question. One project a chat; the unit is the turn."""

from __future__ import annotations

import argparse

import anyio

from bench.evidence import as_table, ask_every_system, figures
from bench.evidence_sets import ADVERSARIAL, read_locomo
from bench.report import Report


def run(options: argparse.Namespace) -> Report:
    """Measure Backstory with meaning and by words alone, and the baselines. Adversarial questions stand apart."""
    systems = anyio.run(ask_every_system, read_locomo(options.data), options.store)
    plain = {name: [a for a in answers if a.question.kind != ADVERSARIAL] for name, answers in systems.items()}
    measured = {
        name: figures(plain[name], by_session=True)
        | {ADVERSARIAL: figures([a for a in answers if a.question.kind == ADVERSARIAL])}
        for name, answers in systems.items()
    }
    text = f"turns\n{as_table(plain)}\n\nsessions\n{as_table(plain, by_session=True)}"
    others = {name: measured[name] for name in measured if name != "hybrid"}
    return Report(
        bench="locomo", store=options.store, data="locomo10", figures=measured["hybrid"], others=others, text=text
    )
