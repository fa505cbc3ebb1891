"""Likeness of two texts by their letters."""

from __future__ import annotations

import pytest

from backstory.domain.similarity import jaccard, trigrams


def test_trigrams_mark_the_edges_and_ignore_case_and_spacing() -> None:
    assert trigrams("Ab") == frozenset({" ab", "ab "})
    assert trigrams("one  two") == trigrams("ONE\ttwo")


def test_the_shortest_text_has_a_trigram_and_a_blank_one_has_none() -> None:
    assert trigrams("x") == frozenset({" x "})
    assert trigrams(" \n") == frozenset()


def test_jaccard_is_one_for_equal_sets_and_zero_for_disjoint_or_empty_ones() -> None:
    both = trigrams("use tabs")
    assert jaccard(both, both) == 1.0
    assert jaccard(both, trigrams("zzz")) == 0.0
    assert jaccard(frozenset(), frozenset()) == 0.0


def test_jaccard_is_the_shared_part_of_the_union() -> None:
    assert jaccard(frozenset({"a", "b", "c"}), frozenset({"b", "c", "d"})) == pytest.approx(0.5)
