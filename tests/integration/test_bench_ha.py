"""The parts of the failover bench that can be tried without a cluster."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.adapters.stores.memory import open_memory_store
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.memory import Memory, Times, Visibility
from backstory.ports.backend import Backend
from bench import ha
from bench.ha_clients import Told
from bench.ha_verdict import look
from bench.patroni_node import HOST, Fall, Node

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def _add(backend: Backend, text: str) -> dict[str, Any]:  # Any: as JSON has it
    """Store a memory; what a writer tells of it."""
    memory = Memory(
        id=MemoryId(f"m-{text}"),
        content=text,
        visibility=Visibility.GLOBAL,
        project=None,
        times=Times(learned=NOW, updated=NOW, confirmed=NOW),
    )
    edits = (Edit(before=None, after=memory),)
    change = Change(id=ChangeId(f"c-{text}"), at=NOW, author=Author.AGENT, action=Action.ADD, edits=edits)
    stored = anyio.run(backend.memories.commit, change).edits[0].after
    state = {"id": stored.id, "n": stored.n, "revision": stored.revision, "content": text, "status": "Active"}
    return {"change": change.id, "memories": [state]}


def test_the_gap_is_the_longest_pause_that_ends_after_the_kill() -> None:
    times = [0.0, 5.0, 5.1, 5.2, 9.0, 9.1, 30.0]
    assert ha.longest_gap(times, after=5.15, until=12.0) == (5.2, 9.0)


def test_a_gap_that_nobody_ends_lasts_until_the_end_of_the_round() -> None:
    assert ha.longest_gap([1.0, 1.1], after=1.05, until=61.0) == (1.1, 61.0)


def test_writes_that_are_as_they_were_told_are_not_lost() -> None:
    backend = open_memory_store()
    told: list[Told] = [_add(backend, "crate 10 goes to dock 17")]
    kept = anyio.run(look, backend, told, [told[0]["memories"][0]["n"]])
    assert (kept.lost, kept.wishes, kept.findings) == ([], 1, [])


def test_a_write_that_is_gone_changed_or_never_was_is_lost() -> None:
    backend = open_memory_store()
    kept_as_told = _add(backend, "one")
    other = _add(backend, "two")
    other["memories"] = [{**other["memories"][0], "content": "another"}]
    gone = {"change": "c-gone", "memories": [{"id": "m-gone", "n": 9, "revision": 1, "content": "", "status": ""}]}
    told: list[Told] = [kept_as_told, other, gone, {"message": "msg-gone"}]
    kept = anyio.run(look, backend, told, [77])
    assert kept.lost == ["#77", "c-gone", "c-two", "msg-gone"]


def test_a_node_that_fell_silent_answers_no_connection_and_refuses_it_once_it_is_killed(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    node = Node(name="node1", folder=tmp_path, port=port, rest_port=0)
    node.bring_down(Fall.SILENCE)
    try:
        with pytest.raises(TimeoutError):
            socket.create_connection((HOST, port), timeout=0.2)
    finally:
        node.kill()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port), timeout=0.2)


def test_without_etcd_the_bench_says_what_is_missing_and_ends_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ha.main(["--kills", "1"]) == 2
    said = capsys.readouterr()
    assert "etcd" in said.err
    assert not said.out
