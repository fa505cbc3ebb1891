"""``python -m bench.kills``: the crash bench over the SQLite store, which fails if anything is lost."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from bench.crash import WRITERS, kill_writers


def main() -> None:
    """Parse the command line and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--writers", type=int, default=WRITERS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = kill_writers(
            "sqlite",
            Path(folder),
            kills=options.kills,
            writers=options.writers,
            choose=random.Random(options.seed),
        )
    print(
        f"kills={outcome.kills} acknowledged={outcome.acknowledged} lost={len(outcome.lost)} "
        f"unopenable={outcome.unopenable} without_vector={outcome.without_vector} findings={len(outcome.findings)}"
    )
    for finding in sorted(set(outcome.findings)):
        print(finding)
    if not outcome.is_clean:
        sys.exit(1)


if __name__ == "__main__":
    main()
