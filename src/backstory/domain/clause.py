"""One sentence of a statement as words to be set against another's: fillers gone, what it rejects apart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from backstory.domain.said_words import BORDER, said_words
from backstory.domain.stemming import MAX_STEM_CHARS, stem


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FILLERS = _words(
    "now currently actually also just really exactly called named presently still we you i our my us the"
    " must shall should will would can may might could please do does always a an"
)
_AUXILIARIES = _words("is are be do does did must may can should will shall would could has have and but or")
_BEING = {"be": "is", "are": "is"}
_TASTES = _words("prefer prefers like likes dislike dislikes want wants hate hates")
_REJECTING = (("instead", "of"), ("rather", "than"), ("not",))
_CHOOSING = _words("prefer prefers choose chooses chose chosen pick picked")
_LABEL = re.compile(r"(?<=[\w)]):\s+(?=\S)")
_ASSIGNED = re.compile(r"(?<=\w)\s*=\s*(?=[\w\"'./~-])")
_CAPITAL_INSIDE = re.compile(r"(?<=[\w,;:)] )([A-Z][\w]*)")
# What was left, and what it was left for. The subject of "is gone" has to be a word by itself: of "the Redis cache is
# gone" neither word is.
# Plain strings: ``re`` compiles them at the first use, which spares every cold start.
_CHANGED = (
    r"(?i)\b(?:moved|moving|switched|migrated|changed|renamed|went)\b(?:\s+\w+){0,4}?"
    r"\s+(?:from|off)\s+(?P<old>\S{1,80})\s+to\s+(?P<new>\S{1,80})",
    r"(?i)\breplaced\s+(?P<old>\S{1,80})\s+(?:with|by)\s+(?P<new>\S{1,80})",
    r"(?i)\b(?P<new>\S{1,80})\s+replaces\s+(?P<old>\S{1,80})",
    r"(?i)\b(?P<old>\S{1,80})\s+(?:is|was|were|got|has\s+been)\s+replaced\s+(?:with|by)\s+(?P<new>\S{1,80})",
)
_GONE = (
    r"(?m)(?:^|[.,;:!?(]\s+)(?P<one>[\w.@/+#-]+)(?:\s+and\s+(?P<other>[\w.@/+#-]+))?"
    r"(?:\s+(?:is|are|was|were|has\s+been|have\s+been))?"
    r"\s+(?:removed|dropped|gone|uninstalled|retired|switched\s+off|abandoned)(?=\s*(?:[.,;:!?)]|$))"
)
_POINTING = _words("it that this they these those all both which")
_ENDS = ".,;:!?\"'`)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """``said`` are its words as ``said_words`` has them, less fillers and what it rejects; ``forms`` the same with one
    form for the inflections of a word. ``rejected`` is what it says is not so (jsonwebtoken in "jose, not
    jsonwebtoken"). ``names`` are its words written with a capital inside the sentence."""

    said: tuple[str, ...]
    forms: tuple[str, ...]
    rejected: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()


@lru_cache(maxsize=256)
def clauses(text: str) -> tuple[Clause, ...]:
    """The sentences of a text. A label and its value ("port: 80", "PORT=80") are read as "port is 80"."""
    plain = _ASSIGNED.sub(" is ", _LABEL.sub(" is ", text))
    names = frozenset(word.casefold() for word in _CAPITAL_INSIDE.findall(text))
    found: list[Clause] = []
    sentence: list[str] = []
    for word in [*said_words(plain), BORDER]:
        if word != BORDER:
            sentence.append(word)
        elif sentence:
            found.append(_clause(sentence, names))
            sentence = []
    return tuple(found)


@lru_cache(maxsize=256)
def left_behind(text: str) -> tuple[tuple[str, str], ...]:
    """What a text says was left, and for what ("" where it does not say): ``npm`` and ``pnpm`` in "we switched from npm
    to pnpm"."""
    found = [(match["old"], match["new"]) for pattern in _CHANGED for match in re.finditer(pattern, text)]
    found += [(old, "") for match in re.finditer(_GONE, text) for old in match.groups() if old]
    return tuple((old.strip(_ENDS), new.strip(_ENDS)) for old, new in found if old.lower() not in _POINTING)


def one_word(word: str) -> str:
    """A word as clauses have it."""
    said = said_words(word)
    return said[0] if len(said) == 1 else word


def one_form(word: str) -> str:
    """A word in the form that it shares with its inflections; names and numbers stay as they are."""
    return stem(word) if word.isalpha() and word.islower() and len(word) <= MAX_STEM_CHARS else word


def _clause(sentence: list[str], names: frozenset[str]) -> Clause:
    kept, rejected = _without_rejected(sentence)
    said = [_BEING.get(word, word) for word in kept if word not in _FILLERS]
    if said[:1] == ["user"] and not _TASTES.isdisjoint(said[1:2]):
        del said[0]  # "the user prefers" is "I prefer"
    return Clause(said=tuple(said), forms=tuple(map(one_form, said)), rejected=tuple(rejected), names=names)


def _without_rejected(said: list[str]) -> tuple[list[str], list[str]]:
    """A "not" rejects what follows it where it does not deny the verb: at the earliest as the third word, and not after
    an auxiliary. "Over" rejects what was not chosen."""
    chosen = not _CHOOSING.isdisjoint(said)
    for place in range(2, len(said)):
        for marker in (*_REJECTING, *([("over",)] if chosen else [])):
            after = said[place + len(marker) :]
            if tuple(said[place : place + len(marker)]) == marker and after and said[place - 1] not in _AUXILIARIES:
                return said[:place], after
    return said, []
