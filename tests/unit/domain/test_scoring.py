"""What makes one memory answer better than another."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from backstory.domain.ids import MemoryId
from backstory.domain.memory import Counters, Memory, Superseded, Visibility
from backstory.domain.ranking import Meaning, RankingPolicy, Score, explain, freshness, rank_key, score_memory
from backstory.domain.word_match import NO_WORDS, WordMatch
from backstory.testing.fakes import ORCHARD, START, sample_memory, ulid

POLICY = RankingPolicy()


def score(memory: Memory | None = None, *, words: WordMatch = NO_WORDS, similarity: float | None = None) -> Score:
    memory = memory or sample_memory()
    meaning = None if similarity is None else Meaning(similarity=similarity)
    return score_memory(memory, words=words, meaning=meaning, project=ORCHARD, now=START, policy=POLICY)


def test_totals_lie_between_zero_and_one() -> None:
    best = WordMatch(lexical=1.0, coverage=1.0, matched=("x",))
    busy = sample_memory(counters=Counters(sessions=1000), pinned=True)
    for similarity in (None, -1.0, 0.0, 1.0):
        for words in (NO_WORDS, best):
            assert 0.0 <= score(busy, words=words, similarity=similarity).total <= 1.0


def test_tie_breakers_never_beat_a_clearly_better_match() -> None:
    favourite = sample_memory(counters=Counters(sessions=99), pinned=True)
    stranger = sample_memory("s", at=START - timedelta(days=1000))
    assert score(favourite, similarity=0.5).total < score(stranger, similarity=0.55).total
    assert score(favourite, similarity=0.5).total > score(stranger, similarity=0.5).total


def test_a_memory_of_the_project_stands_before_one_of_everywhere_that_matches_as_well() -> None:
    everywhere = sample_memory("e", visibility=Visibility.GLOBAL)
    assert score(similarity=0.5).total > score(everywhere, similarity=0.5).total
    assert score(similarity=0.4).total < score(everywhere, similarity=0.6).total


def test_a_replaced_memory_stands_behind() -> None:
    replaced = sample_memory(status=Superseded(by=MemoryId(ulid(1)), since=START))
    assert score(replaced, similarity=0.7).total < score(similarity=0.65).total


def test_freshness_halves_and_pins_stay_fresh() -> None:
    memory = sample_memory()
    assert freshness(memory, now=START, policy=POLICY) == 1.0
    assert freshness(memory, now=START + POLICY.half_life, policy=POLICY) == pytest.approx(0.5)
    assert freshness(memory, now=START - timedelta(days=1), policy=POLICY) == 1.0
    assert freshness(replace(memory, pinned=True), now=START + 10 * POLICY.half_life, policy=POLICY) == 1.0


def test_equal_scores_go_by_date_and_then_by_number() -> None:
    same = score(similarity=0.5)
    old = sample_memory("old", n=9, at=START - timedelta(days=1))
    first, second = sample_memory("x", n=1), sample_memory("y", n=2)
    ranked = sorted((old, first, second), key=lambda memory: rank_key(memory, same), reverse=True)
    assert ranked == [second, first, old]


def test_reasons_name_the_evidence() -> None:
    words = WordMatch(lexical=0.5, coverage=0.5, matched=("rare",))
    assert explain(score(words=words, similarity=0.5))[0] == "meaning 0.50"
    assert "rare" in explain(score(words=words))[0]
    assert explain(score()) == ("newest",)
