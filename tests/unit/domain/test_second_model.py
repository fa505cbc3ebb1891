"""A second model's cosine beside the first's, and what it does to a score."""

from __future__ import annotations

import pytest

from backstory.domain.ranking import Meaning, RankingPolicy, Score, explain, match, score_memory
from backstory.domain.relevance import UNASKED, Fair, Relevance, confidence, passes
from backstory.domain.score_parts import evidence, score_parts
from backstory.domain.second_model import as_first, joined
from backstory.domain.word_match import NO_WORDS
from backstory.testing.fakes import START, sample_memory

POLICY = RankingPolicy()


def scored(first: float, second: float | None, apart: float | None = None) -> Score:
    meaning = Meaning(similarity=first, agreement=0.4, answered=0.4, words=15, second=second, apart=apart)
    return score_memory(sample_memory(), words=NO_WORDS, meaning=meaning, project=None, now=START, policy=POLICY)


def test_the_usual_cosine_of_the_second_model_says_nothing() -> None:
    assert as_first(0.795) == pytest.approx(0.0)
    assert as_first(0.9) > 0.4
    assert as_first(0.7) < 0.0


def test_two_similarities_count_by_their_mean_and_one_by_itself() -> None:
    assert joined(0.2, 0.6) == pytest.approx(0.4)
    assert joined(0.2, None) == 0.2


def test_without_a_second_model_nothing_changes() -> None:
    alone = Meaning(similarity=0.3, agreement=0.4, answered=0.4, words=15)
    assert match(NO_WORDS, alone, POLICY) == pytest.approx(10.0 * 0.3 + POLICY.agreement * 0.4)
    score = scored(0.3, None)
    assert score.second is None
    assert explain(score) == ("meaning 0.30, word by word 0.40",)


def test_a_memory_that_the_second_model_finds_nearer_ranks_higher() -> None:
    assert scored(0.3, 0.5).total > scored(0.3, 0.3).total > scored(0.3, 0.1).total
    assert scored(0.3, 0.3).total == pytest.approx(scored(0.3, None).total)


def test_what_both_find_contrary_counts_nothing_rather_than_against_a_memory() -> None:
    assert scored(-0.2, -0.4).total == scored(-0.1, -0.1).total


def test_the_reasons_and_the_parts_tell_of_the_second_model() -> None:
    score = scored(0.3, 0.5)
    assert "by the second model 0.50" in explain(score)[0]
    parts = score_parts(sample_memory(), score, project=None, now=START, policy=POLICY)
    meaning = next(part for part in parts if part.name == "meaning")
    assert meaning.value == pytest.approx(4.0)
    assert "0.50 by the second model" in meaning.detail
    assert sum(part.value for part in parts) == pytest.approx(evidence(score), abs=0.02)


def test_asked_for_by_name_what_the_second_model_tells_apart_from_the_rest_is_enough() -> None:
    asked = Fair(similarity=0.25, coverage=0.1)
    assert passes(scored(0.05, 0.12, apart=0.2), asked)
    assert passes(scored(0.4, 0.05, apart=0.0), asked)
    assert not passes(scored(0.05, 0.4, apart=0.02), asked)
    assert not passes(scored(0.05, None), asked)


def test_what_is_offered_unasked_is_judged_by_the_first_model_alone() -> None:
    assert confidence(scored(0.3, 0.9, apart=0.5)) == confidence(scored(0.3, None))
    balanced = UNASKED[Relevance.BALANCED]
    assert passes(scored(0.3, 0.9, apart=0.5), balanced) == passes(scored(0.3, None), balanced)
