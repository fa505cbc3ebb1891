"""Kill writers at random moments and count what is lost: ``python -m bench crash --kills 1000 --store sqlite``.

Each round starts writers on one store, kills them all with SIGKILL, opens the store as the bridge does, and waits until
it has caught up. A write counts as acknowledged once the writer has said so, after the store's call returned.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from backstory.bootstrap import App
from backstory.config import load
from backstory.domain.ids import ChangeId, MemoryId, MessageId
from backstory.domain.memory import Memory
from backstory.entrypoints.opencode.server import Bridge
from backstory.errors import StoreError
from backstory.ports.backend import Backend
from backstory.ports.models import EmbeddingModel
from backstory.ports.upkeep import Finding, Severity
from backstory.testing.fakes import HashEmbedder
from bench.crash_writer import told_in
from bench.report import Report, Unavailable, spread, table
from bench.stores import STORES, BenchStore

KILLS = 100
WRITERS = 8
LONGEST_LIFE_S = 0.6  # of a writer after its first word
LATEST_START_S = 0.6  # when the others are killed, before or while they open the store
KILLED_EARLY = 0.2  # the share of writers that are not waited for
CATCH_UP_WITHIN_S = 120.0
_ALL = 1_000_000

Told = Mapping[str, Any]
"""One acknowledged write, as ``crash_writer`` tells it."""


@dataclass(slots=True)
class Outcome:
    """What a run found. ``without_vector`` counts memories and passages that nobody embedded after a restart;
    ``check_findings`` are faults that a check of the invariants found, each once a round."""

    kills: int = 0
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    unopenable: int = 0
    without_vector: int = 0
    findings: list[str] = field(default_factory=list)
    round_ms: list[float] = field(default_factory=list)
    reopen_ms: list[float] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost, damaged or left behind."""
        return not (self.lost or self.unopenable or self.without_vector or self.findings)


class CrashReport(Report):
    """The outcome as one flat object."""

    __slots__ = ()

    def as_json(self) -> str:
        """The figures beside the bench's and the store's name."""
        return json.dumps({"bench": self.bench, "store": self.store, **self.figures}, ensure_ascii=False)


def run(options: argparse.Namespace) -> Report:
    """Kill writers of the chosen store. Raises Unavailable where there is no such store."""
    store = STORES[options.store]
    if options.kill_server and store.kill_server is None:
        raise Unavailable(f"the store {options.store} has no server to kill")
    with tempfile.TemporaryDirectory(prefix="backstory-crash-") as folder:
        outcome = kill_writers(
            options.store,
            Path(folder),
            kills=options.kills or KILLS,
            writers=options.writers or WRITERS,
            choose=random.Random(options.seed),
            kill_server=options.kill_server,
        )
    return _report(options.store, outcome)


def kill_writers(
    name: str, folder: Path, *, kills: int, writers: int, choose: random.Random, kill_server: bool = False
) -> Outcome:
    """Kill ``writers`` at a time until ``kills`` are reached; the store stays the same through all rounds.

    With ``kill_server``, what stands behind the store is killed in each round too, in the midst of the writes.
    """
    store = STORES[name]
    location = store.make(folder)
    outcome, everything, series = Outcome(), list[Told](), 0
    while outcome.kills < kills:
        began = time.perf_counter()
        count = min(writers, kills - outcome.kills)
        processes = [_start(name, location, series + number) for number in range(1, count + 1)]
        series += count
        told = _kill_all(processes, choose, store if kill_server else None, outcome)
        outcome.kills += count
        everything += told
        anyio.run(_after_the_crash, store, location, folder, told, outcome)
        outcome.round_ms.append(1000 * (time.perf_counter() - began))
    outcome.acknowledged = len(everything)
    anyio.run(_at_the_end, store, location, everything, outcome)
    return outcome


def _start(name: str, location: str, series: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.crash_writer", name, location, str(series)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
    )


def _kill_all(
    processes: Sequence[subprocess.Popen[str]], choose: random.Random, server: BenchStore | None, outcome: Outcome
) -> list[Told]:
    """Kill each at a random moment, most of them while they write; what they had told by then."""
    deaths = [_Death(process, early=choose.random() < KILLED_EARLY, after_s=choose.random()) for process in processes]
    for death in deaths:
        death.start()
    try:
        if server is not None:
            _bring_down(server, deaths, after_s=choose.random() * LONGEST_LIFE_S)
        for death in deaths:
            death.join()
    finally:
        for process in processes:
            process.kill()  # those that are left when this is interrupted
    if server is not None and server.start_server is not None:
        server.start_server()
    else:
        outcome.findings += [f"a writer ended by itself: {death.complaint}" for death in deaths if death.complaint]
    return [told for death in deaths for told in death.told]


def _bring_down(server: BenchStore, deaths: Sequence[_Death], *, after_s: float) -> None:
    """Kill the server some time after the first writer was told something, if one ever is."""
    assert server.kill_server is not None
    while not any(death.has_begun for death in deaths) and any(death.is_alive() for death in deaths):
        time.sleep(0.01)
    time.sleep(after_s)
    server.kill_server()


class _Death(threading.Thread):
    """Listens to a writer, and kills it."""

    def __init__(self, process: subprocess.Popen[str], *, early: bool, after_s: float) -> None:
        super().__init__()
        self.told: list[Told] = []
        self.complaint = ""
        self.has_begun = False
        self._process = process
        self._early = early
        self._after_s = after_s

    def run(self) -> None:
        assert self._process.stdout is not None
        if self._early:
            self._kill_after(self._after_s * LATEST_START_S)
        lines = iter(self._process.stdout.readline, "")
        first = next(lines, "")
        self.has_begun = bool(first)
        if not self._early:
            self._kill_after(self._after_s * LONGEST_LIFE_S)
        self.told = list(told_in(line for line in (first, *lines)))
        _, complaint = self._process.communicate()
        if self._process.returncode != -signal.SIGKILL:
            self.complaint = complaint.strip()[-500:] or f"exit code {self._process.returncode}"

    def _kill_after(self, seconds: float) -> None:
        timer = threading.Timer(seconds, self._process.send_signal, (signal.SIGKILL,))
        timer.daemon = True
        timer.start()


async def _after_the_crash(
    store: BenchStore, location: str, folder: Path, told: Sequence[Told], outcome: Outcome
) -> None:
    """Open the store, look for what was acknowledged, let the bridge catch up, and check the invariants."""
    backend = store.open(location)
    began = time.perf_counter()
    try:
        await backend.memories.history(limit=1)
    except StoreError as error:
        outcome.unopenable += 1
        outcome.findings.append(f"unopenable: {error}")
        return
    outcome.reopen_ms.append(1000 * (time.perf_counter() - began))
    try:
        outcome.lost += await _lost(backend, told)
        outcome.without_vector += await _catch_up(store, location, folder, backend)
        outcome.findings += _faults(await _verify(backend, full=False))
    finally:
        await backend.memories.close()


async def _at_the_end(store: BenchStore, location: str, told: Sequence[Told], outcome: Outcome) -> None:
    backend = store.open(location)
    try:
        outcome.lost += await _lost(backend, told)
        outcome.findings += _faults(await _verify(backend, full=True))
    finally:
        await backend.memories.close()


async def _verify(backend: Backend, *, full: bool) -> list[Finding]:
    return [] if backend.upkeep is None else await backend.upkeep.verify(full=full)


def _faults(findings: Iterable[Finding]) -> list[str]:
    return [
        f"{finding.invariant.value}: {finding.where}: {finding.what}"
        for finding in findings
        if finding.severity is not Severity.NOTE
    ]


async def _lost(backend: Backend, told: Sequence[Told]) -> list[str]:
    """The acknowledged writes that are not there, each change with every memory as it left it, or a later one did."""
    lost = [one["change"] for one in told if "change" in one and not await _is_kept(backend, one)]
    messages = [MessageId(one["message"]) for one in told if "message" in one]
    found = {message.id for message in await backend.conversations.find_messages(messages)}
    return lost + [message for message in messages if message not in found]


async def _is_kept(backend: Backend, told: Told) -> bool:
    change = await backend.memories.change(ChangeId(told["change"]))
    if change is None:
        return False
    memories = await backend.memories.get([MemoryId(state["id"]) for state in told["memories"]])
    return all(_fits(memories.get(state["id"]), state) for state in told["memories"])


def _fits(memory: Memory | None, state: Told) -> bool:
    if memory is None or memory.n != state["n"] or memory.revision < state["revision"]:
        return False
    if memory.revision > state["revision"]:
        return True  # written again; that write has been told, or was on its way
    return (memory.content, type(memory.status).__name__) == (state["content"], state["status"])


async def _catch_up(store: BenchStore, location: str, folder: Path, backend: Backend) -> int:
    """Start the bridge over the store, as OpenCode does, and wait; how many memories and passages have no vector."""
    settings = load(env={"BACKSTORY_HOME": str(folder / "home")}, project_root=None).settings
    embedder = HashEmbedder()
    model = await embedder.model()
    inlet, outlet = os.pipe()
    app = App(settings, store.open(location), embedder, no_embedder="")
    bridge = Bridge(app, source=os.fdopen(inlet, "rb"), sink=io.BytesIO())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bridge.run)
        until = time.monotonic() + CATCH_UP_WITHIN_S
        # the bridge tells nobody when it has caught up, so there is no event to wait for
        while (missing := await _without_vector(backend, model)) and time.monotonic() < until:  # noqa: ASYNC110
            await anyio.sleep(0.02)
        os.close(outlet)  # the bridge ends with its input
    return missing


async def _without_vector(backend: Backend, model: EmbeddingModel) -> int:
    memories = await backend.vectors.unembedded(model=model, limit=_ALL)
    passages = await backend.evidence.unembedded(model=model, limit=_ALL)
    return len(memories) + len(passages)


def _report(store: str, outcome: Outcome) -> Report:
    figures: dict[str, object] = {
        "kills": outcome.kills,
        "acknowledged": outcome.acknowledged,
        "lost_acknowledged": len(set(outcome.lost)),
        "unopenable": outcome.unopenable,
        "without_vector": outcome.without_vector,
        "check_findings": len(outcome.findings),
        "findings": sorted(set(outcome.findings))[:20],
        "round_ms": spread(outcome.round_ms),
        "reopen_ms": spread(outcome.reopen_ms or [0.0]),
    }
    rows = [(name.replace("_", " "), value) for name, value in figures.items() if not isinstance(value, dict | list)]
    rows += [(f"{name}, ms", f"{value['p50']} / {value['p95']}") for name, value in _spreads(figures)]
    text = "\n".join([table(("", "count"), rows), *sorted(set(outcome.findings))[:20]])
    return CrashReport(bench="crash", store=store, data="writers killed with SIGKILL", figures=figures, text=text)


def _spreads(figures: Mapping[str, Any]) -> list[tuple[str, Mapping[str, float]]]:
    return [(f"{name.removesuffix('_ms')} p50 / p95", figures[name]) for name in ("round_ms", "reopen_ms")]
