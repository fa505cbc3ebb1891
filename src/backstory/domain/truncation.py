"""Cut text so that no character a reader sees is torn apart. Where to cut, and what to say about it, is elsewhere."""

from __future__ import annotations

import unicodedata

_ZWJ = "\u200d"
_COMBINING = frozenset(("Mn", "Mc", "Me"))


def truncate_chars(text: str, limit: int) -> str:
    """The longest prefix of at most ``limit`` Python characters that ends between two visible characters.

    Combining marks, variation selectors, skin tones, ZWJ sequences, flags, Hangul syllables, CRLF and surrogate pairs
    stay whole; one that does not fit is left out whole. A limit of 0 or less gives the empty text. The rules are those
    of Unicode's UAX 29 that matter for cutting, without its table of Indic conjuncts.
    """
    if len(text) <= limit:
        return text
    cut = max(limit, 0)
    while cut > 0 and _joined(text, cut):
        cut -= 1
    return text[:cut]


def truncate_bytes(text: str, limit: int) -> str:
    """The longest such prefix of at most ``limit`` bytes in UTF-8; a lone surrogate counts as the 3 bytes of U+FFFD."""
    data = text[: max(limit, 0)].encode("utf-8", "surrogatepass")
    if len(data) <= limit:
        return truncate_chars(text, limit)
    end = max(limit, 0)
    while end > 0 and data[end] & 0xC0 == 0x80:
        end -= 1
    return truncate_chars(text, len(data[:end].decode("utf-8", "surrogatepass")))


def _joined(text: str, cut: int) -> bool:
    """Whether the characters on both sides of ``cut`` belong to one visible character."""
    left, right = text[cut - 1], text[cut]
    if left.isascii() and right.isascii():
        return left == "\r" and right == "\n"
    if _ZWJ in (left, right) or _extends(right):
        return True
    if _is_regional(left) and _is_regional(right):
        return _regionals_before(text, cut) % 2 == 1
    if _is_high_surrogate(left) and _is_low_surrogate(right):
        return True
    return _hangul_joined(left, right)


def _extends(char: str) -> bool:
    return (
        unicodedata.category(char) in _COMBINING
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= char <= "\U000e007f"  # the tags that spell regional flags
        or char in "\u200c\uff9e\uff9f"
    )


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _regionals_before(text: str, cut: int) -> int:
    start = cut
    while start > 0 and _is_regional(text[start - 1]):
        start -= 1
    return cut - start


def _is_high_surrogate(char: str) -> bool:
    return "\ud800" <= char <= "\udbff"


def _is_low_surrogate(char: str) -> bool:
    return "\udc00" <= char <= "\udfff"


def _hangul_joined(left: str, right: str) -> bool:
    """Whether conjoining jamo form one syllable: leading + vowel, vowel + trailing, syllable + either."""
    if "\u1100" <= left <= "\u115f":
        return "\u1100" <= right <= "\u11a7" or "\uac00" <= right <= "\ud7a3"
    if "\u1160" <= left <= "\u11a7":
        return "\u1160" <= right <= "\u11ff"
    if "\u11a8" <= left <= "\u11ff":
        return "\u11a8" <= right <= "\u11ff"
    if "\uac00" <= left <= "\ud7a3":
        has_trailing = (ord(left) - 0xAC00) % 28 != 0
        return "\u11a8" <= right <= "\u11ff" or (not has_trailing and "\u1160" <= right <= "\u11a7")
    return False
