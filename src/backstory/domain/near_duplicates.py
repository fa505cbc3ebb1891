"""Whether two memories say the same, so that one of them is enough: yes, perhaps, or no.

Showing one in place of another that differs in a number, a name or a "not" would be a lie, so the answer is yes only
when every word is accounted for. How alike texts look letter by letter is in ``similarity.py``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from backstory.domain.opposites import NOT_IN_UNSPACED, OPPOSITES, REPORTS, WEIGHTY
from backstory.domain.said_words import BORDER, is_detail, is_spaced, said_words
from backstory.domain.similarity import jaccard, trigrams

MUCH_IN_COMMON = 0.6
"""Share of the words of both; texts with less in common are about different things."""
ALIKE_UNSPACED = 0.4
"""Jaccard of trigrams, for scripts without gaps: one other sign among seven changes three trigrams of seven."""
NEAR_IN_MEANING = 0.85
"""Cosine of all-MiniLM-L6-v2 from which texts in other words are worth a person's look; opposites reach it too."""
_ORDER_MATTERS = frozenset(["not", "no", "never", "over", "than", "instead", "before", "after", "until", "from", "to"])
_SHOWN_WORDS = 6


class Verdict(StrEnum):
    """SAME may be merged; UNCERTAIN is for a person to decide, and neither side goes; DIFFERENT is no news."""

    SAME = "same"
    UNCERTAIN = "uncertain"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sameness:
    """The verdict on two texts; ``reasons`` say in what they differ, none when they are the same."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Texts that say the same, by position: the first of them, and those that need not be shown beside it."""

    kept: int
    also: tuple[int, ...] = ()


def collapse(contents: Sequence[str]) -> list[Group]:
    """Group the texts that say the same, in order; the first of a group is kept, so the best should come first.

    Every position is in exactly one group, and groups stand in the order of those kept. A text without a word is never
    grouped. Linear in the length of the texts: under 2 ms for 50 of them, 150 characters each.
    """
    groups: dict[object, list[int]] = {}
    for position, content in enumerate(contents):
        groups.setdefault(said_words(content) or position, []).append(position)
    return [Group(kept=positions[0], also=tuple(positions[1:])) for positions in groups.values()]


def compare(a: str, b: str, *, similarity: float | None = None) -> Sameness:
    """Compare two texts; which of them comes first does not matter.

    ``similarity`` is the cosine of their vectors, where there is one. It can make a difference uncertain but never the
    same: "export" and "import" are neighbours in meaning.
    """
    words, others = said_words(a), said_words(b)
    if not words or not others:
        return _different("one of them has no words")
    if words == others:
        return Sameness(verdict=Verdict.SAME)
    if not (is_spaced(a) and is_spaced(b)):
        return _compare_unspaced(a, b)
    only_a, only_b = _left_over(words, others), _left_over(others, words)
    if not only_a and not only_b:
        return _reordered(words)
    if (turned := _turned(only_a, only_b)) is not None:
        return _different(turned)
    return _weigh(words, only_a, only_b, similarity)


def _weigh(words: Sequence[str], only_a: Sequence[str], only_b: Sequence[str], similarity: float | None) -> Sameness:
    """The verdict on texts of which one has words that the other lacks, none of them an opposite."""
    shared = len(words) - words.count(BORDER) - len(only_a)
    pairs = list(_differing_details(only_a, only_b))
    if len(pairs) > 1:
        return _different(*pairs[:_SHOWN_WORDS])
    if pairs and len(only_a) == len(only_b) == 1 and shared:
        report = not REPORTS.isdisjoint(words)
        return _different(f"reports of two events: {pairs[0]}") if report else _uncertain(pairs[0])
    in_common = shared / (shared + len(only_a) + len(only_b))
    if in_common >= MUCH_IN_COMMON or (similarity is not None and similarity >= NEAR_IN_MEANING):
        return _uncertain(f"not in both: {', '.join([*only_a, *only_b][:_SHOWN_WORDS])}")
    return _different("too few words in common")


def _left_over(words: Sequence[str], others: Sequence[str]) -> list[str]:
    """The words that the others lack, in order, repeats counted; ends of sentences left out."""
    plain = [word for word in words if word != BORDER]
    if len(known := set(plain)) == len(plain):  # no repeats: mostly so, and several times faster
        lacking = known.difference(others)
        return [word for word in plain if word in lacking]
    left = Counter(words) - Counter(others)
    found = []
    for word in words:
        if left[word] > 0:
            left[word] -= 1
            if word != BORDER:
                found.append(word)
    return found


def _reordered(words: Sequence[str]) -> Sameness:
    """The same words in another order, or cut into other sentences."""
    if _ORDER_MATTERS.isdisjoint(words):
        return _uncertain("the same words in another order")
    return _different("the same words in other places")


def _turned(only_a: Sequence[str], only_b: Sequence[str]) -> str | None:
    """What makes the texts say different things for certain, if anything does."""
    for word in sorted({*only_a, *only_b} & WEIGHTY):
        return f"only one says {word!r}"
    for word in only_a:
        for other in sorted(OPPOSITES.get(word, frozenset()).intersection(only_b)):
            return f"{word!r} against {other!r}"
    return None


def _differing_details(only_a: Sequence[str], only_b: Sequence[str]) -> Iterator[str]:
    """The left-over words side by side, where one is a number, path, flag or name, or where there is but one."""
    alone = len(only_a) == len(only_b) == 1
    for word, other in zip(only_a, only_b, strict=False):
        if alone or is_detail(word) or is_detail(other):
            yield f"{word} against {other}"


def _compare_unspaced(a: str, b: str) -> Sameness:
    """Scripts without gaps have no words to compare here, and one sign may change everything."""
    if len(re.findall(NOT_IN_UNSPACED, a)) != len(re.findall(NOT_IN_UNSPACED, b)):
        return _different("only one says not")
    if jaccard(trigrams(a), trigrams(b)) >= ALIKE_UNSPACED:
        return _uncertain("a few characters differ")
    return _different("too few characters in common")


def _different(*reasons: str) -> Sameness:
    return Sameness(verdict=Verdict.DIFFERENT, reasons=reasons)


def _uncertain(*reasons: str) -> Sameness:
    return Sameness(verdict=Verdict.UNCERTAIN, reasons=reasons)
