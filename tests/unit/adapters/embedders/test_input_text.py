"""What is done to a text before it reaches a model."""

from __future__ import annotations

import pytest

from backstory.adapters.embedders.input_text import clean


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("plain", "plain"),
        ("a\x00b", "ab"),
        ("half \ud83d emoji", "half  emoji"),
        ("\udc00\udfff tail", "tail"),
        ("whole 🚀 emoji", "whole 🚀 emoji"),
        ("  around\n", "around"),
        ("Cafe\u0301", "Cafe\u0301"),
    ],
)
def test_nul_and_lone_surrogates_are_removed_and_the_rest_stays(raw: str, cleaned: str) -> None:
    assert clean(raw, max_chars=100) == cleaned


@pytest.mark.parametrize("raw", ["", " \t\n", "\x00\x00", "\ud800", "\x00 \udfff\n"])
def test_a_text_of_which_nothing_remains_is_none(raw: str) -> None:
    assert clean(raw, max_chars=100) is None


def test_a_long_text_is_cut_after_cleaning() -> None:
    assert clean("\x00" * 50 + "abcdef", max_chars=4) == "abcd"
    assert clean("abc   def", max_chars=5) == "abc"
