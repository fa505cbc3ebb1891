"""What the words of a query say about a memory, in stores of any size."""

from __future__ import annotations

import pytest

from backstory.domain.text import QueryTerm, analyse, analyse_query
from backstory.domain.word_match import (
    NO_WORDS,
    WordMatch,
    WordStatistics,
    agreement,
    match_words,
    weigh_query,
    weigh_words,
)

STATISTICS = WordStatistics(documents=100, mean_length=10.0, frequency={"rare": 1, "common": 60})
RARE, COMMON, UNKNOWN = (QueryTerm(token=token, weight=1.0) for token in ("rare", "common", "unknown"))


def words_of(query: str, text: str, *others: str) -> WordMatch:
    held = [analyse(one) for one in (text, *others)]
    frequency = {token: sum(token in tokens for tokens in held) for tokens in held for token in tokens}
    known = WordStatistics(documents=len(held), mean_length=sum(map(len, held)) / len(held), frequency=frequency)
    counts = {token: held[0].count(token) for token in held[0]}
    return match_words(weigh_query(analyse_query(query), known), held=counts, length=len(held[0]))


def match(held: dict[str, int], *terms: QueryTerm, length: int = 10) -> WordMatch:
    return match_words(weigh_query(terms, STATISTICS), held=held, length=length)


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


def test_rare_words_tell_more_than_common_ones() -> None:
    assert STATISTICS.idf("common") < STATISTICS.idf("rare") < STATISTICS.idf("unknown")
    rare, common = match({"rare": 1}, RARE, COMMON), match({"common": 1}, RARE, COMMON)
    assert rare.coverage > common.coverage
    assert rare.lexical > common.lexical


def test_a_word_that_no_memory_holds_lowers_the_coverage() -> None:
    assert match({"rare": 1}, RARE).coverage == pytest.approx(1.0)
    assert match({"rare": 1}, RARE, UNKNOWN).coverage < 0.6


def test_no_words_match_nothing() -> None:
    assert match({}) == NO_WORDS
    assert (match({}, RARE).coverage, match({}, RARE).lexical, match({}, RARE).matched) == (0.0, 0.0, ())


def test_more_often_and_shorter_is_better_but_bounded() -> None:
    once, often = match({"rare": 1}, RARE), match({"rare": 50}, RARE)
    assert once.lexical < often.lexical <= 1.0
    assert match({"rare": 1}, RARE, length=100).lexical < once.lexical


def test_rare_words_of_a_query_weigh_more_and_stop_words_little() -> None:
    known = WordStatistics(documents=100, mean_length=5, frequency={"heron": 1, "build": 90})
    heron, build, the, dash = weigh_words(["heron", "build", "the", "-"], known)
    assert heron > build > 0
    assert heron > the == dash > 0


def test_agreement_is_the_weighted_mean_of_the_words() -> None:
    assert agreement([1.0, 0.0], [3.0, 1.0]) == pytest.approx(0.75)
    assert agreement([], []) == 0.0
