"""Whether two texts that are alike, or near in meaning, say the same though some word differs: yes, perhaps, or no.

``near_duplicates.compare`` says yes only to the same words. Here two kinds of difference are allowed as well: a value
written in another way, and other words around the same content. What makes texts alike enough to ask is elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from backstory.domain.near_duplicates import NEAR_IN_MEANING, Sameness, Verdict, compare
from backstory.domain.opposites import OPPOSITES, REPORTS, WEIGHTY
from backstory.domain.said_words import BORDER, is_detail, is_spaced, said_words
from backstory.domain.stemming import stem

ALIKE_IN_WORDS = 0.5
"""Share of the words of both from which two texts are the same statement with something changed, not other words."""

_NUMBER = re.compile(r"\d(?:[\d,.:/-]*\d)?")
_PATH = re.compile(r"~?/.|\.{1,2}/.")
_ENDS_SENTENCE = (".", "!", "?", ":", ";")
_AROUND = ".,;:!?()[]{}\"'`"
_VERSION_PARTS = 3
_MOST_DETAILS = 50  # of one sort; each is compared with each of the other text
_SHOWN = 4

_LIGHT = """
    the a an is are be been being of in at on under by for and our we its it this that these which there
    happen happens occur occurs
"""
_CARRY_NOTHING = frozenset(_LIGHT.split())
"""Words that may be in one of two texts alone. None of them says when, whether or how much."""
_BEING = frozenset({"is", "are", "be", "been"})
_ORDER_MATTERS = frozenset({"over", "than", "instead", "before", "after", "from", "to", "into", "onto"})
"""Beside these, turning round what stands on their two sides makes another statement."""
_LEAST_ORDERED = 3
"""With fewer words of content, order alone tells who does what."""
_MOST_ORDERED = 100
"""Longer texts in another order are for a person to compare; it also bounds the work."""


def said_alike(a: str, b: str, *, similarity: float | None = None) -> Sameness:
    """Compare texts that share most of their words: the same also where the same value is written in another way, as
    ``3.11`` and ``3.11.2``, or a folder with and without its last slash. ``similarity`` as in ``compare``."""
    found = compare(a, b, similarity=similarity)
    if found.verdict is Verdict.UNCERTAIN and _differ_in_spelling_only(said_words(a), said_words(b)):
        return Sameness(verdict=Verdict.SAME)
    return found


def said_in_other_words(a: str, b: str) -> Sameness:
    """Compare texts that are near in meaning.

    The same where both have the same numbers, paths, names and other words of content in the same order, or in other
    words altogether, with one of them at another place; articles, endings and the like may differ. Different where one
    has a "not", "only" or "was" that the other lacks, an opposite, or where both report events that differ. All else is
    uncertain: nearness tells what texts are about, not what they say.
    """
    words, others = said_words(a), said_words(b)
    if words == others or not (is_spaced(a) and is_spaced(b)):
        return said_alike(a, b)
    if in_common(words, others) >= ALIKE_IN_WORDS:
        found = said_alike(a, b, similarity=NEAR_IN_MEANING)
        is_open = found.verdict is Verdict.UNCERTAIN and set(words) != set(others)
        return _compare_content(words, others, may_move=0, otherwise=found) if is_open else found
    only_a, only_b = set(words) - set(others), set(others) - set(words)
    if (only_a | only_b) & WEIGHTY or any(OPPOSITES.get(word, frozenset()) & only_b for word in only_a):
        return Sameness(verdict=Verdict.DIFFERENT, reasons=("one says not, or the opposite",))
    if conflicts := tuple(_conflicts(a, b)):
        both_report = not REPORTS.isdisjoint(words) and not REPORTS.isdisjoint(others)
        return Sameness(verdict=Verdict.DIFFERENT if both_report else Verdict.UNCERTAIN, reasons=conflicts)
    may_move = 1 if _ORDER_MATTERS.isdisjoint([*words, *others]) else 0
    return _compare_content(words, others, may_move=may_move)


def may_be_alike(a: str, b: str) -> bool:
    """Whether ``said_alike`` may find texts to be the same. Several times faster."""
    words, others = said_words(a), said_words(b)
    return words == others or _differ_in_spelling_only(words, others)


def may_be_in_other_words(a: str, b: str) -> bool:
    """Whether ``said_in_other_words`` may find texts to be the same. Several times faster."""
    return _sorted_content(a) == _sorted_content(b) or may_be_alike(a, b)


def in_common(words: Sequence[str], others: Sequence[str]) -> float:
    """The share of the distinct words of either that both have, in [0, 1]."""
    one, other = set(words) - {BORDER}, set(others) - {BORDER}
    return len(one & other) / len(one | other) if one and other else 0.0


def _differ_in_spelling_only(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether the texts are equal word by word, but for values that are written in another way."""
    return len(words) == len(others) and all(map(_is_same_value, words, others))


def _is_same_value(value: str, other: str) -> bool:
    """Equal, but for a path's last slash, or a version told more exactly: ``3.11`` is ``3.11.2``, 1 is not 1.5."""
    if value == other:
        return True
    if _PATH.match(value) and _PATH.match(other):
        return value.rstrip("/") == other.rstrip("/")
    shorter, longer = sorted((value.split("."), other.split(".")), key=len)
    is_version = len(longer) == _VERSION_PARTS and len(shorter) == _VERSION_PARTS - 1
    return is_version and longer[:-1] == shorter and all(map(str.isdecimal, longer))


def _is_near_number(number: str, other: str) -> bool:
    """Whether two numbers may stand for the same: to be sure, their texts have to agree in all else."""
    try:
        return _is_same_value(number, other) or float(number) == float(other)
    except ValueError:  # a time, a range, a date
        return False


def _conflicts(a: str, b: str) -> Iterator[str]:
    """For each sort of detail that both texts have, what they have where no value of one is a value of the other."""
    found = _details(b)
    for sort, (values, is_same) in _details(a).items():
        others = found[sort][0]
        if values and others and not any(is_same(value, other) for value in values for other in others):
            yield f"{sort}: {_listed(values)} against {_listed(others)}"


def _details(text: str) -> Mapping[str, tuple[Sequence[str], Callable[[str, str], bool]]]:
    words = [word for word in said_words(text) if word != BORDER]
    paths = [word for word in words if _PATH.match(word)]
    numbers = [number for word in words if word not in paths for number in _NUMBER.findall(word)]
    names = list(_names(text))
    known = {name.casefold() for name in names}
    signs = [
        word
        for word in words
        if is_detail(word) and word not in paths and not _NUMBER.fullmatch(word) and word.casefold() not in known
    ]
    return {
        "numbers": (numbers[:_MOST_DETAILS], _is_near_number),
        "paths": (paths[:_MOST_DETAILS], _is_same_value),
        "names": (names[:_MOST_DETAILS], lambda name, other: name.casefold() == other.casefold()),
        "identifiers": (signs[:_MOST_DETAILS], str.__eq__),
    }


def _names(text: str) -> Iterator[str]:
    """The capitalised words that do not stand first in their sentence."""
    is_first = True
    for piece in text.split():
        word = piece.strip(_AROUND)
        if word[:1].isupper() and not is_first:
            yield word
        if word or piece.endswith(_ENDS_SENTENCE):
            is_first = piece.endswith(_ENDS_SENTENCE)


def _compare_content(
    words: Sequence[str], others: Sequence[str], *, may_move: int, otherwise: Sameness | None = None
) -> Sameness:
    """The same where the content is, with at most ``may_move`` words elsewhere; ``otherwise`` is the answer if not."""
    content, other_content = _content(words), _content(others)
    left, right = Counter(content), Counter(other_content)
    if left != right:
        only = [*(left - right).elements(), *(right - left).elements()]
        return otherwise or Sameness(verdict=Verdict.UNCERTAIN, reasons=(f"not in both: {_listed(only)}",))
    if content == other_content or (
        may_move
        and _LEAST_ORDERED <= len(content) <= _MOST_ORDERED
        and _in_same_order(content, other_content) >= len(content) - may_move
    ):
        return Sameness(verdict=Verdict.SAME)
    return otherwise or Sameness(verdict=Verdict.UNCERTAIN, reasons=("the same words in another order",))


def _in_same_order(words: Sequence[str], others: Sequence[str]) -> int:
    """How many words are left at most when those are taken out that stand in another order."""
    above = [0] * (len(others) + 1)
    for word in words:
        row = [0]
        for place, other in enumerate(others):
            row.append(above[place] + 1 if word == other else max(above[place + 1], row[place]))
        above = row
    return above[-1]


def _content(words: Sequence[str]) -> tuple[str, ...]:
    """The words that carry something, plain ones without their ending."""
    content = []
    for before, word in zip(("", *words), words, strict=False):
        if word not in _CARRY_NOTHING and word not in (BORDER, "is in"):
            content.append(_without_ending(word, is_passive=before in _BEING))
    return tuple(content)


@lru_cache(maxsize=4_096)
def _sorted_content(text: str) -> tuple[str, ...]:
    return tuple(sorted(_content(said_words(text))))


def _without_ending(word: str, *, is_passive: bool) -> str:
    if _PATH.match(word):
        return word.rstrip("/")
    if not (word.isalpha() and word.islower()):
        return word
    root = stem(word)
    # what was done, or is being done, need not be what is done: "we migrated", "we are migrating", "we migrate"
    tells_when = word.endswith(("ed", "ing")) or not word.startswith(root)
    return root if not tells_when or (is_passive and not word.endswith("ing")) else word


def _listed(values: Iterable[str]) -> str:
    return ", ".join(list(dict.fromkeys(values))[:_SHOWN])
