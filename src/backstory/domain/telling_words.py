"""The words that tell what a statement says: numbers, names and all that is no stop word; and the words that deny it.

What follows from that for who said the statement is ``grounding.py``.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from backstory.domain.text import analyse, analyse_query

_NAME_WEIGHT = 2.0
_SYMBOL_CHARS = 8  # a shorter last part of a name is a word like others
_ENDING_CHARS = 3  # that a stem lacks


class TellingWord(NamedTuple):
    """A telling word: its token, and for a name its parts."""

    token: str
    parts: tuple[str, ...]
    weight: float
    is_name: bool


def telling_words(text: str) -> list[TellingWord]:
    """The telling words of a text in their order, each name with the parts that analysis finds in it."""
    terms: list[tuple[str, bool, list[str]]] = []
    for term in analyse_query(text):
        if term.weight == 1.0:
            terms.append((term.token, term.is_name, []))
        elif terms:
            terms[-1][2].append(term.token)
    return [
        TellingWord(token, tuple(parts), _NAME_WEIGHT if is_name and len(token) > 1 else 1.0, is_name)
        for token, is_name, parts in terms
    ]


def carries_word(tokens: frozenset[str], word: TellingWord) -> bool:
    """Whether the word is there, the file or symbol at the end of a name, or all of its parts."""
    if word.token in tokens:
        return True
    if not word.parts or tokens.isdisjoint(word.parts):
        return False
    return tokens.issuperset(word.parts) or any(_names_it(part, word.token) for part in word.parts if part in tokens)


def _names_it(part: str, name: str) -> bool:
    """Whether a part says it all: ``cart.py`` of ``src/cart.py``, ``ErrNotFound`` of ``store.ErrNotFound``."""
    is_end = len(part) >= _SYMBOL_CHARS and name.rfind(part) + len(part) >= len(name) - _ENDING_CHARS
    return "." in part or "_" in part or is_end


@lru_cache(maxsize=4096)
def tokens_of(text: str) -> frozenset[str]:
    return frozenset(analyse(text))


def denies(text: str) -> bool:
    """Whether a text says that something is not so, or is not to be."""
    return _denial().search(text) is not None


@cache
def _denial() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:not?|never|none|nothing|nobody|without|cannot|nor|neither|\w+n['\u2019]t|nicht|nie(?:mals)?"
        r"|kein\w*|ohne|pas"
        r"|jamais|sans|nunca|sin|não|nao|sem|mai|senza|niet|geen|nooit|nigdy|не|нет|никогда)\b|[不没沒]|ない|않",
        re.IGNORECASE,
    )
