"""Memories as opencode-plugin-git-memory sees them: a type, a topic, a time, and a score by plain words.

For that product's tools alone; how memories answer a query everywhere else is ``ranking.py``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache
from itertools import groupby
from typing import TypeVar

from backstory.domain.context_block import quote
from backstory.domain.labels import canonical_area
from backstory.domain.memory import Kind, Memory
from backstory.domain.outline import Outline
from backstory.domain.truncation import truncate_chars

M = TypeVar("M", Memory, Outline)

TYPES = ("decision", "learning", "preference", "blocker", "context", "pattern")
_TYPE_OF = {
    Kind.DECISION: "decision",
    Kind.LEARNING: "learning",
    Kind.PREFERENCE: "preference",
    Kind.USER: "preference",
    Kind.BLOCKER: "blocker",
    Kind.PATTERN: "pattern",
    Kind.WORKFLOW: "pattern",
}
"""Every other kind counts as ``context``."""
_PRIORITY = {"preference": 6, "decision": 5, "blocker": 4, "pattern": 3, "context": 2, "learning": 1}
_FADING = ((1, 1.0), (7, 0.8), (30, 0.5), (90, 0.3))
"""Up to how many days of age how much of a score counts; of older ones a tenth does."""
_OLD = 0.1
_QUERY_CHARS = 2000  # of a query that count: more cost time at every memory, and mean nothing more
_LEAST_ROOM, _MOST_CUT = 20, 200  # characters left at which a pack ends; length of a text that does not fit


def type_of(memory: Memory | Outline) -> str:
    """One of the six types."""
    return _TYPE_OF.get(memory.kind, "context")


def topic_of(memory: Memory | Outline) -> str:
    """The topic: the area, or for a memory without one the word for who sees it."""
    return memory.area or memory.visibility.value


def written(memory: Memory | Outline) -> datetime:
    """When it got the words that it has."""
    return memory.updated if isinstance(memory, Outline) else memory.times.updated


def in_time(memories: Iterable[Memory]) -> list[Memory]:
    """Oldest first."""
    return sorted(memories, key=lambda memory: (written(memory), memory.n))


def has_topic(memory: Memory | Outline, topic: str, match: str) -> bool:
    """Whether its topic contains another, begins with it or is it (``contains``, ``prefix``, ``exact``)."""
    own = topic_of(memory)
    if match == "exact":
        return own == canonical_area(topic)
    own, wanted = own.casefold(), topic.strip().casefold()
    return own.startswith(wanted) if match == "prefix" else wanted in own


def has_tags(memory: Memory | Outline, tags: Iterable[str]) -> bool:
    """Whether it carries all of them, whatever their case."""
    wanted = {tag.strip().casefold() for tag in tags}
    return not wanted or wanted <= {tag.casefold() for tag in memory.tags}


def word_score(memory: Memory | Outline, query: str) -> int:
    """One for each word of the query that stands in its labels or text, two more where it is the topic, the type or a
    tag."""
    return _scorer(query)(memory)


def _scorer(query: str) -> Callable[[Memory | Outline], int]:
    """``word_score`` for one query. Labels are looked at once, however many memories carry them."""
    words = query[:_QUERY_CHARS].lower().split()
    if not words:
        return lambda _: 0

    @cache
    def of_labels(labels: tuple[str, ...]) -> tuple[str, int]:
        whole = {label.lower() for label in labels}
        return " ".join(labels).lower(), sum(2 for word in words if word in whole)

    def score(memory: Memory | Outline) -> int:
        text, whole = of_labels((type_of(memory), topic_of(memory), *memory.tags))
        text = f"{text} {memory.content.lower()}"
        return whole + sum([word in text for word in words])

    return score


def best_first(memories: Iterable[M], query: str) -> list[M]:
    """Those with any word of the query, the highest score first, of equal ones the newest."""
    score_of = _scorer(query)
    found = [(score, memory) for memory in memories if (score := score_of(memory)) > 0]
    found.sort(key=lambda pair: (pair[0], written(pair[1]), pair[1].n), reverse=True)
    return [memory for _, memory in found]


def for_context(memories: Iterable[M], query: str, *, now: datetime, least: int) -> list[M]:
    """Those worth a place in a pack, best first: by their score as far as it has not faded, then by type, then the
    newest. Those below ``least`` are left out."""
    score_of = _scorer(query)
    scored = [(score_of(memory), memory) for memory in memories]
    faded = [(_faded(score, now - written(memory)) if score else 0, memory) for score, memory in scored]
    kept = [(score, memory) for score, memory in faded if score >= least]
    kept.sort(key=lambda pair: (pair[0], _PRIORITY[type_of(pair[1])], written(pair[1]), pair[1].n), reverse=True)
    return [memory for _, memory in kept]


def _faded(score: int, age: timedelta) -> int:
    share = next((share for days, share in _FADING if age <= timedelta(days=days)), _OLD)
    return int(score * share + 0.5)


def pack(memories: Sequence[Memory], *, max_chars: int) -> str:
    """Memories as few characters as can be: a line for each type and topic, in the order in which they come.

    A text that does not fit is cut to 200 characters or to what is left; the pack ends where 20 or fewer are left.
    """
    lines = ["RM:"]
    left = max_chars - len(lines[0])
    for letter, group in _by_topic(memories):
        texts: list[str] = []
        for memory in group:
            separator = "; " if texts else f"\n{letter}/{quote(topic_of(memory))}: "
            room = left - len(separator)
            if room <= _LEAST_ROOM:
                break
            text = quote(memory.content)
            if len(text) > room:
                text = truncate_chars(" ".join(text.split()), min(room, _MOST_CUT) - 1) + "…"
            texts.append(separator + text)
            left -= len(separator) + len(text)
        lines += texts
    return "".join(lines)


def _by_topic(memories: Sequence[Memory]) -> Iterator[tuple[str, list[Memory]]]:
    places: dict[tuple[str, str], int] = {}
    keys = [(type_of(memory), topic_of(memory)) for memory in memories]
    for key in keys:
        places.setdefault(key, len(places))
    ordered = sorted(zip(keys, memories, strict=True), key=lambda pair: places[pair[0]])
    for (kind, _), group in groupby(ordered, key=lambda pair: pair[0]):
        yield "r" if kind == "preference" else kind[0], [memory for _, memory in group]


def duplicates(memories: Iterable[Memory]) -> list[tuple[Memory, tuple[Memory, ...]]]:
    """Of memories that are equal in time, type, topic, text, issue and tags the first, and the others."""
    groups: dict[object, list[Memory]] = {}
    for memory in in_time(memories):
        key = (written(memory), type_of(memory), topic_of(memory), memory.content, memory.issue, memory.tags)
        groups.setdefault(key, []).append(memory)
    return [(first, tuple(others)) for first, *others in groups.values() if others]
