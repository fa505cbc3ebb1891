"""Which writings of a text count as it, and in which bytes it might hide."""

from __future__ import annotations

import base64
import html
import json

import pytest

from backstory.domain.erasure import ERASED, asked_eraser_of, eraser_of, raw_forms, size
from backstory.domain.erasure_encodings import base64_forms

TEXT = 'The café key is "under the §-mat"\nbehind C:\\quince & co'


@pytest.mark.parametrize(
    "written",
    [
        TEXT,
        TEXT.upper(),
        TEXT.replace(" ", "  \t"),
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("é", "e\u0301"),
        json.dumps(TEXT)[1:-1],
        json.dumps(TEXT, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(TEXT))[1:-1],
        html.escape(TEXT),
        html.escape(TEXT, quote=False),
    ],
)
def test_every_way_to_write_a_text_is_the_text(written: str) -> None:
    assert eraser_of([TEXT])(f"before {written} after").replace('"', "").replace("\\", "") == f"before {ERASED} after"


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("pass the class message " * 12 + "here", "pass the class message " * 12 + "there"),
        ("s" * 60 + "t", "s" * 2000),
        ("\u0130" * 30 + "x", "i\u0307" * 500),
        ("\u0390" * 30 + "x", "\u03b9\u0308\u0301" * 500),
        (r"\n " * 20 + "x", r"\n " * 100),
        (r"\"" * 20 + "x", (r"\\\\" * 2 + '"') * 100),
    ],
    ids=["ss", "only s", "dotted i", "two accents", "words like blanks", "escaped quotes"],
)
def test_a_text_that_differs_at_its_end_is_told_at_once(text: str, other: str) -> None:
    assert eraser_of([text])(other) == other  # where two ways to write a sign are one, this never ends


@pytest.mark.parametrize("text", ["....", "!!!!", " ?!. ", ""])
def test_a_text_of_nothing_but_stops_is_taken_out_of_no_other(text: str) -> None:
    assert size(text) == 0
    assert eraser_of([text * 3])("Plums. Pears!") == "Plums. Pears!"
    with pytest.raises(ValueError, match="nothing in the text"):
        asked_eraser_of(text)


def test_the_size_is_what_has_to_be_found() -> None:
    assert [size(text) for text in ("a...", "a     b", "plum", "plum. ")] == [1, 3, 4, 4]
    assert eraser_of(["a       b"])("plums a b pears") == "plums a b pears"


def test_what_only_resembles_it_stays() -> None:
    other = TEXT.replace("key", "keys")
    assert eraser_of([TEXT])(other) == other


def test_its_base64_goes_wherever_it_begins() -> None:
    for before in ("", "x", "xy", "xyz"):
        encoded = base64.b64encode(f"{before}{TEXT} and more".encode()).decode()
        kept = eraser_of([TEXT])(encoded)
        assert ERASED in kept
        assert len(kept) < 30


def test_a_full_stop_at_the_end_may_be_missing_or_more() -> None:
    assert eraser_of(["Pears ripen in the cellar."])("pears ripen in the cellar, always") == f"{ERASED}, always"


def test_a_sharp_s_and_two_of_them_are_one() -> None:
    assert eraser_of(["die große Straße"])("DIE GROSSE STRASSE") == ERASED
    assert eraser_of(["die grosse Strasse"])("die große Straße") == ERASED


def test_a_short_text_is_only_taken_where_it_is_all() -> None:
    rewrite = eraser_of(["Use npm"])
    assert rewrite("use npm.") == ERASED
    assert rewrite("we use npm here") == "we use npm here"


def test_a_text_that_was_asked_for_goes_however_short_it_is() -> None:
    assert asked_eraser_of("Anna")("Ask anna, or Hannah") == f"Ask {ERASED}, or H{ERASED}h"


def test_of_two_texts_the_longer_one_goes_as_a_whole() -> None:
    rewrite = eraser_of(["the cellar key", "the cellar key is blue"])
    assert rewrite("so the cellar key is blue; the cellar key fits") == f"so {ERASED}; {ERASED} fits"


def test_nothing_to_erase_changes_nothing() -> None:
    assert eraser_of([])(TEXT) is TEXT
    assert eraser_of(["  "])("") == ""


def test_erasing_twice_does_no_more() -> None:
    rewrite = eraser_of([TEXT])
    once = rewrite(f"a {TEXT} b")
    assert rewrite(once) == once


def test_raw_forms_are_those_that_a_disk_may_hold() -> None:
    forms = raw_forms(TEXT)
    assert TEXT.encode() in forms
    assert TEXT.encode("utf-16-le") in forms
    assert json.dumps(TEXT)[1:-1].encode() in forms
    assert TEXT.replace("é", "e\u0301").encode() in forms
    assert raw_forms("  ") == []


@pytest.mark.parametrize("before", ["", "x", "xy", "xyz"])
def test_base64_forms_stand_in_what_anybody_encodes(before: str) -> None:
    encoded = base64.b64encode(f"{before}{TEXT}!".encode())
    assert any(form in encoded for form in base64_forms(TEXT))
    assert base64_forms("short") == []
