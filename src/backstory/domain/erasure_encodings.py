"""Texts in other signs: base64, hex and percent-encoding, as patterns to take out and as bytes to search for.

A text as it is written, or escaped for JSON and XML, is in ``erasure.py``.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterable

MIN_ENCODED_BYTES = 8
"""Of a text in UTF-8; what is shorter could be chance in other signs."""

ENCODED_RUN = r"\S{8,}"
"""Where such a form may stand: it has no blank, and is at least as long as the text. Most of prose is none."""

FORMS_OF_ANY = ("as written, in UTF-8 and UTF-16", "escaped for JSON, also twice")
FORMS_OF_LONGER = ("base64 and base64url, at each of three places", "hex", "percent-encoded")

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_KEPT_BY_SOME = (b"", b"/", b"!'()*", b";/?:@&=+$,#!'()*")  # of a component, a path, by encodeURIComponent, encodeURI
_PERCENT = "%(?:25){0,2}"  # encoded up to three times over
_PERCENT_BLANK = rf"(?:\+|{_PERCENT}(?:20|2b|0[9ad]))"  # a plus sign, encoded once more
_HEX_BLANK = "(?:20|0[9ad])"


def is_encoded(text: str) -> bool:
    """Whether a text is long enough to be looked for in other signs."""
    return len(_data(text)) >= MIN_ENCODED_BYTES


def forms_of(texts: Iterable[str]) -> tuple[str, ...]:
    """In which forms texts are looked for, in words; nothing of a text is in them."""
    lengths = {is_encoded(text) for text in texts if text.strip()}
    if lengths == {True}:
        return (*FORMS_OF_ANY, *FORMS_OF_LONGER)
    some = f"those of {MIN_ENCODED_BYTES} bytes or more: "
    return FORMS_OF_ANY if True not in lengths else (*FORMS_OF_ANY, *(some + form for form in FORMS_OF_LONGER))


def encoded_patterns(text: str) -> list[str]:
    """Patterns, for ``re.IGNORECASE``, of a text in other signs; none for a short one. Linear to search for."""
    if not is_encoded(text):
        return []
    exact = [f"(?-i:{re.escape(form.decode('ascii'))})" for form in base64_forms(text)]
    words = text.split()
    return [*exact, _joined(map(_percent_word, words)), f"{_HEX_BLANK}++".join(map(_hex_word, words))]


def base64_forms(text: str) -> list[bytes]:
    """The part of a text's base64 that is the same whatever stands around it, for each of the three places that it may
    begin at, and in both alphabets; to be compared as it is. Empty for what is too short to be told from chance."""
    if not is_encoded(text):
        return []
    data = _data(text)
    forms: dict[bytes, None] = {}
    for before in range(3):
        first = 0 if before == 0 else 4  # the signs that what stands before takes part in
        certain = (before + len(data)) // 3 * 4
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            forms[encode(b"\0" * before + data)[first:certain]] = None
    return list(forms)


def folded_forms(text: str) -> list[bytes]:
    """A text in hex and percent-encoded, in both compositions of Unicode; to be compared in lower case. Empty for a
    short one."""
    if not is_encoded(text):
        return []
    forms: dict[bytes, None] = {}
    for composed in (text.strip(), *(unicodedata.normalize(form, text.strip()) for form in ("NFC", "NFD"))):
        for cased in (composed, composed.lower(), composed.upper()):
            forms[_data(cased).hex().encode("ascii")] = None
        for kept in _KEPT_BY_SOME:
            once = _percent(_data(composed), _UNRESERVED | frozenset(kept))
            forms[once] = forms[once.replace(b"%20", b"+")] = forms[once.replace(b"%", b"%25")] = None
    return list(forms)


def _data(text: str) -> bytes:
    return text.strip().encode("utf-8", "surrogatepass")


def _percent(data: bytes, kept: frozenset[int]) -> bytes:
    return b"".join(bytes((byte,)) if byte in kept else b"%%%02X" % byte for byte in data)


def _joined(words: Iterable[str]) -> str:
    """Words with blanks between them. One that may begin like a blank takes what comes first, and keeps it."""
    first, *others = words
    joined = first
    for place, word in enumerate(others, start=1):
        if word.startswith((r"(?:\+", "(?:%")):  # a lone percent sign is also the beginning of every other blank
            behind = f"(?={_PERCENT_BLANK})" if place < len(others) else ""
            joined += f"(?>{_PERCENT_BLANK}+?{word}{behind})"
        else:
            joined += f"{_PERCENT_BLANK}++{word}"
    return joined


def _percent_word(word: str) -> str:
    return "".join(map(_percent_sign, word))


def _percent_sign(char: str) -> str:
    """A letter or digit of ASCII as it is, any other sign as it is or as its bytes in either composition."""
    if char.isascii() and char.isalnum():
        return char
    composed = dict.fromkeys(
        "".join(map(_percent_byte, unicodedata.normalize(form, cased).encode("utf-8", "surrogatepass")))
        for form in ("NFC", "NFD")
        for cased in (char, char.lower(), char.upper())
    )  # no two of them match the same: a search that fails at its end would try all combinations
    return f"(?:{'|'.join((re.escape(char), *composed))})"


def _percent_byte(byte: int) -> str:
    is_plain = byte < 0x80 and chr(byte).isalnum()
    return chr(byte).lower() if is_plain else f"{_PERCENT}{byte:02x}"


def _hex_word(word: str) -> str:
    return "".join(map(_hex_sign, word))


def _hex_sign(char: str) -> str:
    if char.isascii() and char.isalpha():
        high, low = divmod(ord(char.lower()), 16)
        return f"[{high - 2}{high}]{low:x}"  # a capital stands two rows of sixteen before its small letter
    ways = dict.fromkeys(
        unicodedata.normalize(form, cased).encode("utf-8", "surrogatepass").hex()
        for form in ("NFC", "NFD")
        for cased in (char, char.lower(), char.upper())
    )
    return next(iter(ways)) if len(ways) == 1 else f"(?:{'|'.join(ways)})"
