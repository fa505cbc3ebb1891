"""Words that stand together in a question and again in a passage. How much that counts is in ``evidence.py``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise, product

_BETWEEN = 2
"""Other words between the two, at most."""
_REACH_CHARS = 60
_MOST_PAIRS = 16
_MOST_PLACES = 16
"""Pairs of a question that are looked for, and places of a word that are looked at; they bound the work on pastes."""

Phrase = tuple[str, str]
"""Two tokens that follow each other in a question, stop words left out."""


def phrases_of(tokens: Sequence[str]) -> list[Phrase]:
    """The pairs of neighbours among a question's tokens, as the analyser made them; the first 16."""
    return list(pairwise(tokens))[:_MOST_PAIRS]


def said_together(phrases: Iterable[Phrase], text: str, held: Collection[str]) -> list[Phrase]:
    """Those of the phrases whose words stand in a passage in either order with at most two words between.

    ``held`` are the tokens that the passage is known to hold; only they are looked for. A few µs for each.
    """
    wanted = [phrase for phrase in phrases if phrase[0] in held and phrase[1] in held]
    if not wanted:
        return []
    lower = text.lower()
    places = {token: _places(lower, _beginning(token)) for phrase in wanted for token in phrase}
    return [phrase for phrase in wanted if _near(lower, places[phrase[0]], places[phrase[1]])]


def _beginning(token: str) -> str:
    """A stem begins its words but for a final i, which stands for y ("puppi": puppy, puppies)."""
    return token.removesuffix("i") if len(token) > 3 else token


def _places(text: str, beginning: str) -> list[int]:
    found: list[int] = []
    place = text.find(beginning)
    while place >= 0 and len(found) < _MOST_PLACES:
        if place == 0 or not text[place - 1].isalnum():
            found.append(place)
        place = text.find(beginning, place + len(beginning))
    return found


def _near(text: str, first: Iterable[int], second: Iterable[int]) -> bool:
    for one, other in product(first, second):
        start, end = min(one, other), max(one, other)
        if 0 < end - start <= _REACH_CHARS and len(text[start:end].split()) <= 1 + _BETWEEN:
            return True
    return False
