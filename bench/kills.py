"""Kill writers at random moments and count what is lost: ``python -m bench.kills --kills 1000``.

Each round starts writers on one store, kills them all with SIGKILL after a random time, and opens the store. A write
counts as acknowledged once the writer has said so on its standard output, after the store's call returned.
"""

from __future__ import annotations

import argparse
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.history import Edit
from backstory.domain.ids import MemoryId
from backstory.entrypoints.drive import drive
from backstory.testing.fakes import sample_change, sample_memory, ulid

LONGEST_LIFE_S = 1.0


@dataclass(slots=True)
class Outcome:
    """What a run of rounds found; ``damage`` holds what SQLite's integrity check said where it was not ok."""

    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    unopenable: int = 0
    damage: list[str] = field(default_factory=list)


def write_for_ever(path: Path, series: int) -> None:
    """Add one memory after another, each told on standard output once it is stored."""
    store = open_sqlite(path).memories
    number = 0
    while True:
        number += 1
        memory = sample_memory(f"memory {number} of writer {series}", id=MemoryId(ulid(number, series=series)))
        drive(store.commit(sample_change(series * 1_000_000 + number, Edit(before=None, after=memory))))
        print(memory.id, flush=True)


def run(path: Path, *, kills: int, writers: int, choose: random.Random) -> Outcome:
    """Kill ``writers`` at a time until ``kills`` are reached; the store stays the same through all rounds."""
    outcome = Outcome()
    acknowledged: list[str] = []
    series = 0
    while outcome.kills < kills:
        processes = []
        for _ in range(min(writers, kills - outcome.kills)):
            series += 1
            processes.append(_start(path, series))
        told = _kill_all(processes, choose)
        outcome.kills += len(processes)
        acknowledged += told
        _check(path, told, outcome)
    outcome.acknowledged = len(acknowledged)
    _check(path, acknowledged, outcome)
    return outcome


def _start(path: Path, series: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.kills", "--write", str(path), "--series", str(series)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1])


def _kill_all(processes: list[subprocess.Popen[str]], choose: random.Random) -> list[str]:
    """Kill each at a random moment after the first has written; the ids they told."""
    told: list[str] = []
    readers = [threading.Thread(target=_read, args=(process, told)) for process in processes]
    for reader in readers:
        reader.start()
    for process in choose.sample(processes, len(processes)):
        timer = threading.Timer(0.4 + choose.random() * LONGEST_LIFE_S, process.send_signal, (signal.SIGKILL,))
        timer.start()
    for process, reader in zip(processes, readers, strict=True):
        process.wait()
        reader.join()
    return told


def _read(process: subprocess.Popen[str], told: list[str]) -> None:
    assert process.stdout is not None
    told += [line.strip() for line in process.stdout if line.endswith("\n")]


def _check(path: Path, told: list[str], outcome: Outcome) -> None:
    if not path.exists():
        return
    raw = sqlite3.connect(path)
    try:
        verdict = str(raw.execute("PRAGMA integrity_check").fetchone()[0])
        stored = {str(row[0]) for row in raw.execute("SELECT id FROM memories")}
    except sqlite3.DatabaseError as error:
        outcome.unopenable += 1
        outcome.damage.append(str(error))
        return
    finally:
        raw.close()
    outcome.lost += len(set(told) - stored)
    if verdict != "ok":
        outcome.damage.append(verdict)


def main() -> None:
    """Parse the command line and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--series", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write is not None:
        write_for_ever(arguments.write, arguments.series)
        return
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(
            Path(folder) / "memory.db",
            kills=arguments.kills,
            writers=arguments.writers,
            choose=random.Random(arguments.seed),
        )
    print(
        f"kills={outcome.kills} acknowledged={outcome.acknowledged} lost={outcome.lost} "
        f"unopenable={outcome.unopenable} damaged={len(outcome.damage)}"
    )
    if outcome.lost or outcome.unopenable or outcome.damage:
        sys.exit(1)


if __name__ == "__main__":
    main()
