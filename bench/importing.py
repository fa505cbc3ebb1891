"""How fast a file of memories comes in, and whether the memory of the process stays flat while it does.

The whole way: lines read, checked, masked, looked up, written in batches. The second run brings in the same file, of
which nothing is new. Both wall time and processor time are told, since a machine has other things to do.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backstory.adapters.formats.backstory_lines import BackstoryLines
from backstory.bootstrap import App, open_app
from backstory.config import load
from backstory.domain.ids import make_ulid
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.bulk import rarely_collecting
from backstory.entrypoints.drive import drive
from backstory.ports.formats import FoundStore, ReadLimits
from backstory.services.imported_memories import ImportPolicy
from bench.report import Report, table
from bench.rows import rows
from bench.stores import STORES

ROWS = 100_000
_START = datetime(2026, 1, 1, tzinfo=UTC)
_PROGRESS_EVERY = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """One import: how long it took, how many records were new, and the size of the process at 10% and at the end."""

    wall_s: float
    cpu_s: float
    new: int
    rss_10_mb: float
    rss_end_mb: float


def run(options: argparse.Namespace) -> Report:
    count = options.rows or ROWS
    store = STORES[options.store]
    with tempfile.TemporaryDirectory(prefix="backstory-bench-") as name:
        folder = Path(name)
        file = folder / "memories.jsonl"
        _write_export(file, count)
        settings = store.settings(store.make(folder))
        app = open_app(load(env={**settings, "BACKSTORY_RECALL_MODE": "lexical"}, project_root=folder).settings)
        try:
            first = _import(app, folder, file, count)
            second = _import(app, folder, file, count)
        finally:
            drive(app.close())
    return _report(options.store, count, first, second)


def _write_export(file: Path, count: int) -> None:
    """An export in our own format, whose memories are spread over eight projects."""
    with file.open("w", encoding="utf-8") as sink:
        projects = [{"id": f"project-{n}", "name": f"p{n}", "root": f"/nowhere/p{n}"} for n in range(8)]
        sink.write(json.dumps({"format": "backstory-memories", "version": 2, "projects": projects}) + "\n")
        for number, row in enumerate(rows(count)):
            learned = _START + timedelta(seconds=number)
            sink.write(
                json.dumps(
                    {
                        "id": make_ulid(time_ms=int(learned.timestamp() * 1000), randomness=number.to_bytes(10, "big")),
                        "content": row.text,
                        "project": f"project-{row.project}",
                        "tags": [f"tag{number % 40}"],
                        "area": f"area{number % 12}/part",
                        "origin": "user",
                        "provenance": {
                            "session": f"ses_{number // 50}",
                            "messages": [f"msg_{number}"],
                            "tool": "memory_remember",
                        },
                        "times": {"learned": learned.isoformat()},
                    }
                )
                + "\n"
            )


def _import(app: App, folder: Path, file: Path, count: int) -> Imported:
    viewer = Viewer(project=drive(app.project(folder)).id, audience=Audience.PERSON)
    store = FoundStore(format="backstory", place=str(file))
    sizes: list[float] = []
    records = BackstoryLines().read(store, limits=ReadLimits())
    cpu, wall = time.process_time(), time.perf_counter()
    with rarely_collecting():
        report = drive(app.importing.bring_in(records, viewer, ImportPolicy(), advance=_progress(count, sizes)))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    assert not report.refused.count, report.refused.told[:3]
    tenth = sizes[max(0, len(sizes) // 10 - 1)] if sizes else _rss_mb()
    return Imported(wall_s=wall, cpu_s=cpu, new=report.imported, rss_10_mb=tenth, rss_end_mb=_rss_mb())


def _progress(count: int, sizes: list[float]) -> Callable[[int], None]:
    done = 0

    def advance(step: int) -> None:
        nonlocal done
        done += step
        if done % _PROGRESS_EVERY == 0:
            sizes.append(_rss_mb())
        if done % max(1, count // 10) == 0:
            print(f"{done:,} of {count:,} memories, {_rss_mb():.0f} MB", file=sys.stderr)

    return advance


def _rss_mb() -> float:
    """The size of the process now; where the system does not tell it, the largest so far."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _report(store: str, count: int, first: Imported, second: Imported) -> Report:
    named = {"first": first, "again": second}
    figures: dict[str, object] = {
        name: {
            "new": one.new,
            "wall_s": round(one.wall_s, 2),
            "cpu_s": round(one.cpu_s, 2),
            "per_second": round(count / one.wall_s),
            "per_cpu_second": round(count / one.cpu_s),
            "rss_10_percent_mb": round(one.rss_10_mb, 1),
            "rss_end_mb": round(one.rss_end_mb, 1),
        }
        for name, one in named.items()
    }
    header = ("import", "new", "wall s", "cpu s", "per s", "per cpu s", "MB at 10%", "MB at the end")
    lines = [
        (
            name, f"{one.new:,}", f"{one.wall_s:.1f}", f"{one.cpu_s:.1f}", f"{count / one.wall_s:,.0f}",
            f"{count / one.cpu_s:,.0f}", f"{one.rss_10_mb:.0f}", f"{one.rss_end_mb:.0f}",
        )
        for name, one in named.items()
    ]  # fmt: skip
    return Report(bench="import", store=store, data=f"{count:,} invented memories", figures=figures,
                  text=table(header, lines))  # fmt: skip
