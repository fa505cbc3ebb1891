"""What fades, what stays whatever its worth, and why."""

from __future__ import annotations

from datetime import timedelta

import pytest

from backstory.domain.ids import MemoryId, ProjectId
from backstory.domain.memory import Active, Conflicted, Counters, Deleted, Memory, Source, Superseded, Visibility
from backstory.domain.pruning import PruningPolicy, to_prune
from backstory.testing.fakes import START, sample_memory, ulid

DAY = timedelta(days=1)
NOW = START + 365 * DAY
POLICY = PruningPolicy()


def fact(text: str, *, days: float = 0, **fields: object) -> Memory:
    """A derived fact that was last confirmed so many days ago."""
    return sample_memory(text, at=NOW - days * DAY, **{"source": Source.DREAMED, "weight": 0.25} | fields)


def pruned(*memories: Memory, policy: PruningPolicy = POLICY, kept: tuple[MemoryId, ...] = ()) -> list[str]:
    return [removal.memory.content for removal in to_prune(memories, now=NOW, policy=policy, kept=kept)]


@pytest.mark.parametrize(
    ("days", "counters", "goes"),
    [
        (0, Counters(), False),
        (85, Counters(), False),
        (86, Counters(), True),
        (86, Counters(helpful=5), False),
        (85, Counters(irrelevant=1), True),
        (86, Counters(surfaced=500, recalled=500), True),
    ],
)
def test_a_fact_goes_once_it_is_worth_less_than_the_floor(days: int, counters: Counters, goes: bool) -> None:
    assert pruned(fact("faded", days=days, counters=counters)) == (["faded"] if goes else [])


@pytest.mark.parametrize("source", [Source.EXPLICIT, Source.CAPTURED, Source.IMPORTED])
def test_what_somebody_stated_or_brought_along_never_goes(source: Source) -> None:
    long_over = fact("over", days=300, source=source, expires_at=NOW - 200 * DAY)
    replaced = fact("old", days=300, source=source, status=Superseded(by=MemoryId(ulid(1)), since=NOW - 200 * DAY))
    assert pruned(fact("a", days=3000, source=source), long_over, replaced) == []


def test_a_pinned_fact_and_one_that_somebody_keeps_never_go() -> None:
    kept = fact("kept", days=900)
    policy = PruningPolicy(at_most=1)
    pinned = fact("pinned", days=900, pinned=True)
    assert pruned(kept, pinned, fact("fresh"), fact("older", days=1), policy=policy, kept=(kept.id,)) == ["older"]


def test_both_sides_of_a_conflict_wait_for_a_person() -> None:
    guess = fact("guess", days=900)
    said = fact("said", source=Source.EXPLICIT, status=Conflicted(evidence="x", since=START, against=guess.id))
    open_conflict = fact("open", days=900, status=Conflicted(evidence="x", since=START))
    assert pruned(guess, said, open_conflict) == []
    assert pruned(guess) == ["guess"]


def test_an_expired_fact_goes_whatever_its_worth() -> None:
    assert pruned(fact("over", expires_at=NOW), fact("not yet", expires_at=NOW + DAY)) == ["over"]


def test_what_was_replaced_stays_for_thirty_days_whatever_its_worth() -> None:
    young = fact("young", days=400, status=Superseded(by=MemoryId(ulid(1)), since=NOW - 30 * DAY))
    old = fact("old", status=Superseded(by=MemoryId(ulid(1)), since=NOW - 31 * DAY))
    assert pruned(young, old) == ["old"]


def test_the_best_facts_stay_within_the_cap_of_each_project() -> None:
    here = [fact(f"here {days}", days=days) for days in (3, 1, 2)]
    there = fact("there", days=50, project=ProjectId(ulid(9)))
    everywhere = [fact(f"everywhere {days}", days=days, visibility=Visibility.GLOBAL) for days in (10, 20, 30)]
    policy = PruningPolicy(at_most=2)
    assert pruned(*here, there, *everywhere, policy=policy) == ["everywhere 30", "here 3"]


def test_what_counts_for_the_cap_is_neither_stated_pinned_nor_replaced() -> None:
    others = (
        fact("stated", source=Source.EXPLICIT),
        fact("pinned", pinned=True),
        fact("replaced", status=Superseded(by=MemoryId(ulid(1)), since=NOW)),
        fact("gone", status=Deleted(since=NOW)),
    )
    assert pruned(fact("one", days=1), fact("two"), *others, policy=PruningPolicy(at_most=2)) == []


def test_each_removal_says_why() -> None:
    memories = (
        fact("a", days=90),
        fact("b", expires_at=NOW),
        fact("c", status=Superseded(by=MemoryId(ulid(1)), since=NOW - 40 * DAY)),
        fact("d"),
        fact("e", days=1, status=Active()),
    )
    reasons = {r.memory.content: r.reason for r in to_prune(memories, now=NOW, policy=PruningPolicy(at_most=1))}
    assert reasons == {
        "a": "worth 0.14, below 0.15",
        "b": "its time ran out on 2027-03-02",
        "c": "it was replaced on 2027-01-21",
        "e": "worth 0.98, beyond the best 1",
    }
