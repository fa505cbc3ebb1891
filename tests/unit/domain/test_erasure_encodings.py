"""Texts in other signs: what they look like there, and that they go."""

from __future__ import annotations

import base64
import time
from urllib.parse import quote, quote_plus

import pytest

from backstory.adapters.stores.byte_search import ByteSearch
from backstory.domain.erasure import ERASED, asked_eraser_of, eraser_of
from backstory.domain.erasure_encodings import FORMS_OF_ANY, base64_forms, folded_forms, forms_of

TEXT = "Café key? it's 50% + more/less, under the §-mat~"

PERCENT = (
    quote(TEXT),
    quote(TEXT, safe=""),
    quote_plus(TEXT),
    quote(TEXT, safe="!'()*"),
    quote(TEXT, safe=";/?:@&=+$,#!'()*"),
    quote(TEXT).lower(),
    quote(TEXT.upper()),
    quote(TEXT.replace("é", "e\u0301")),
    quote(quote(TEXT)),
    quote(quote_plus(TEXT)),
    quote(TEXT).replace("%20", "%0A%20"),
)
HEX = (
    TEXT.encode().hex(),
    TEXT.encode().hex().upper(),
    TEXT.lower().encode().hex(),
    TEXT.upper().encode().hex(),
    TEXT.replace(" ", "\n ").encode().hex(),
)


@pytest.mark.parametrize("written", [*PERCENT, *HEX])
def test_a_text_in_other_signs_is_taken_out(written: str) -> None:
    assert eraser_of([TEXT])(f"a={written}&b") == f"a={ERASED}&b"
    assert asked_eraser_of(TEXT)(f"a={written}&b") == f"a={ERASED}&b"


@pytest.mark.parametrize(
    "text", ["50 % of users + 3 % of guests", "the  % sign\t% + %\n\nin %20 rows", "% of all users % %"]
)
def test_percent_signs_that_stand_alone_go_with_their_text(text: str) -> None:
    for encode in (quote, quote_plus):
        for written in (encode(text), encode(encode(text))):
            kept = eraser_of([text])(f"a={written}&b")
            assert kept.startswith(f"a={ERASED}")
            assert "users" not in kept
            assert "sign" not in kept


@pytest.mark.parametrize("written", [*PERCENT[:4], *HEX[:4], quote(quote(TEXT, safe=""))])
def test_a_text_in_other_signs_is_found_in_bytes(written: str) -> None:
    search = ByteSearch([TEXT])
    assert search.count_in(f"a={written}&b".encode()) > 0
    assert search.count_in(b"a=1&b") == 0


@pytest.mark.parametrize("before", ["", "x", "xy", "xyz"])
def test_base64_of_either_alphabet_goes_wherever_it_begins(before: str) -> None:
    text = "who?>?>~~~ knows §§§"
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(f"{before}{text} and so on".encode())
        assert any(form in encoded for form in base64_forms(text))
        assert ERASED in eraser_of([text])(encoded.decode())
    assert {b"-", b"_", b"+", b"/"} <= {bytes((sign,)) for form in base64_forms(text) for sign in form}


def test_of_two_texts_in_other_signs_the_longer_one_goes_as_a_whole() -> None:
    assert eraser_of(["quinces9", "the quinces9 door"])("a=the%20quinces9%20door") == f"a={ERASED}"


def test_a_text_without_any_of_it_is_the_very_same() -> None:
    text = "an address: https://example.org/?q=plums%20and%20pears"
    assert eraser_of([TEXT])(text) is text


@pytest.mark.parametrize("text", ["quinces", "ab cd"])
def test_a_short_text_is_not_looked_for_in_other_signs(text: str) -> None:
    for written in (text.encode().hex(), base64.b64encode(text.encode()).decode(), quote(text).replace("q", "%71")):
        assert asked_eraser_of(text)(written) == written
    assert base64_forms(text) == folded_forms(text) == []


def test_the_forms_are_told_without_a_word_of_the_text() -> None:
    assert forms_of(["plum"]) == FORMS_OF_ANY
    told = forms_of([TEXT])
    assert [form for form in told if form.startswith(("base64", "hex", "percent"))] == list(told[2:])
    assert any("8 bytes or more: hex" in form for form in forms_of(["plum", TEXT]))
    assert forms_of(["  "]) == FORMS_OF_ANY


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a +b %20c quinces", quote("a +b %20c quinces")),
        ("a +b %20c quinces", quote_plus("a +b %20c quinces")),
        ("100%25 of quinces", quote("100%25 of quinces")),
    ],
)
def test_a_word_that_looks_like_a_blank_is_one_of_the_text(text: str, written: str) -> None:
    assert eraser_of([text])(written) == ERASED


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("\u0130" * 40 + "x", "i%cc%87" * 500),
        ("\u0390" * 40 + "x", "%ce%b9%cc%88%cc%81" * 500),
        ("%" * 40 + "x", "%25" * 900),
        ("+ " * 40 + "x", "+%20" * 900),
        ("\u0130" * 40 + "x", "69cc87" * 500),
    ],
)
def test_what_differs_at_its_end_is_told_at_once(text: str, other: str) -> None:
    started = time.process_time()
    assert eraser_of([text])(other) == other
    assert time.process_time() - started < 5
