"""How well recall serves the prompts of coding sessions, and how well it keeps silent: ranking, gate, scope, noise."""

from __future__ import annotations

import argparse

from bench.comparison import run_on
from bench.labelled import read_coding
from bench.report import Report


def run(options: argparse.Namespace) -> Report:
    """Measure Backstory, grep, FTS5 and the cosine on ``memories.json`` and ``prompts.json`` of ``--data``.

    A folder that holds ``coding-prompts`` will do as well. Raises Unavailable when something is missing.
    """
    inside = options.data / "coding-prompts"
    return run_on(read_coding(inside if inside.is_dir() else options.data), "coding", options)
