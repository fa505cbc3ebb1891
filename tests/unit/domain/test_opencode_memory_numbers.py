"""A store of opencode-memory: the same worth, the same memories pruned and the same core ones first, at its time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backstory.domain.ids import MemoryId, ProjectId, make_ulid
from backstory.domain.memory import (
    Active,
    Conflicted,
    Counters,
    Memory,
    Sensitivity,
    Source,
    Status,
    Superseded,
    Tier,
    Times,
    Visibility,
    status_at,
    status_name,
)
from backstory.domain.pruning import PruningPolicy, to_prune
from backstory.domain.worth import worth
from backstory.testing.fakes import ORCHARD, ulid

SAMPLE = Path(__file__).parents[4] / "shared" / "seed-stores" / "opencode-memory" / "v2-store"
PROJECTS = {"/home/dev/demo-ingest": ORCHARD, "/home/dev/other-project": ProjectId(ulid(9))}
# That product prunes what was stated as well, and has no reason to keep a pinned one apart.
AS_THERE = PruningPolicy(sources=frozenset(Source))
Entry = Mapping[str, Any]  # Any: JSON


@pytest.fixture(scope="module")
def expected() -> Entry:
    if not SAMPLE.exists():
        pytest.skip(f"the sample store is not here: {SAMPLE}")
    answers: Entry = json.loads((SAMPLE / "expected.json").read_text(encoding="utf-8"))
    return answers


@pytest.fixture(scope="module")
def memories(expected: Entry) -> dict[str, Memory]:
    entries = json.loads((SAMPLE / "store.json").read_text(encoding="utf-8"))["entries"]
    return {entry["id"]: as_memory(entry, number) for number, entry in enumerate(entries, start=1)}


def as_memory(entry: Entry, number: int) -> Memory:
    """One of its entries as a memory of ours, as far as worth and pruning look at it."""
    seen = moment(entry["lastSeen"])
    return Memory(
        id=MemoryId(make_ulid(time_ms=number, randomness=bytes(10))),
        n=number,
        content=entry["text"],
        visibility=Visibility(entry["scope"]),
        project=PROJECTS.get(entry.get("projectID", "")),
        tier=Tier(entry["tier"]),
        pinned=entry.get("pinned", False),
        expires_at=moment(entry["expiresAt"]) if "expiresAt" in entry else None,
        sensitivity=Sensitivity(entry["sensitivity"]),
        status=status_of(entry),
        source=Source(entry["source"]),
        weight=entry["weight"] / 4,
        times=Times(learned=moment(entry["created"]), updated=seen, confirmed=seen),
        counters=Counters(helpful=entry.get("helpfulCount", 0), irrelevant=entry.get("irrelevantCount", 0)),
    )


def status_of(entry: Entry) -> Status:
    match entry.get("status"):
        case "SUPERSEDED":
            return Superseded(by=MemoryId(""), since=moment(entry["supersededAt"]))
        case "CONFLICTED":
            return Conflicted(evidence=entry["conflictEvidence"], since=moment(entry["conflictAt"]))
        case _:
            return Active()


def moment(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def test_every_entry_is_worth_what_it_is_worth_there(expected: Entry, memories: Mapping[str, Memory]) -> None:
    now = moment(expected["reference_now_ms"])
    ours = {entry["id"]: round(worth(memories[entry["id"]], now), 6) for entry in expected["scores"]}
    assert ours == {entry["id"]: entry["score"] for entry in expected["scores"]}


def test_the_same_entries_are_pruned(expected: Entry, memories: Mapping[str, Memory]) -> None:
    removals = to_prune(list(memories.values()), now=moment(expected["reference_now_ms"]), policy=AS_THERE)
    gone = {removal.memory.id for removal in removals}
    survives = {name: memory.id not in gone for name, memory in memories.items()}
    assert survives == {entry["id"]: entry["survives_prune"] for entry in expected["scores"]}


def test_by_our_own_policy_nothing_that_was_stated_goes(expected: Entry, memories: Mapping[str, Memory]) -> None:
    removals = to_prune(
        list(memories.values()), now=moment(expected["reference_now_ms"]), policy=PruningPolicy(at_most=1)
    )
    assert removals
    assert {removal.memory.source for removal in removals} == {Source.DREAMED}


def test_the_same_core_memories_come_first(expected: Entry, memories: Mapping[str, Memory]) -> None:
    now = moment(expected["reference_now_ms"])
    for folder, wanted in expected["core_slot_ids_in"].items():
        here = {
            name: memory
            for name, memory in memories.items()
            if memory.tier is Tier.CORE
            and status_name(status_at(memory, now)) in {"active", "conflicted"}
            and memory.sensitivity is not Sensitivity.LOCAL_ONLY
            and (memory.visibility is Visibility.GLOBAL or memory.project == PROJECTS[folder])
        }
        best = sorted(here, key=lambda name: worth(here[name], now), reverse=True)
        assert best[: len(wanted)] == wanted
