"""How one state of a memory becomes another."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from backstory.domain.ids import MemoryId
from backstory.domain.lifecycle import Revision, confirm, forget, reactivate, retag, revise, supersede
from backstory.domain.memory import (
    Active,
    Conflicted,
    Deleted,
    Expired,
    Kind,
    Status,
    Superseded,
    Tier,
    searchable_text,
    status_at,
    status_name,
)
from backstory.testing.fakes import START, sample_memory, ulid

HOUR = timedelta(hours=1)
LATER = START + HOUR
DISPUTED = Conflicted(evidence="the log", since=START)
GONE = Deleted(since=START)
REPLACED = Superseded(by=MemoryId(ulid(1)), since=START)


@pytest.mark.parametrize(
    ("status", "at_expiry"), [(Active(), "expired"), (DISPUTED, "expired"), (REPLACED, "superseded"), (GONE, "deleted")]
)
def test_time_ends_what_is_current_and_nothing_else(status: Status, at_expiry: str) -> None:
    memory = sample_memory(status=status, expires_at=LATER)
    assert status_at(memory, LATER - timedelta(microseconds=1)) == status
    assert status_name(status_at(memory, LATER)) == at_expiry


def test_an_expired_memory_says_since_when() -> None:
    assert status_at(sample_memory(expires_at=START), LATER) == Expired(since=START)


def test_a_revision_sets_what_it_names() -> None:
    memory = sample_memory("a", tags=("x",), issue="I-1", area="ops")
    revised = revise(memory, Revision(content="b", kind=Kind.DECISION, tags=()), now=LATER)
    times = replace(memory.times, updated=LATER, confirmed=LATER)
    assert revised == replace(memory, content="b", kind=Kind.DECISION, tags=(), times=times)


def test_rewording_settles_a_conflict_but_revives_nothing() -> None:
    assert revise(sample_memory(status=DISPUTED), Revision(content="b"), now=LATER).status == Active()
    assert revise(sample_memory(status=REPLACED), Revision(content="b"), now=LATER).status == REPLACED


def test_what_becomes_permanent_does_not_expire() -> None:
    memory = sample_memory(tier=Tier.TEMPORARY, expires_at=LATER)
    assert revise(memory, Revision(content="b"), now=START).expires_at == LATER
    assert revise(memory, Revision(tier=Tier.TEMPORARY), now=START).expires_at == LATER
    assert revise(memory, Revision(tier=Tier.CORE), now=START).expires_at is None
    until = LATER + HOUR
    assert revise(memory, Revision(tier=Tier.CORE, expires_at=until), now=START).expires_at == until


def test_confirming_moves_the_date_and_a_temporary_life_with_it() -> None:
    kept = confirm(sample_memory(), now=LATER)
    assert (kept.times.confirmed, kept.times.updated, kept.expires_at) == (LATER, START, None)
    temporary = sample_memory(tier=Tier.TEMPORARY, expires_at=START + 2 * HOUR)
    assert confirm(temporary, now=LATER).expires_at == LATER + 2 * HOUR
    overdue = replace(temporary, expires_at=START - HOUR)
    assert confirm(overdue, now=LATER).expires_at == LATER


def test_states_follow_decisions() -> None:
    memory = sample_memory()
    replaced = supersede(memory, by=MemoryId(ulid(1)), now=START)
    assert replaced.status == REPLACED
    assert supersede(replaced, by=MemoryId(ulid(2)), now=LATER).status == Superseded(by=MemoryId(ulid(2)), since=LATER)
    assert reactivate(replaced) == memory
    assert forget(memory, now=START, reason="wrong").status == Deleted(since=START, reason="wrong")


def test_a_renamed_tag_keeps_its_place_and_stands_once() -> None:
    memory = sample_memory(tags=("a", "b", "c"))
    assert retag(memory, old="b", new="x").tags == ("a", "x", "c")
    assert retag(memory, old="c", new="a").tags == ("a", "b")
    assert retag(memory, old="z", new="x").tags == memory.tags


def test_labels_are_searched_with_the_text() -> None:
    memory = sample_memory("text", area="ops/ci", issue="I-1", tags=("x", "y"))
    assert searchable_text(memory) == "text\nops/ci\nI-1\nx\ny"
    assert searchable_text(sample_memory("text")) == "text"
