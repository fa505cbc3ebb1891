"""The gate: what may be said unasked, what on request, and the reasons for silence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backstory.domain.ranking import Score
from backstory.domain.relevance import REQUESTED, UNASKED, Fair, Relevance, confidence, judge, passes, sureness

BALANCED = UNASKED[Relevance.BALANCED]


def score(
    *,
    similarity: float | None = None,
    coverage: float = 0.0,
    rarity: float = 0.0,
    asked: float = 5.0,
    total: float = 0.5,
) -> Score:
    matched = ("word",) if coverage else ()
    return Score(
        total=total,
        similarity=similarity,
        lexical=coverage,
        coverage=coverage,
        ties=0.0,
        matched=matched,
        rarity=rarity,
        asked=asked,
    )


def test_nothing_found_is_silence_with_a_reason() -> None:
    assert judge([], BALANCED).silent_because == "no memory shares a word or a meaning with this"


def test_a_close_meaning_is_said_without_a_common_word() -> None:
    assert judge([score(similarity=0.6)], BALANCED).passed == (0,)


def test_a_distant_meaning_is_not_said() -> None:
    verdict = judge([score(similarity=0.05)], BALANCED)
    assert verdict.passed == ()
    assert verdict.silent_because is not None
    assert "meaning 0.05" in verdict.silent_because
    assert "needed" in verdict.silent_because


def test_what_is_too_far_off_is_said_to_be_so_and_not_to_be_surer_than_needed() -> None:
    far = replace(score(similarity=0.1, coverage=0.45, asked=8), answered=0.35, question=True)
    assert confidence(far) > 0.9
    assert not passes(far, BALANCED)
    told = "far off, neither near in meaning nor with half of the words"
    assert sureness(far, BALANCED) == told
    assert str(judge([far], BALANCED).silent_because).endswith(f"45% of the query; {told}")
    assert sureness(replace(far, answered=0.4), BALANCED).endswith("% sure, needed 75%")
    assert sureness(replace(far, asked=0.0), BALANCED) == "the prompt has no word that asks for anything"


def test_by_words_alone_several_rare_words_are_said_and_one_of_many_is_not() -> None:
    assert passes(score(coverage=0.6, rarity=1.6), BALANCED)
    assert not passes(score(coverage=0.1, rarity=0.8, asked=10), BALANCED)


def test_by_words_alone_a_long_prompt_needs_more_than_a_few_words_by_chance() -> None:
    assert confidence(score(coverage=0.1, rarity=4.0, asked=60)) == 0.0


def test_small_talk_is_never_answered_unasked() -> None:
    verdict = judge([score(similarity=0.9, coverage=1.0, rarity=0.0, asked=0.0)], UNASKED[Relevance.KEEN])
    assert verdict.passed == ()
    assert verdict.silent_because == "the prompt has no word that asks for anything"


@pytest.mark.parametrize("similarity", [None, 0.3])
def test_keen_says_all_that_balanced_says_and_balanced_all_that_quiet_says(similarity: float | None) -> None:
    scores = [score(similarity=similarity, coverage=share / 20, rarity=share / 8) for share in range(21)]
    quiet, balanced, keen = (
        {place for place, one in enumerate(scores) if passes(one, UNASKED[setting])}
        for setting in (Relevance.QUIET, Relevance.BALANCED, Relevance.KEEN)
    )
    assert quiet < balanced <= keen


def test_confidence_grows_with_the_evidence() -> None:
    by_meaning = [confidence(score(similarity=step / 10, coverage=0.3)) for step in range(11)]
    by_words = [confidence(score(coverage=0.5, rarity=step / 4)) for step in range(11)]
    assert by_meaning == sorted(by_meaning)
    assert by_words == sorted(by_words)
    assert all(0.0 <= sure <= 1.0 for sure in [*by_meaning, *by_words])


def test_a_pasted_file_needs_a_closer_match_than_a_question() -> None:
    question = score(similarity=0.4, coverage=0.2, asked=8)
    pasted = score(similarity=0.4, coverage=0.2, asked=300)
    assert passes(question, BALANCED)
    assert not passes(pasted, BALANCED)


def test_a_much_weaker_memory_is_not_said_beside_the_best() -> None:
    best = score(similarity=0.8, total=0.8)
    near = score(similarity=0.7, total=0.7)
    far = score(similarity=0.45, total=0.45)
    assert judge([best, near, far], BALANCED).passed == (0, 1)


def test_a_memory_without_a_vector_is_judged_by_its_words_beside_others_with_one() -> None:
    fresh = score(coverage=1.0, rarity=2.0, total=0.8)
    assert judge([fresh, score(similarity=0.1, total=0.1)], BALANCED).passed == (0,)


def test_on_request_one_common_word_or_a_fair_meaning_is_enough() -> None:
    assert passes(score(coverage=0.2, rarity=0.1, asked=0.0), REQUESTED)
    assert passes(score(similarity=0.3), REQUESTED)
    assert not passes(score(similarity=0.1), REQUESTED)


def test_on_request_everything_fair_is_returned_however_much_better_the_first_is() -> None:
    scores = [score(similarity=0.9, total=0.9), score(similarity=0.3, total=0.3)]
    assert judge(scores, REQUESTED).passed == (0, 1)


def test_silence_on_request_says_what_was_needed() -> None:
    by_words = judge([score(coverage=0.05)], REQUESTED).silent_because
    by_meaning = judge([score(similarity=0.1)], Fair(similarity=0.25, coverage=0.1)).silent_because
    assert by_words == "the best match is too weak: its words cover 5% of the query (needed 10% of the words)"
    assert by_meaning is not None
    assert "needed meaning 0.25, or 10% of the words" in by_meaning
