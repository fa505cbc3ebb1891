from __future__ import annotations

import re
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.domain.admission import TextLimits, admit, admit_evidence, admit_label, clean_text
from backstory.domain.echo import strip_injected
from backstory.domain.redaction import is_fully_private, redact_secrets, strip_private
from backstory.domain.truncation import truncate_bytes, truncate_chars
from backstory.errors import InputError

# A busy machine must not fail a rule; what the rules cost is tested elsewhere.
UNTIMED = settings(deadline=None)
MORE = settings(deadline=None, max_examples=400)
MIXED = "q7Rk2Vx9Lm4Tz8Bn"
TOKENS = (
    "gh" + "p_" + MIXED * 2 + "abcd",
    "AK" + "IA" + "QRSTUVWX23456789",
    "sk" + "-ant-" + MIXED * 2,
    "xo" + "xb-1-" + MIXED,
)
MARK = "sentinel9heron"

# Any text, and text made of the pieces that the rules look for, which random text would never hit upon.
PIECES = st.sampled_from(
    [
        *(
            "<private>",
            "</private>",
            "<PRIVATE x>",
            "<pri",
            "vate>",
            "`",
            "<memory>",
            "</memory>",
            "<backstory-memory>",
        ),
        *("password", "token", "key", "api_key", "secret", "密码是", "Authorization: Bearer ", "cookie: sid=", "://u:"),
        *(
            "=",
            ": ",
            " is ",
            '"',
            "'",
            "\\",
            "\n",
            "a",
            " ",
            "-",
            "_",
            "&",
            ";",
            "@h",
            ".",
            "eyJ",
            MIXED,
            "walnut9brook!",
        ),
        *("[secret:key]", "[private]", "-----BEGIN " + "PRIVATE KEY-----", "-----END " + "PRIVATE KEY-----", *TOKENS),
        *("\x1b[", "m", "\x00", "\ud83d", "\ude80", "\u200d", "e\u0301", "🇩🇪"),
    ]
)
TEXTS = st.one_of(
    st.text(st.characters(codec=None), max_size=200),
    st.lists(PIECES, max_size=30).map("".join),
)
BORDERS = st.sampled_from(["", " ", "\n", '"', "(", ",", "：", "é", "。", "=", ": "])


@UNTIMED
@given(TEXTS)
def test_cleaned_text_can_go_anywhere_and_stays_clean(text: str) -> None:
    cleaned = clean_text(text)
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    assert re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", cleaned) is None
    assert clean_text(cleaned) == cleaned


@MORE
@given(TEXTS)
def test_masking_secrets_twice_is_masking_them_once(text: str) -> None:
    once = redact_secrets(text)
    twice = redact_secrets(once.text)
    assert (twice.text, twice.secrets) == (once.text, ())


@UNTIMED
@given(TEXTS, BORDERS, st.sampled_from(TOKENS), BORDERS, TEXTS)
def test_a_token_is_masked_whatever_stands_around_it(
    before: str, left: str, token: str, right: str, after: str
) -> None:
    before, after = before.replace(token, ""), after.replace(token, "")
    text = before + (left or " ") + token + (right or " ") + after
    assert token not in redact_secrets(text).text


@UNTIMED
@given(TEXTS, TEXTS, TEXTS)
def test_nothing_between_private_tags_is_left(before: str, inside: str, after: str) -> None:
    before, after = before.replace("`", ""), after.replace("`", "")
    assert MARK not in admit_evidence(f"{before} <private>{MARK}{inside}</private>{after}")


@MORE
@given(TEXTS)
def test_stripping_private_passages_twice_is_stripping_them_once(text: str) -> None:
    stripped = strip_private(text)
    assert strip_private(stripped) == stripped
    assert is_fully_private(stripped) is is_fully_private(text)


@UNTIMED
@given(TEXTS, st.integers(1, 40), st.integers(1, 120))
def test_admitted_content_keeps_its_limits_and_is_admitted_again_unchanged(text: str, least: int, most: int) -> None:
    limits = TextLimits(min_chars=least, max_chars=most)
    try:
        admitted = admit(text, limits=limits)
    except InputError:
        return
    assert least <= len(admitted.text)
    assert len(admitted.text) <= most
    again = admit(admitted.text, limits=limits)
    assert (again.text, again.secrets, again.private_removed) == (admitted.text, (), False)


@UNTIMED
@given(TEXTS)
def test_evidence_is_never_refused_and_settles_at_once(text: str) -> None:
    once = admit_evidence(text)
    assert admit_evidence(once) == once


@UNTIMED
@given(TEXTS, st.integers(1, 30))
def test_a_label_is_one_trimmed_line_or_refused(text: str, most: int) -> None:
    try:
        label = admit_label(text, field="area", max_chars=most)
    except InputError:
        return
    assert 1 <= len(label) <= most
    assert label.splitlines() == [label]
    assert label == unicodedata.normalize("NFC", label.strip())


@UNTIMED
@given(TEXTS, st.integers(-1, 60))
def test_a_cut_is_a_prefix_that_fits_and_cutting_again_changes_nothing(text: str, limit: int) -> None:
    cut = truncate_chars(text, limit)
    assert text.startswith(cut)
    assert len(cut) <= max(limit, 0)
    assert truncate_chars(cut, limit) == cut
    if cut != text:
        rest = text[len(cut)]
        assert not (cut and unicodedata.combining(rest))
        assert not cut.endswith("\u200d")
    shorter = truncate_bytes(text, limit)
    assert text.startswith(shorter)
    assert len(shorter.encode("utf-8", "surrogatepass")) <= max(limit, 0)


@UNTIMED
@given(TEXTS)
def test_no_block_of_ours_and_no_closed_one_of_others_is_left(text: str) -> None:
    stripped = strip_injected(text)
    assert re.search("(?<!`)<backstory-memory>", stripped) is None
    assert re.search("(?<!`)<memory>(?s:.*)</memory>", stripped) is None
