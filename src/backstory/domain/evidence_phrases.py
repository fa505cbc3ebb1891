"""Words that stand together in a question and again in a passage. How much that counts is in ``evidence.py``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_BETWEEN = r"(?:\W+\w+){0,2}\W+"
"""At most two other words, in the passage as in the question."""
_MOST = 16
"""Pairs of a question that are looked for; bounds the work on a pasted one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """Two neighbouring words of a question, in either order, as a pattern over text in lower case."""

    first: str
    second: str
    pattern: str


def phrases_of(tokens: Sequence[str]) -> list[Phrase]:
    """The pairs of words next to each other in a question, stop words left out. ``tokens`` are the analyser's."""
    return [
        Phrase(first=first, second=second, pattern=f"{_pair(first, second)}|{_pair(second, first)}")
        for first, second in list(pairwise(tokens))[:_MOST]
    ]


def said_together(phrases: Iterable[Phrase], text: str, held: Collection[str]) -> list[Phrase]:
    """Those of the phrases that a passage holds. ``held`` are the tokens it is known to hold; only they are looked for.

    About 10 µs for each phrase whose two words are held.
    """
    wanted = [phrase for phrase in phrases if phrase.first in held and phrase.second in held]
    if not wanted:
        return []
    lower = text.lower()
    return [phrase for phrase in wanted if re.search(phrase.pattern, lower)]


def _pair(first: str, second: str) -> str:
    return f"{_word(first)}{_BETWEEN}{_word(second)}"


def _word(token: str) -> str:
    # a stem is the beginning of its words but for a final i, which stands for y ("puppi": puppy, puppies)
    return rf"\b{re.escape(token.removesuffix('i') if len(token) > 3 else token)}\w*"
