"""How long a write and a recall take, in a warm process and in a cold one, and what the store weighs."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import anyio

from backstory.adapters.embedders.minilm import availability
from backstory.bootstrap import App, open_app
from backstory.config import load
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, ProjectId
from backstory.domain.memory import Memory, Times, Visibility
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.services.query import Query
from backstory.services.remember import Draft
from bench.made_up_vectors import REAL_ROWS, embed_made_up
from bench.report import Report, Unavailable, percentile, spread, table
from bench.rows import PROJECTS, Row, queries, rows
from bench.stores import STORES, BenchStore

ROWS = 10_000
WARM_CALLS = 300
WARM_UP = 20
WRITES = 300
COLD_RUNS = 9
EMBEDDED = 20_000
"""With more rows than these, embedding each would take longer than everything else."""
COMMIT_ROWS = 500
COLD_QUERY = "which cluster does billing run on in staging"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bed:
    """A filled store in a folder of its own: ``work`` is a project folder, ``settings`` the environment of commands."""

    app: App
    folder: Path
    work: Path
    settings: Mapping[str, str]
    projects: Sequence[ProjectId]
    filled_s: float
    disk_bytes: int

    def viewer(self) -> Viewer:
        return Viewer(project=self.projects[0], audience=Audience.MODEL)


def run(options: argparse.Namespace) -> Report:
    """Build a store of the wanted size and measure it."""
    count = options.rows or ROWS
    if (missing := availability()) is not None:
        raise Unavailable(missing)
    folder = Path(tempfile.mkdtemp(prefix="backstory-bench-"))
    try:
        figures = anyio.run(partial(_measure, folder, count, STORES[options.store]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    vectors = "of the local model" if count <= EMBEDDED else "made up from those of the local model"
    data = f"{count} invented memories in {PROJECTS} projects, vectors {vectors}"
    return Report(bench="latency", store=options.store, data=data, figures=figures, text=_text(figures))


async def _measure(folder: Path, count: int, store: BenchStore) -> dict[str, object]:
    bed = await _build(folder, count, store)
    try:
        figures: dict[str, object] = {"filled_s": round(bed.filled_s, 1)}
        figures["recall_warm_ms"] = spread(await _warm_recalls(bed, lexical=False))
        figures["recall_warm_lexical_ms"] = spread(await _warm_recalls(bed, lexical=True))
        figures["block_warm_ms"] = spread(await _blocks(bed))
        figures["embed_query_ms"] = spread(await _embeddings(bed))
        figures["rss_mb"] = round(_resident_bytes() / 2**20, 1)
        figures["write_ms"] = spread(await _writes(bed))
    finally:
        await bed.app.close()
    figures["fsync_ms"] = spread(_syncs(folder))
    figures["disk_mb"] = round(bed.disk_bytes / 2**20, 1)
    figures["disk_mb_per_1000_rows"] = round(bed.disk_bytes / 2**20 / count * 1000, 2)
    figures["python_start_s"] = _cold([sys.executable, "-c", "pass"], bed)
    figures["cold_recall_s"] = _cold(_command("--lexical"), bed)
    figures["cold_recall_meaning_s"] = _cold(_command(), bed)
    return figures


async def _build(folder: Path, count: int, store: BenchStore) -> Bed:
    home, work = folder / "home", folder / "work"
    work.mkdir()
    home.mkdir()
    location = store.make(folder)
    store.make_room()
    settings = {"BACKSTORY_HOME": str(home), **store.settings(location)}
    app = open_app(load(env=settings, project_root=None).settings)
    assert app.embedder is not None
    here = (await app.project(work)).id
    projects = [here, *(ProjectId(app.ids.new_id()) for _ in range(PROJECTS - 1))]
    started = time.perf_counter()
    for batch in _batched(rows(count), COMMIT_ROWS):
        await app.backend.memories.commit(_change(app, batch, projects))
    _tell(f"stored {count} memories in {time.perf_counter() - started:.1f} s; embedding them")
    if count <= EMBEDDED:
        report = await app.maintenance.embed_missing(progress=_progress())
        if report.stopped_because:
            raise Unavailable(report.stopped_because)
    else:
        real = [row.text for row in rows(REAL_ROWS)]
        async with store.importing(app.backend):
            await embed_made_up(app.backend, app.embedder, real, progress=_progress())
            _tell(f"vectors stored after {time.perf_counter() - started:.1f} s")
    store.settle(location)
    filled_s = time.perf_counter() - started
    _tell(f"filled in {filled_s:.1f} s")
    return Bed(
        app=app,
        folder=folder,
        work=work,
        settings=settings,
        projects=projects,
        filled_s=filled_s,
        disk_bytes=store.disk_bytes(location, folder),
    )


def _progress() -> Callable[[int], None]:
    done = 0

    def progress(embedded: int) -> None:
        nonlocal done
        if (done + embedded) // 20_000 > done // 20_000:
            _tell(f"embedded {done + embedded}")
        done += embedded

    return progress


def _change(app: App, batch: Sequence[Row], projects: Sequence[ProjectId]) -> Change:
    now = app.clock.now()
    edits = tuple(
        Edit(
            before=None,
            after=Memory(
                id=MemoryId(app.ids.new_id()),
                content=row.text,
                visibility=Visibility.PROJECT,
                project=projects[row.project],
                times=Times(learned=now, updated=now, confirmed=now),
            ),
        )
        for row in batch
    )
    return Change(id=ChangeId(app.ids.new_id()), at=now, author=Author.USER, action=Action.IMPORT, edits=edits)


async def _warm_recalls(bed: Bed, *, lexical: bool) -> list[float]:
    async def recall(text: str) -> None:
        await bed.app.recall.recall(Query(text=text, viewer=bed.viewer(), lexical_only=lexical))

    return await _timed(recall)


async def _blocks(bed: Bed) -> list[float]:
    async def block(text: str) -> None:
        await bed.app.blocks.for_prompt(text, bed.viewer())

    return await _timed(block)


async def _embeddings(bed: Bed) -> list[float]:
    async def embed(text: str) -> None:
        assert bed.app.embedder is not None
        await bed.app.embedder.embed([text])

    return await _timed(embed)


async def _writes(bed: Bed) -> list[float]:
    async def write(text: str) -> None:
        draft = Draft(content=f"Remembered at the bench: {text}", origin=Origin.USER)
        await bed.app.remember.remember(draft, viewer=bed.viewer(), author=Author.USER)

    return await _timed(write, calls=WRITES)


async def _timed(call: Callable[[str], Awaitable[None]], *, calls: int = WARM_CALLS) -> list[float]:
    """Milliseconds of each call, every one with a text of its own, after some that do not count."""
    elapsed = []
    for text in queries(WARM_UP + calls):
        started = time.perf_counter()
        await call(text)
        elapsed.append(1000 * (time.perf_counter() - started))
    return elapsed[WARM_UP:]


def _syncs(folder: Path) -> list[float]:
    """What the disk itself takes for one small synced write: the floor of any durable write."""
    elapsed = []
    descriptor = os.open(folder / "sync", os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        for _ in range(WRITES):
            started = time.perf_counter()
            os.write(descriptor, bytes(4096))
            os.fsync(descriptor)
            elapsed.append(1000 * (time.perf_counter() - started))
    finally:
        os.close(descriptor)
    return elapsed


def _command(*options: str) -> list[str]:
    return [sys.executable, "-m", "backstory", "recall", COLD_QUERY, *options]


def _cold(command: Sequence[str], bed: Bed) -> float:
    """Median seconds of the whole process, after one run that fills the disk cache."""
    environ = {**os.environ, **bed.settings}
    elapsed = []
    for _ in range(COLD_RUNS + 1):
        started = time.perf_counter()
        done = subprocess.run(command, cwd=bed.work, env=environ, capture_output=True, text=True, check=False)
        elapsed.append(time.perf_counter() - started)
        if done.returncode != 0:
            raise Unavailable(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return round(percentile(elapsed[1:], 0.5), 3)


def _resident_bytes() -> int:
    """The memory this process holds now; the most it ever held, where the system tells only that."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _batched(items: Iterable[Row], size: int) -> Iterator[list[Row]]:
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


_MEANINGS = {
    "filled_s": "filling the store (s)",
    "recall_warm_ms": "recall, warm, hybrid (ms)",
    "recall_warm_lexical_ms": "recall, warm, by words (ms)",
    "block_warm_ms": "context block, warm (ms)",
    "embed_query_ms": "of which: the query's vector (ms)",
    "write_ms": "durable write (ms)",
    "fsync_ms": "of which: one fsync of this disk (ms)",
    "python_start_s": "an empty Python process (s)",
    "cold_recall_s": "recall --lexical, whole process (s)",
    "cold_recall_meaning_s": "recall, whole process (s)",
    "rss_mb": "memory of the process (MB)",
    "disk_mb": "disk (MB)",
    "disk_mb_per_1000_rows": "disk for 1,000 memories (MB)",
}


def _text(figures: dict[str, object]) -> str:
    lines: list[tuple[object, ...]] = []
    for key, meaning in _MEANINGS.items():
        value = figures[key]
        if isinstance(value, dict):
            lines.append((meaning, value["p50"], value["p95"], value["n"]))
        else:
            lines.append((meaning, value, "", COLD_RUNS if key.startswith(("cold_", "python_")) else ""))
    return table(("latency", "p50", "p95", "n"), lines)
