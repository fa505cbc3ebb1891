"""How words and meaning are joined; the rest of scoring is in test_scoring.py."""

from __future__ import annotations

from itertools import product

from backstory.domain.ranking import Meaning, RankingPolicy, match
from backstory.domain.word_match import NO_WORDS, WordMatch

POLICY = RankingPolicy()


def covering(share: float) -> WordMatch:
    return WordMatch(lexical=share / 2, coverage=share, matched=("word",))


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
