"""``python -m bench NAME``. What each bench measures, and how: bench/README.md."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the bridge does, before anything loads numpy

from bench import (
    beam,
    coding,
    coding_small,
    crash,
    dream,
    evidence_fit,
    gate_fit,
    host,
    importing,
    latency,
    locomo,
    ranking_fit,
    session,
    sessions,
)
from bench.report import Report, Unavailable
from bench.stores import STORES

DATA = Path(__file__).resolve().parents[2] / "shared" / "eval-data"
BENCHES = {
    "beam": beam.run,
    "coding": coding.run,
    "coding-small": coding_small.run,
    "crash": crash.run,
    "dream": dream.run,
    "fit-evidence": evidence_fit.run,
    "fit-gate": gate_fit.run,
    "fit-ranking": ranking_fit.run,
    "locomo": locomo.run,
    "session": session.run,
    "sessions": sessions.run,
    "latency": latency.run,
    "host": host.run,
    "import": importing.run,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", choices=sorted(BENCHES))
    parser.add_argument(
        "--data", type=Path, default=DATA, metavar="DIR", help="labelled sets: coding, coding-small, fit-*"
    )
    parser.add_argument("--distractors", type=int, default=0, metavar="N", help="coding: turns of chats around them")
    parser.add_argument("--distractor-data", type=Path, default=DATA, metavar="DIR", help="holds locomo and beam-100k")
    parser.add_argument(
        "--save",
        type=Path,
        default=None,
        metavar="DIR",
        help="coding: what each system returned; session: what digests lack",
    )
    parser.add_argument(
        "--rows",
        type=int,
        default=None,
        metavar="N",
        help="memories in the store (latency: 10000), or in the file (import: 100000)",
    )
    parser.add_argument("--store", choices=sorted(STORES), default="sqlite", help="which backend is measured")
    parser.add_argument("--kills", type=int, default=None, metavar="N", help="crash: writers to kill (100)")
    parser.add_argument("--writers", type=int, default=None, metavar="N", help="crash: how many at a time (8)")
    parser.add_argument("--kill-server", action="store_true", help="crash: kill what stands behind the store as well")
    parser.add_argument("--seed", type=int, default=1, help="crash: another one, other moments")
    parser.add_argument(
        "--strategy", choices=session.STRATEGIES, default=None, help="session: which strategies (both); host: one (off)"
    )
    parser.add_argument(
        "--model", choices=session.MODELS, default="both", help="session: who writes the digests; dream: who proposes"
    )
    parser.add_argument(
        "--limit", type=int, default=None, metavar="N", help="session, dream: the first N chats of a set"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    options = parser.parse_args(arguments)
    sys.setswitchinterval(0.0005)  # as the bridge does
    try:
        report: Report = BENCHES[options.name](options)
    except Unavailable as error:
        print(f"bench {options.name}: {error}", file=sys.stderr)
        return 2
    print(report.as_json() if options.json else report.as_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
