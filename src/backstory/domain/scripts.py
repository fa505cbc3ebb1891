"""How the writing systems of the world are cut into words: accent folding, and the patterns that find the next piece.

What becomes of a piece (identifier parts, stems, bigrams) is decided in ``text.py``. The Unicode patterns are compiled
at first need, since most texts are ASCII and a cold start counts milliseconds.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

JOINERS = r"\-_./:\\@"
"""What may stand inside an identifier, a path or an address (for use in a character class)."""

# Special names come first: their signs are part of the name. Kinds are group names; "word" is anything with letters.
_NAMES = (
    r"(?P<name>(?<![A-Za-z0-9_+])[A-Za-z](?:\+\+|#(?![A-Za-z0-9_]))"
    r"|(?<![A-Za-z0-9_.])\.[Nn][Ee][Tt](?![A-Za-z0-9_]))"
)
_ASCII_PIECE = re.compile(rf"{_NAMES}|(?P<word>[A-Za-z0-9][A-Za-z0-9{JOINERS}]*)")

_HAN_KANA = (
    "\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3041-\u3096\u3099-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
)
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
# Thai, Lao, Myanmar and Khmer write no gaps between words. Digits stay out: numbers are words.
_UNSPACED = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u109f\u1780-\u17d3"
_UNSPACED_MARKS = (
    "\u0e31\u0e33-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb3-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1060"
    "\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d\u17b4-\u17d3"
)
# Vowel signs of the Indic scripts are marks, not letters, and yet inside words.
_INDIC = "\u0900-\u0963\u0971-\u0df3"
_EMOJI = "\u231a-\u231b\u23e9-\u23fa\u2600-\u27bf\u2b1b-\u2b1c\u2b50\u2b55\U0001f000-\U0001faff"
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"

# Accents and vowel points: left out, so that text with and without them meet. Maqaf and its like (signs) stay.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f"
    "\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f"
)
_INVISIBLE = "\u00ad\u034f\u061c\u180e\u200c-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"

# Letters whose stroke or ligature has no decomposition, and signs with an ASCII twin.
_TWINS = {
    "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L",
    "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "TH", "ı": "i", "ħ": "h", "Ħ": "H",
    "’": "'", "‘": "'", "ʼ": "'", "‐": "-", "־": "-",
    "ة": "ه", "ى": "ي", "ی": "ي", "ک": "ك",
}  # fmt: skip
_DIGIT_ZEROS = (0x0660, 0x06F0, 0x0966, 0x09E6, 0x0E50, 0x0ED0, 0x1040, 0x17E0)


@lru_cache(maxsize=1)
def _twins() -> dict[int, str]:
    table = {ord(letter): twin for letter, twin in _TWINS.items()}
    for zero in _DIGIT_ZEROS:
        table.update({zero + value: str(value) for value in range(10)})
    return table


@lru_cache(maxsize=1)
def _left_out() -> re.Pattern[str]:
    return re.compile(f"[{_MARKS}{_INVISIBLE}]+")


@lru_cache(maxsize=1)
def _unicode_piece() -> re.Pattern[str]:
    letter = rf"(?:[^\W_{_HAN_KANA}{_HANGUL}{_UNSPACED}{_EMOJI}]|[{_INDIC}])"
    inside = rf"(?:[^\W{_HAN_KANA}{_HANGUL}{_UNSPACED}{_EMOJI}]|[{_INDIC}{JOINERS}])"
    return re.compile(
        rf"{_NAMES}|(?P<word>{letter}{inside}*)|(?P<han>[{_HAN_KANA}]+)|(?P<hangul>[{_HANGUL}]+)"
        rf"|(?P<unspaced>[{_UNSPACED}]+)|(?P<emoji>{_FLAG}|[{_EMOJI}])"
    )


@lru_cache(maxsize=1)
def _cluster() -> re.Pattern[str]:
    # Eight marks are more than any syllable has; the bound keeps a hostile pile of marks from becoming one token.
    return re.compile(rf"[^{_UNSPACED_MARKS}][{_UNSPACED_MARKS}]{{0,8}}|[{_UNSPACED_MARKS}]{{1,8}}")


@lru_cache(maxsize=1)
def _gapless() -> re.Pattern[str]:
    return re.compile(f"[{_HAN_KANA}{_HANGUL}{_UNSPACED}]")


def is_gapless(text: str) -> bool:
    """Whether some of it is written as Chinese, Japanese, Korean or Thai are: words may begin and end without a gap."""
    return not text.isascii() and _gapless().search(text) is not None


def fold_accents(text: str) -> str:
    """The text in compatibility form (full-width is ASCII), without accents, vowel points and invisible signs.

    Case is kept, since it marks the borders in ``userStore``. ASCII text comes back as it is, at once.
    """
    if text.isascii():
        return text
    # NFKD cannot change what the pattern left out, and NFC brings Hangul and kana back together.
    bare = _left_out().sub("", unicodedata.normalize("NFKD", text).translate(_twins()))
    return unicodedata.normalize("NFC", bare)


def piece_pattern(text: str) -> re.Pattern[str]:
    """The pattern whose matches are the pieces of a folded text; the name of the last group is the kind of a piece.

    Kinds: ``word`` (letters, digits and joiners, starting with a letter or digit, such as ``src/core.py``), ``name``
    (``C++``, ``C#``, ``.NET``), ``han``, ``hangul``, ``unspaced``, ``emoji``.
    """
    return _ASCII_PIECE if text.isascii() else _unicode_piece()


def bigrams(run: str) -> list[str]:
    """Overlapping pairs of characters; a lone character is its own."""
    return [run[i : i + 2] for i in range(max(1, len(run) - 1))]


def syllable_bigrams(run: str) -> list[str]:
    """Overlapping pairs of syllables (a letter with its marks), for scripts without gaps between words."""
    clusters: list[str] = _cluster().findall(run)
    return ["".join(clusters[i : i + 2]) for i in range(max(1, len(clusters) - 1))]
