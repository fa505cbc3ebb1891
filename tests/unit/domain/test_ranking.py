"""How words and meaning are joined, in stores of any size; the rest of scoring is in test_scoring.py."""

from __future__ import annotations

from itertools import product

import pytest

from backstory.domain.ranking import (
    NO_WORDS,
    Meaning,
    RankingPolicy,
    WordMatch,
    WordStatistics,
    agreement,
    match,
    match_words,
    weigh_query,
    weigh_words,
)
from backstory.domain.text import analyse, analyse_query

POLICY = RankingPolicy()


def words_of(query: str, text: str, *others: str) -> WordMatch:
    held = [analyse(one) for one in (text, *others)]
    frequency = {token: sum(token in tokens for tokens in held) for tokens in held for token in tokens}
    known = WordStatistics(documents=len(held), mean_length=sum(map(len, held)) / len(held), frequency=frequency)
    counts = {token: held[0].count(token) for token in held[0]}
    return match_words(weigh_query(analyse_query(query), known), held=counts, length=len(held[0]))


def covering(share: float) -> WordMatch:
    return WordMatch(lexical=share / 2, coverage=share, matched=("word",))


def test_in_a_store_of_one_memory_its_words_are_not_common() -> None:
    known = WordStatistics(documents=1, mean_length=5, frequency={"heron": 1})
    assert known.rarest / 2 < known.idf("heron") < known.rarest


def test_a_word_that_every_memory_holds_still_tells_a_little() -> None:
    known = WordStatistics(documents=500, mean_length=5, frequency={"build": 500})
    assert 0 < known.idf("build") < known.rarest / 5


def test_the_only_memory_covers_a_question_in_its_words_and_less_of_one_that_asks_more() -> None:
    remembered = "the staging cluster is called heron-2"
    assert words_of("what is the staging cluster called?", remembered).coverage == pytest.approx(1.0)
    assert words_of("kubectl context for the staging cluster", remembered).coverage < 0.7


def test_small_talk_asks_nothing_and_tells_nothing() -> None:
    found = words_of("ok, continue", "ok means continue")
    assert found.coverage == pytest.approx(1.0)
    assert (found.asked, found.rarity) == (0.0, 0.0)


def test_small_talk_beside_a_real_word_counts_as_length_alone() -> None:
    found = words_of("ok, continue with heron", "ok means continue")
    assert found.asked == 3.0
    assert found.rarity == 0.0


def test_a_memory_without_the_words_still_knows_how_much_was_asked() -> None:
    found = words_of("staging cluster", "unrelated")
    assert (found.coverage, found.matched, found.asked) == (0.0, (), 2.0)


def test_every_score_lies_between_0_and_1() -> None:
    for similarity, share in product((-0.2, 0.0, 0.5, 1.0, 1.01), (0.0, 0.5, 1.0)):
        evidence = match(covering(share), Meaning(similarity=similarity, agreement=share, answered=share), POLICY)
        assert 0.0 < POLICY.as_score(evidence) < 1.0


def test_perfect_matches_do_not_meet_at_a_ceiling() -> None:
    evidence = [match(covering(1.0), Meaning(similarity=near), POLICY) for near in (0.9, 0.8, 0.7)]
    assert evidence[0] > evidence[1] > evidence[2]


def test_a_close_meaning_beats_half_of_the_words() -> None:
    assert match(NO_WORDS, Meaning(similarity=0.55), POLICY) > match(covering(0.5), Meaning(similarity=0.45), POLICY)


def test_words_that_agree_one_by_one_beat_a_somewhat_closer_whole() -> None:
    exact = match(covering(1.0), Meaning(similarity=0.4, agreement=0.95), POLICY)
    vague = match(NO_WORDS, Meaning(similarity=0.55, agreement=0.5), POLICY)
    assert exact > vague


def test_without_vectors_of_words_the_usual_agreement_is_taken() -> None:
    assert (
        match(NO_WORDS, Meaning(similarity=0.5, agreement=0.3), POLICY)
        < match(NO_WORDS, Meaning(similarity=0.5), POLICY)
        < match(NO_WORDS, Meaning(similarity=0.5, agreement=0.8), POLICY)
    )


def test_rare_words_of_a_query_weigh_more_and_stop_words_little() -> None:
    known = WordStatistics(documents=100, mean_length=5, frequency={"heron": 1, "build": 90})
    heron, build, the, dash = weigh_words(["heron", "build", "the", "-"], known)
    assert heron > build > 0
    assert heron > the == dash > 0


def test_agreement_is_the_weighted_mean_of_the_words() -> None:
    assert agreement([1.0, 0.0], [3.0, 1.0]) == pytest.approx(0.75)
    assert agreement([], []) == 0.0
