"""The form in which two statements are equal when one of them is enough: the same words, though written in other case.

Case is of no account in prose, and part of a name: `useLive` and `uselive` are two flags. Not for searching
(``text.normalise``), nor for texts that say the same in other words (``near_duplicates.py``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from backstory.domain.said_words import NAMES_IN_CAPITALS
from backstory.domain.text import ANALYSER_VERSION, ONE_WORD, normalise

INDEX_VERSION = 1 + ANALYSER_VERSION
"""Counts the changes of what ``statement_form`` and ``analyse`` give; what a store made by another version is made
anew."""

_FENCE = "```"
_CODE_OR_WORD = re.compile(r"`[^`\n]+`|[^\s`]+|\s+|`")
_BEFORE = "\"'“”‘’«»([*"  # not a full stop, a sign of less than or an underscore: .ENV, <Button>, _Private
_BEHIND = "\"'“”‘’«»)]*.,;:!?…"
_ENDS_SENTENCE = (".", "!", "?", ":")


def statement_form(text: str) -> str:
    """A form that is equal for texts of the same words: canonical Unicode, whitespace folded, no case but that of
    names.

    A name is what stands between backticks, a word with a digit, a sign or a capital inside (``src/User.ts``, ``-V``),
    and a few that are words too and names in capitals (``PATH``), unless all the text is in capitals. Idempotent, and
    never equal where ``normalise`` is not. Linear in the text.
    """
    if text.islower():
        return normalise(text)
    return " ".join("".join(_pieces(unicodedata.normalize("NFC", text))).split())


def _pieces(text: str) -> Iterator[str]:
    shouted = text.isupper()
    parts = text.split(_FENCE)
    for place, part in enumerate(parts):
        is_code = place % 2 == 1 and place + 1 < len(parts)
        yield _FENCE if place else ""
        yield from (part,) if is_code and not part.islower() else _prose(part, shouted=shouted)


def _prose(text: str, *, shouted: bool) -> Iterator[str]:
    begins = True
    for match in _CODE_OR_WORD.finditer(text):
        piece = match[0]
        if piece.isspace():
            yield piece
            continue
        is_code = len(piece) > 1 and piece[0] == "`"
        kept = not piece.islower() and (is_code or _is_name(_bare(piece), begins=begins, shouted=shouted))
        yield piece if kept else normalise(piece)
        begins = not is_code and (piece.endswith(_ENDS_SENTENCE) or (begins and not any(map(str.isalnum, piece))))


def _bare(piece: str) -> str:
    word = piece.lstrip(_BEFORE).rstrip(_BEHIND)
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] == "_" else word


def _is_name(word: str, *, begins: bool, shouted: bool) -> bool:
    """Whether case may tell this word from another; ``begins``: it is the first of its sentence."""
    if word.isupper() and word.casefold() in NAMES_IN_CAPITALS:
        return not (shouted or (begins and len(word) == 1))
    return word.startswith("-") or not all(map(_is_plain, re.split("['’-]", word)))


def _is_plain(part: str) -> bool:
    """Whether a part of a word is a plain one in small letters, in capitals or with a capital in front, or a brand."""
    is_word = part.isalpha() and (part.islower() or part.istitle() or part.isupper() or part.lower() == part.upper())
    return not part or is_word or part.casefold() in ONE_WORD
