"""What holds for the analyser, likeness and dates whatever text comes in."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from backstory.domain.dates import find_dates, parse_range
from backstory.domain.similarity import jaccard, trigrams
from backstory.domain.statement_form import statement_form
from backstory.domain.text import MAX_TOKEN_CHARS, analyse, analyse_query, normalise
from backstory.errors import InputError

NOW = datetime(2025, 9, 10, 14, 20, tzinfo=UTC)
any_text = st.text(st.characters(), max_size=200)  # lone surrogates and control characters included
names = st.text("aBzÉß09_-./:\\@#+' ,用か배กرж🚀\u0301\u200d\x00", max_size=60)
texts = any_text | names
DATE_WORDS = """
    last past this in since before between and may march 2 31 2025 2025-02-29 weeks ago a few monday q3 of the - 0 day
    before yesterday
"""
dates = st.lists(st.sampled_from(DATE_WORDS.split()), max_size=8).map(" ".join)


@given(texts)
def test_tokens_are_short_folded_and_free_of_blanks_and_controls(text: str) -> None:
    for token in analyse(text):
        assert 0 < len(token) <= MAX_TOKEN_CHARS
        assert token == unicodedata.normalize("NFC", token) == token.casefold()
        assert not any(char.isspace() or unicodedata.category(char) in ("Cc", "Cs") for char in token)


@given(texts)
def test_every_query_term_is_a_token_of_the_same_text_and_comes_once(text: str) -> None:
    terms = analyse_query(text)
    tokens = [term.token for term in terms]
    assert set(tokens) <= set(analyse(text))
    assert len(tokens) == len(set(tokens))
    assert all(0.0 < term.weight <= 1.0 for term in terms)


@given(texts)
def test_analysing_twice_gives_the_same(text: str) -> None:
    assert analyse(text) == analyse(text)


@given(texts)
def test_a_text_is_found_whatever_its_unicode_form(text: str) -> None:
    assert analyse(unicodedata.normalize("NFD", text)) == analyse(unicodedata.normalize("NFC", text))


@given(texts, texts)
def test_texts_joined_by_a_blank_line_have_the_tokens_of_both(a: str, b: str) -> None:
    assert analyse(a + "\n\n" + b) == analyse(a) + analyse(b)


@given(texts)
def test_normalising_is_idempotent(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(texts)
def test_the_form_of_a_statement_is_idempotent_and_finer_than_what_searches_compare(text: str) -> None:
    form = statement_form(text)
    assert statement_form(form) == form
    assert normalise(form) == normalise(text)


@given(texts, texts)
def test_likeness_is_symmetric_and_one_for_the_same_text(a: str, b: str) -> None:
    likeness = jaccard(trigrams(a), trigrams(b))
    assert 0.0 <= likeness <= 1.0
    assert likeness == jaccard(trigrams(b), trigrams(a))
    if normalise(a) == normalise(b) != "":
        assert likeness == 1.0


@given(texts | dates)
def test_finding_dates_never_raises_and_gives_instants_in_utc(text: str) -> None:
    found = find_dates(text, now=NOW, zone=UTC)
    if found is not None:
        assert all(edge.tzinfo is UTC for edge in (found.since, found.until) if edge is not None)


@given(any_text | dates)
def test_a_filter_is_understood_or_named_as_wrong(value: str) -> None:
    outcome = None
    try:
        assert parse_range(since=value, until=None, now=NOW, zone=UTC).until is None
    except InputError as error:
        outcome = error
    assert outcome is None or outcome.field == "since"
