"""Kill the leader of a Patroni cluster while it is written to: ``python -m bench.ha --kills 3``.

Three Postgres servers under Patroni, three members of etcd; writers go on through Backstory's own store, and a bridge
answers an OpenCode session. In each round the leader's server and its agent get SIGKILL, another takes over, and the
old one comes back. What each figure means: bench/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio

from bench.ha_clients import HOOK_DEADLINE_S, Hook, HookedSession, Told, WriterProcess
from bench.ha_verdict import Kept, look
from bench.patroni_cluster import LOOP_WAIT_S, SIZE, TTL_S, Cluster, NotReady, running_cluster
from bench.patroni_node import Fall
from bench.patroni_programs import find_programs
from bench.report import Report, Unavailable, percentile, table

KILLS = 3
SECONDS = 10.0
WRITERS = 3
GOES_ON_WITHIN_S = 60.0  # after there is a new leader
WISHES_WITHIN_S = 30.0  # what the store could not take is tried again every 10 s


@dataclass(slots=True, kw_only=True)
class Round:
    """One kill: when (seconds of the monotonic clock), and what followed, in seconds after it."""

    killed_at: float
    leader_after_s: float
    went_on: bool
    whole_after_s: float = 0.0
    ended_at: float = 0.0
    gap: tuple[float, float] = (0.0, 0.0)
    """From the last acknowledged write to the next one, whoever wrote them."""

    @property
    def gap_s(self) -> float:
        return self.gap[1] - self.gap[0]


@dataclass(slots=True, kw_only=True)
class Outcome:
    """All rounds, and what the clients and the store have to say."""

    fall: Fall
    rounds: list[Round] = field(default_factory=list)
    acknowledged: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    hooks: list[Hook] = field(default_factory=list)
    wishes: int = 0
    kept: Kept
    complaints: list[str] = field(default_factory=list)

    @property
    def reconnected(self) -> bool:
        """Whether each client went on by itself after each kill."""
        return all(one.went_on for one in self.rounds) and not self.complaints

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost, damaged or left behind. How long it took is for the reader to judge."""
        return self.reconnected and not self.kept.lost and not self.kept.findings and self.kept.wishes == self.wishes


class HaReport(Report):
    """The outcome as one flat object."""

    __slots__ = ()

    def as_json(self) -> str:
        """The figures beside the bench's and the store's name."""
        return json.dumps({"bench": self.bench, "store": self.store, **self.figures}, ensure_ascii=False)


def main(arguments: list[str] | None = None) -> int:
    """0 if nothing was lost and everybody went on, 1 if not, 2 where the cluster cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m bench.ha", description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS, metavar="N", help=f"rounds ({KILLS})")
    parser.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        metavar="S",
        help=f"of load before and after each kill ({SECONDS:.0f})",
    )
    parser.add_argument("--writers", type=int, default=WRITERS, metavar="N", help=f"writing processes ({WRITERS})")
    parser.add_argument(
        "--fall",
        choices=[fall.value for fall in Fall],
        default=Fall.KILL.value,
        help="how a leader goes down: killed; killed on a machine that then answers nothing; frozen, all of it",
    )
    parser.add_argument("--keep", action="store_true", help="leave the folder with all logs, and say where it is")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args(arguments)
    try:
        outcome = _run(options)
    except (Unavailable, NotReady) as error:
        print(f"bench ha: {error}", file=sys.stderr)
        return 2 if isinstance(error, Unavailable) else 1
    report = _report(outcome)
    print(report.as_json() if options.json else report.as_text())
    return 0 if outcome.is_clean else 1


def _run(options: argparse.Namespace) -> Outcome:
    _say("looking for etcd, Patroni and Postgres")
    programs = find_programs()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the cluster is taken down
    with ExitStack() as stack:
        if options.keep:
            folder = Path(tempfile.mkdtemp(prefix="backstory-ha-"))
            _say(f"logs stay in {folder}")
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="backstory-ha-")))
        _say("starting three members of etcd and three Postgres servers under Patroni")
        cluster = stack.enter_context(running_cluster(programs, folder))
        return _kill_leaders(cluster, folder, options)


def _kill_leaders(cluster: Cluster, folder: Path, options: argparse.Namespace) -> Outcome:
    clients = folder / "clients"
    clients.mkdir(mode=0o700)
    fall = Fall(options.fall)
    writers: list[WriterProcess] = []
    session = HookedSession(cluster.url, clients, password=cluster.password)
    try:
        session.start()
        for series in range(1, options.writers + 1):
            log = clients / f"writer{series}.log"
            writers.append(WriterProcess(cluster.url, series, password=cluster.password, log=log))
        rounds = [_round(cluster, writers, number, fall, options.seconds) for number in range(1, options.kills + 1)]
        complaints = [said for writer in writers if (said := writer.end())]
        told = sorted((pair for writer in writers for pair in writer.acknowledged()), key=lambda pair: pair[0])
        kept, complaint = _settle(cluster, session, [one for _, one in told])
    finally:
        session.kill()
        for writer in writers:
            writer.process.kill()
    for one in rounds:
        one.gap = longest_gap([at for at, _ in told], after=one.killed_at, until=one.ended_at)
    return Outcome(
        fall=fall,
        rounds=rounds,
        acknowledged=len(told) + len(session.stored_numbers()),
        failures=Counter(failure for writer in writers for failure in writer.failures()),
        hooks=sorted(session.hooks, key=lambda hook: hook.asked_at),
        wishes=session.wishes,
        kept=kept,
        complaints=[*complaints, *([complaint] if complaint else [])],
    )


def _round(cluster: Cluster, writers: Sequence[WriterProcess], number: int, fall: Fall, seconds: float) -> Round:
    cluster.wait_until_whole()
    time.sleep(seconds)
    old = cluster.wait_for_leader()
    killed_at = time.monotonic()
    old.bring_down(fall)
    _say(f"round {number}: {old.name} goes down ({fall.value})")
    new = cluster.wait_for_leader()
    leader_at = time.monotonic()
    went_on = _wait_until_all_write(writers, since=leader_at)
    _say(f"round {number}: {new.name} leads after {leader_at - killed_at:.1f} s; writers go on: {went_on}")
    time.sleep(seconds)
    old.start(cluster.programs)
    cluster.wait_until_whole()
    ended_at = time.monotonic()
    _say(f"round {number}: {old.name} is back, {ended_at - killed_at:.1f} s after the kill")
    return Round(
        killed_at=killed_at,
        leader_after_s=leader_at - killed_at,
        went_on=went_on,
        whole_after_s=ended_at - killed_at,
        ended_at=ended_at,
    )


def _wait_until_all_write(writers: Sequence[WriterProcess], *, since: float) -> bool:
    """Whether every writer has had a write acknowledged since then."""
    until = time.monotonic() + GOES_ON_WITHIN_S
    while time.monotonic() < until:
        if all((acknowledged := writer.acknowledged()) and acknowledged[-1][0] > since for writer in writers):
            return True
        time.sleep(0.1)
    return False


def _settle(cluster: Cluster, session: HookedSession, told: Sequence[Told]) -> tuple[Kept, str]:
    """What the store holds once the bridge has had time to store what it could not, and what the bridge died of."""
    os.environ["PGPASSWORD"] = cluster.password
    until = time.monotonic() + WISHES_WITHIN_S
    session.stop_asking()
    kept = anyio.run(_look, cluster, session, told)
    while kept.wishes < session.wishes and time.monotonic() < until:
        time.sleep(2)
        kept = anyio.run(_look, cluster, session, told)
    return kept, session.end()


async def _look(cluster: Cluster, session: HookedSession, told: Sequence[Told]) -> Kept:
    from backstory.adapters.stores.postgres.store import open_postgres

    backend = open_postgres(cluster.url)
    try:
        return await look(backend, told, session.stored_numbers())
    finally:
        await backend.memories.close()


def longest_gap(times: Sequence[float], *, after: float, until: float) -> tuple[float, float]:
    """The longest pause between two of ``times``, which rise, that ends between the two moments; ``until`` ends the
    last one."""
    ends = [*(at for at in times if at < until), until]
    pauses = [(first, second) for first, second in pairwise(ends) if second > after]
    return max(pauses, key=lambda pause: pause[1] - pause[0])


def _report(outcome: Outcome) -> Report:
    took_ms = [1000 * hook.took_s for hook in outcome.hooks]
    leaderless = [
        hook for hook in outcome.hooks if any(one.killed_at <= hook.asked_at < one.gap[1] for one in outcome.rounds)
    ]
    figures: dict[str, object] = {
        "kills": len(outcome.rounds),
        "fall": outcome.fall.value,
        "acknowledged": outcome.acknowledged,
        "lost_acknowledged": len(outcome.kept.lost),
        "write_gap_s": _spread([one.gap_s for one in outcome.rounds]),
        "new_leader_s": _spread([one.leader_after_s for one in outcome.rounds]),
        "whole_again_s": _spread([one.whole_after_s for one in outcome.rounds]),
        "failed_writes": sum(outcome.failures.values()),
        "hook_ms": _spread(took_ms),
        "hooks_over_deadline": _late(outcome.hooks),
        "hook_without_leader_ms": _spread([1000 * hook.took_s for hook in leaderless]),
        "hooks_over_deadline_without_leader": _late(leaderless),
        "hooks_failed": sum(hook.failed is not None for hook in outcome.hooks),
        "reconnected": outcome.reconnected,
        "wishes": outcome.wishes,
        "wishes_kept": outcome.kept.wishes,
        "checked": outcome.kept.checked,
        "check_findings": len(outcome.kept.findings),
        "findings": [*outcome.complaints, *outcome.kept.findings, *outcome.kept.lost][:20],
        "failures": dict(outcome.failures.most_common(10)),
        "cluster": {"postgres": SIZE, "etcd": SIZE, "ttl_s": TTL_S, "loop_wait_s": LOOP_WAIT_S},
    }
    data = "three Patroni nodes, the leader killed with SIGKILL"
    return HaReport(bench="ha", store="postgres", data=data, figures=figures, text=_text(figures))


def _late(hooks: Sequence[Hook]) -> int:
    return sum(hook.took_s > HOOK_DEADLINE_S or hook.failed is not None for hook in hooks)


def _spread(values: Sequence[float]) -> dict[str, float]:
    """Like ``report.spread``, with the greatest as well; of no values the number alone."""
    if not values:
        return {"n": 0}
    shares = {"p50": percentile(values, 0.5), "p95": percentile(values, 0.95), "max": max(values)}
    return {**{name: round(value, 3) for name, value in shares.items()}, "n": len(values)}


def _text(figures: Mapping[str, Any]) -> str:
    counts = [(name.replace("_", " "), value) for name, value in figures.items() if not isinstance(value, dict | list)]
    spreads = [
        (name.replace("_", " "), *(value.get(column, "") for column in ("p50", "p95", "max", "n")))
        for name, value in figures.items()
        if isinstance(value, dict) and "n" in value
    ]
    tables = [table(("", "count"), counts), table(("", "p50", "p95", "max", "n"), spreads)]
    failures = [f"{count} writes failed: {failure}" for failure, count in figures["failures"].items()]
    return "\n\n".join([*tables, "\n".join([*failures, *figures["findings"]])]).rstrip()


def _say(what: str) -> None:
    print(f"ha: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
