"""Memories by type and topic: how they are matched, scored by words, and packed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from backstory.domain.memory import Kind, Memory, Times
from backstory.domain.topics import best_first, duplicates, for_context, has_topic, pack, type_of, word_score
from backstory.testing.fakes import START, sample_memory


def memory(content: str, *, n: int = 1, days: int = 0, **fields: object) -> Memory:
    at = START - timedelta(days=days)
    base = {"kind": Kind.DECISION, "area": "quay", "tags": (), "issue": None}
    times = Times(learned=at, updated=at, confirmed=at)
    return replace(sample_memory(content), n=n, times=times, **(base | fields))  # type: ignore[arg-type]  # fields of it


def test_a_word_counts_once_and_more_where_it_is_a_label() -> None:
    wanted = memory("Moor at low tide.", tags=("tide",))
    assert word_score(wanted, "moor") == 1
    assert word_score(wanted, "QUAY") == 3
    assert word_score(wanted, "decision tide rope") == 3 + 3
    assert best_first([wanted], "rope") == []


@pytest.mark.parametrize(("days", "found"), [(0, True), (7, True), (30, True), (89, True), (270, False)])
def test_a_score_fades_with_age_in_a_context(days: int, found: bool) -> None:
    old = memory("Moor at low tide.", days=days)
    assert bool(for_context([old], "moor tide", now=START, least=1)) is found


def test_without_a_query_the_type_decides_and_then_the_date() -> None:
    kinds = [Kind.LEARNING, Kind.BLOCKER, Kind.PREFERENCE, Kind.PATTERN, Kind.DECISION, Kind.FACT]
    memories = [memory(f"{kind}", n=number, kind=kind) for number, kind in enumerate(kinds)]
    told = [type_of(each) for each in for_context(memories, "", now=START, least=0)]
    assert told == ["preference", "decision", "blocker", "pattern", "context", "learning"]


def test_a_pack_groups_by_type_and_topic_in_the_order_of_rank() -> None:
    memories = [
        memory("One.", n=1), memory("Two.", n=2, kind=Kind.PREFERENCE, area="user"), memory("Three.", n=3),
    ]  # fmt: skip
    assert pack(memories, max_chars=200) == "RM:\nd/quay: One.; Three.\nr/user: Two."
    assert pack(memories, max_chars=30) == "RM:"


def test_topics_match_in_three_ways() -> None:
    wheel = memory("It turns left.", area="mill/Wheel")
    assert has_topic(wheel, "wheel", "contains")
    assert has_topic(wheel, "MILL", "prefix")
    assert not has_topic(wheel, "mill", "exact")
    assert has_topic(memory("Here.", area=None), "project", "exact")


def test_duplicates_are_equal_in_every_field() -> None:
    same = [memory("Moor at low tide.", n=n) for n in (1, 2)]
    other = [memory("Moor at low tide.", n=3, issue="#3"), memory("Moor at low tide.", n=4, days=1)]
    assert [(kept.n, [each.n for each in gone]) for kept, gone in duplicates([*other, *same])] == [(1, [2])]
