from __future__ import annotations

import pytest

from backstory.domain.truncation import truncate_bytes, truncate_chars

WHOLE = {
    "accent": "e\u0301\u0323",
    "variation": "❤\ufe0f",
    "skin tone": "👍🏽",
    "family": "👩\u200d👩\u200d👧\u200d👦",
    "rainbow flag": "🏳\ufe0f\u200d🌈",
    "country flag": "🇩🇪",
    "regional flag": "🏴\U000e0067\U000e0062\U000e007f",
    "keycap": "1\ufe0f\u20e3",
    "split surrogates": "\ud83d\ude80",
    "line end": "\r\n",
    "jamo": "\u1112\u1161\u11ab",
    "thai": "ก\u0e34\u0e48",
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_a_reader_sees_as_one_character_is_kept_or_left_out_whole(name: str) -> None:
    unit = WHOLE[name]
    for limit in range(len(unit)):
        assert truncate_chars("ab" + unit + "z", 2 + limit) == "ab"
    assert truncate_chars("ab" + unit + "z", 2 + len(unit)) == "ab" + unit


def test_flags_in_a_row_are_cut_between_flags() -> None:
    assert truncate_chars("🇩🇪🇫🇷🇮🇹", 5) == "🇩🇪🇫🇷"
    assert truncate_chars("x" + "🇩🇪🇫🇷🇮🇹", 4) == "x🇩🇪"


def test_short_text_and_odd_limits() -> None:
    assert truncate_chars("abc", 3) == "abc"
    assert truncate_chars("abc", 0) == ""
    assert truncate_chars("abc", -1) == ""
    assert truncate_bytes("abc", -1) == ""
    assert truncate_bytes("", 0) == ""


@pytest.mark.parametrize("text", ["aé日🚀e\u0301🇩🇪z", "日本語", "a" * 9, "👩\u200d👩\u200d👧x", "\ud83dx"])
def test_bytes_are_counted_as_utf8_and_the_cut_is_a_prefix(text: str) -> None:
    for limit in range(len(text) * 4 + 1):
        cut = truncate_bytes(text, limit)
        assert text.startswith(cut)
        assert len(cut.encode("utf-8", "surrogatepass")) <= limit
    assert truncate_bytes(text, len(text) * 4) == text


def test_a_megabyte_of_marks_or_flags_is_cut_at_once() -> None:
    assert truncate_chars("a" + "\u0301" * 1_000_000, 500_000) == ""
    assert len(truncate_chars("🇩" * 1_000_000, 999_999)) == 999_998
