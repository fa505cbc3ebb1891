"""Which words of a query are searched for, so that a search takes no longer in a larger store."""

from __future__ import annotations

from backstory.ports.index import RANKED_ROWS, affordable, is_common


def test_in_a_small_store_every_known_word_is_searched_for() -> None:
    assert affordable({"a": 999, "b": 1, "c": 0}, documents=999) == (["a", "b"], frozenset())


def test_common_words_are_left_out_and_the_rarest_stays() -> None:
    assert affordable({"a": 201, "b": 200, "c": 900}, documents=1000) == (["b"], frozenset("ac"))
    assert affordable({"a": 300, "b": 900}, documents=1000) == (["a"], frozenset("b"))
    assert is_common(300, documents=1000)


def test_words_are_searched_for_from_the_rarest_until_their_rows_are_too_many() -> None:
    half = RANKED_ROWS // 2
    kept, dropped = affordable({"a": half + 1, "b": half, "c": 7}, documents=20 * RANKED_ROWS)
    assert (kept, dropped) == (["c", "b"], frozenset("a"))


def test_in_a_large_store_a_small_share_is_common_too() -> None:
    assert is_common(RANKED_ROWS + 1, documents=100 * RANKED_ROWS)
    assert not is_common(RANKED_ROWS, documents=100 * RANKED_ROWS)
