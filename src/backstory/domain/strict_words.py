"""Which memories a search by strict words means: opencode-memory's ``memory_read``, where every word has to be there.

No word forms, synonyms or similar spellings; that search is everywhere else (``text.py``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from backstory.domain.scripts import is_gapless

_WORD = re.compile(r"[^\W_][\w+#.]*")
_CASE_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_")


@dataclass(frozen=True, slots=True)
class _Word:
    """A word as one, and the pieces between which its case changes."""

    whole: str
    pieces: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query: as it stands, its words, and all that was asked for one by one."""

    phrase: str
    words: tuple[_Word, ...]
    apart: frozenset[str]


def fits(query: str, *texts: str) -> bool:
    """Whether the texts of a memory have the query as it stands, between word borders, or each of its words anywhere.

    ``java`` is no word of ``JavaScript``; ``userStore`` and ``user store`` are the same. ``C++``, ``C#`` and
    ``Node.js`` are words. Where words are written without gaps, as in Chinese, one may stand inside a longer text.
    A query without any word fits everything.
    """
    asked = _asked(query)
    if not asked.words or any(_stands_in(asked.phrase, text) for text in texts):
        return True
    there = [word for text in texts for word in _words(text)]
    vocabulary = {word.whole for word in there}
    for word in there:
        if word.pieces <= asked.apart:  # all pieces of a word were asked for, one by one
            vocabulary |= word.pieces
    return all(
        word.whole in vocabulary
        or word.pieces <= vocabulary
        or (is_gapless(word.whole) and any(_stands_in(word.whole, text) for text in texts))
        for word in asked.words
    )


@lru_cache(maxsize=1)  # one query is held against every memory
def _asked(query: str) -> _Asked:
    words = tuple(_words(query))
    apart = frozenset(word.whole for word in words).union(*(word.pieces for word in words))
    return _Asked(phrase=_folded(query.strip()), words=words, apart=apart)


def _stands_in(phrase: str, text: str) -> bool:
    text = _folded(text)
    place = text.find(phrase)
    while place >= 0:
        end = place + len(phrase)
        if not (_joins(text, place - 1, place) or _joins(text, end - 1, end)):
            return True
        place = text.find(phrase, place + 1)
    return False


def _joins(text: str, left: int, right: int) -> bool:
    """Whether two neighbouring characters are of one word."""
    if left < 0 or right >= len(text):
        return False
    if is_gapless(text[left]) or is_gapless(text[right]):
        return False
    return text[left].isalnum() and (text[right].isalnum() or text[right] in "+#")


def _words(text: str) -> Iterator[_Word]:
    for match in _WORD.finditer(unicodedata.normalize("NFC", text)):
        written = match[0].strip("._")
        pieces = [piece.casefold() for piece in _CASE_BORDER.split(written) if piece]
        if pieces:
            yield _Word(written.casefold().replace("_", ""), frozenset(pieces))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()
