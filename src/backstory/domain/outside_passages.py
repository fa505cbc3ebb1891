"""Passages of outside text: a few lines at a time, their words, and whether they tell somebody what to do.

Also whether a speaker reports such an order. What a passage counts for is ``grounding.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from backstory.domain.text import analyse

_PASSAGE_CHARS = 480
_HALF_LINES, _HALF_CHARS = 2, 160
_OVERLAP_CHARS = 80


class Passage(NamedTuple):
    """The words of a passage, and whether it tells somebody to do or to believe something."""

    tokens: frozenset[str]
    orders: bool


@lru_cache(maxsize=512)
def passages(text: str) -> tuple[Passage, ...]:
    """A few lines at a time, each passage half covered by the next; a long line is cut, with an overlap."""
    step = _PASSAGE_CHARS - _OVERLAP_CHARS
    lines = [
        line[start : start + _PASSAGE_CHARS]
        for line in text.splitlines()
        if line.strip()
        for start in range(0, len(line), step)
    ]
    halves = [_passage("\n".join(half)) for half in _halves(lines)]
    if len(halves) < 2:
        return tuple(halves)
    return tuple(Passage(one.tokens | other.tokens, one.orders or other.orders) for one, other in pairwise(halves))


def _halves(lines: Sequence[str]) -> Iterator[list[str]]:
    """Two lines at a time, and more where they are short, so that no order is hidden by breaking it into many."""
    half: list[str] = []
    for line in lines:
        half.append(line)
        if len(half) >= _HALF_LINES and sum(map(len, half)) >= _HALF_CHARS:
            yield half
            half = []
    if half:
        yield half


def _passage(text: str) -> Passage:
    return Passage(frozenset(analyse(text)), _orders().search(text) is not None)


@cache
def _orders() -> re.Pattern[str]:
    """Words of texts that tell somebody what to do, what to believe from now on, or what is permitted."""
    return re.compile(
        r"\b(?:remember|memori[sz]e|forget|keep in mind|always|never|must|should|shall|do not|don['\u2019]t|may"
        r"|allowed"
        r"|need not|ignore|from now on|permanent\w*|please|assistants?|agents?|ai|llms?|passwords?|important|note"
        r"|merk\w*|vergiss|immer|nie(?:mals)?|muss|müssen|soll(?:en|te)?|darf|dürfen|bitte|ab jetzt|passwort"
        r"|souviens|toujours|jamais|doit|recuerda|siempre|nunca|debe\w*|sempre|ricorda|zawsze|nigdy|altijd|nooit"
        r"|помни|всегда|никогда)\b"
        r"|(?:^|[.!:;>#*-]\s+)(?:use|run|deploy|set|add|install|trust|disable|enable|skip|allow|grant|send|store"
        r"|save|delete"
        r"|remove|open|push|commit|sign|turn|make|put|configure|call|replace|change|upgrade|downgrade|switch"
        r"|accept|approve"
        r"|treat|consider|tell|assume)\s+(?!-)[a-z`'\"]|记住|記住|始终|必须|必須|不要|覚えて|必ず|기억해|항상",
        re.IGNORECASE | re.MULTILINE,
    )


@cache
def reported_order() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:assistants?|(?:ai|llm|coding) (?:agents?|models?|tools?|operators?)|agents|llms?"
        r"|ais?)\b.{0,40}\b(?:to|should|must|that)\b"
        r"|\b(?:tells?|ask(?:s|ing)?|orders?|instruct(?:s|ing)?|wants?|addressed|aimed|meant|directed)\b.{0,40}"
        r"\b(?:assistants?|agents|ais?|llms?|models)\b"
        r"|\b(?:hidden|injected|embedded|planted) (?:text|instructions?|comments?|paragraphs?|orders?)"
        r"|prompt injection"
        r"|\bi(?:['\u2019]ve| have)? ignored?\b|\bignoriert|\bassistenten\b.{0,60}\b(?:soll|merken|will)\w*",
        re.IGNORECASE,
    )
