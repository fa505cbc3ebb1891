"""The parts of a score make up the whole, and each is what ranking gave."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from backstory.domain.doubt import Doubt
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Conflicted, Counters, Memory, Superseded, Visibility
from backstory.domain.ranking import Meaning, RankingPolicy, Score, score_memory
from backstory.domain.score_parts import evidence, score_parts
from backstory.domain.text import analyse, analyse_query
from backstory.domain.word_match import WordStatistics, match_words, weigh_query
from backstory.testing.fakes import ORCHARD, START, sample_memory, ulid

POLICY = RankingPolicy()
STORE = WordStatistics(documents=50, mean_length=8.0, frequency={"port": 3, "invoice": 2, "billing_port": 1})
MEMORY = sample_memory("The invoice service reads BILLING_PORT", counters=Counters(sessions=2))
PROMPT = "which BILLING_PORT does the invoice service use"
NEAR = Meaning(similarity=0.62, agreement=0.7, answered=0.6, words=40)


def scored(memory: Memory, meaning: Meaning | None, doubt: Doubt | None = None) -> Score:
    held = analyse(memory.content)
    words = match_words(
        weigh_query(analyse_query(PROMPT), STORE), held={token: held.count(token) for token in held}, length=len(held)
    )
    return score_memory(memory, words=words, meaning=meaning, doubt=doubt, project=ORCHARD, now=START, policy=POLICY)


def parts_of(memory: Memory, meaning: Meaning | None, doubt: Doubt | None = None) -> dict[str, float]:
    score = scored(memory, meaning, doubt)
    parts = score_parts(memory, score, project=ORCHARD, now=START, policy=POLICY)
    assert sum(part.value for part in parts) == pytest.approx(evidence(score), abs=0.03)
    assert POLICY.as_score(evidence(score)) == pytest.approx(score.total)
    return {part.name: round(part.value, 4) for part in parts}


def test_with_word_vectors_every_kind_of_evidence_is_told() -> None:
    parts = parts_of(MEMORY, NEAR)
    assert set(parts) == {"meaning", "agreement", "coverage", "names", "length", "freshness", "project", "sessions"}
    assert parts["meaning"] == 6.2
    assert parts["agreement"] == pytest.approx(POLICY.agreement * 0.7)
    assert parts["names"] > 0
    assert parts["length"] == pytest.approx(-POLICY.length * 0.9808, abs=1e-3)  # ln(40 / 15)
    assert (parts["project"], parts["sessions"], parts["freshness"]) == (2.0, 0.04, 0.1)


def test_without_them_the_agreement_is_what_ranking_assumes() -> None:
    parts = parts_of(MEMORY, Meaning(similarity=0.62))
    assert parts["agreement"] == pytest.approx(POLICY.agreement * (0.16 + 0.74 * 0.62), abs=1e-3)
    assert "length" not in parts


def test_words_alone_are_one_part() -> None:
    assert set(parts_of(MEMORY, None)) == {"words", "freshness", "project", "sessions"}


def test_circumstances_are_told_only_where_they_hold() -> None:
    elsewhere = replace(MEMORY, visibility=Visibility.GLOBAL, counters=Counters())
    replaced = replace(elsewhere, status=Superseded(by=MemoryId(ulid(1)), since=START))
    assert "project" not in parts_of(elsewhere, NEAR)
    assert parts_of(replaced, NEAR)["replaced"] == -1.0


def test_feedback_conflict_and_doubt_are_told_apart() -> None:
    rated = replace(MEMORY, counters=Counters(helpful=2, irrelevant=3))
    disputed = replace(rated, status=Conflicted(evidence="x", since=START))
    doubt = Doubt(memory=MEMORY.id, anchor="x", reason="x is gone", since=START)
    assert parts_of(rated, NEAR)["feedback"] == pytest.approx(POLICY.useful * -0.25)
    assert {"disputed", "doubted"}.isdisjoint(parts_of(rated, NEAR))
    assert parts_of(disputed, NEAR)["disputed"] == -POLICY.conflicted_penalty
    both = parts_of(disputed, NEAR, doubt)
    assert (both["disputed"], both["doubted"]) == (-POLICY.conflicted_penalty, -POLICY.doubted_penalty)
    assert parts_of(rated, None, doubt)["doubted"] == -POLICY.doubted_penalty


def test_what_ranking_adds_beyond_the_known_circumstances_is_not_hidden() -> None:
    score = replace(scored(MEMORY, NEAR), ties=5.0)
    parts = score_parts(MEMORY, score, project=ORCHARD, now=START, policy=POLICY)
    assert {part.name: part.value for part in parts}["other circumstances"] == pytest.approx(5.0 - 2.14)


def test_an_old_memory_has_little_freshness_and_a_pinned_one_all() -> None:
    old = replace(MEMORY, times=replace(MEMORY.times, confirmed=START - timedelta(days=45)))
    assert parts_of(old, NEAR)["freshness"] == 0.05
    assert parts_of(replace(old, pinned=True), NEAR)["freshness"] == 0.1
