"""Which memories a session starts with."""

from __future__ import annotations

from datetime import timedelta

from backstory.domain.core_slots import always_offered
from backstory.domain.memory import Memory, Tier
from backstory.testing.fakes import START, sample_memory

DAY = timedelta(days=1)


def core(text: str, *, days: float = 0, **fields: object) -> Memory:
    return sample_memory(text, at=START - days * DAY, tier=Tier.CORE, **fields)


def texts(pinned: list[Memory], others: list[Memory], slots: int = 3) -> list[str]:
    return [memory.content for memory in always_offered(pinned, others, now=START, slots=slots)]


def test_the_worthiest_core_memories_take_the_slots() -> None:
    facts = [core("old", days=40), core("weak", weight=0.1), core("new"), core("fair", days=10)]
    assert texts([], facts) == ["new", "fair", "old"]


def test_pinned_ones_come_first_and_a_pinned_core_one_takes_a_slot() -> None:
    pinned = [sample_memory("pinned", pinned=True), core("both", pinned=True, days=400)]
    assert texts(pinned, [pinned[1], core("a"), core("b", days=1), core("c", days=2)]) == ["pinned", "both", "a", "b"]


def test_pinned_ones_are_all_offered_however_many_are_core() -> None:
    pinned = [core(f"pinned {number}", pinned=True) for number in range(5)]
    assert texts(pinned, [*pinned, core("unpinned")]) == [memory.content for memory in pinned]


def test_equal_worth_is_settled_by_date_and_number() -> None:
    facts = [core("first", n=1, weight=1), core("third", n=3, weight=1), core("second", n=2, weight=1)]
    assert texts([], facts, slots=2) == ["third", "second"]
