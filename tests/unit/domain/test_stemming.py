"""Stems: inflections of a word meet, different words do not."""

from __future__ import annotations

import pytest

from backstory.domain.stemming import stem


@pytest.mark.parametrize(
    "family",
    [
        "deploy deploys deployed deploying",
        "migrate migrates migrated migrating migration migrations",
        "policy policies",
        "stop stops stopped stopping",
        "hope hopes hoped hoping",
        "add adds added adding",
        "configure configured configuring",
        "agree agreed agreeing",
        "write writes wrote written writing",
        "choose chooses chose chosen choosing",
        "build builds built building",
        "break breaks broke broken breaking",
        "keep keeps kept keeping",
        "index indexes indices indexed indexing",
        "matrix matrices",
        "child children",
        "mouse mice",
        "fly flies flew flown flying",
        "freeze froze frozen freezing",
        "analysis analyses",
        "quick quickly",
        "useful usefulness",
        "possible possibly",
        "lie lying",
    ],
)
def test_a_family_of_words_shares_a_stem(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("universe", "university"),
        ("general", "generate"),
        ("organ", "organization"),
        ("hop", "hope"),
        ("news", "new"),
        ("only", "on"),
        ("evening", "even"),
        ("proceed", "process"),
        ("sing", "single"),
        ("user", "use"),
        ("red", "reserved"),
    ],
)
def test_different_words_stay_apart(a: str, b: str) -> None:
    assert stem(a) != stem(b)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("caresses", "caress"), ("ponies", "poni"), ("ties", "tie"), ("gas", "gas"), ("gaps", "gap"),
        ("luxuriated", "luxuri"), ("hopped", "hop"), ("sized", "size"), ("cry", "cri"), ("by", "by"), ("say", "say"),
        ("rational", "ration"), ("vietnamization", "vietnam"), ("triplicate", "triplic"), ("formative", "format"),
        ("replacement", "replac"), ("adoption", "adopt"), ("controlling", "control"), ("rate", "rate"),
        ("yielded", "yield"), ("enjoyment", "enjoy"), ("apology", "apolog"), ("geologist", "geolog"),
    ],
)  # fmt: skip
def test_english_follows_the_porter2_rules(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize("family", ["миграция миграции миграцию миграциями", "сервер сервера серверу серверов"])
def test_cyrillic_cases_share_a_stem(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


def test_the_arabic_article_is_left_out() -> None:
    assert stem("الخادم") == stem("خادم")


@pytest.mark.parametrize("word", ["ος", "שלום", "हिंदी", "js", "a"])
def test_words_without_rules_come_back_as_they_are(word: str) -> None:
    assert stem(word) == word
