"""Groups of memories that say the same, and which of them stays.

Three passes, from the surest to the boldest: the same words, nearly the same wording, near in meaning. What differs in
a number, a path or a name is told, never removed. What the one that stays takes over is ``merged_memory.py``; reading
memories, making vectors and writing is in ``services/consolidate.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from backstory.domain.ids import MemoryId
from backstory.domain.memory import Active, Conflicted, Memory, Sensitivity, status_at
from backstory.domain.near_duplicates import Sameness, Verdict
from backstory.domain.provenance import trust
from backstory.domain.restatement import readers
from backstory.domain.said_words import BORDER, is_spaced, said_words
from backstory.domain.same_meaning import (
    ALIKE_IN_WORDS,
    may_be_alike,
    may_be_in_other_words,
    said_alike,
    said_in_other_words,
)
from backstory.domain.scope import Audience
from backstory.domain.set_join import SetJoin
from backstory.domain.text import normalise
from backstory.domain.worth import DERIVED

ALIKE = 0.8
"""Jaccard index of trigrams from which two texts are one wording (ocpg's)."""
ALIKE_UNSPACED = 0.4
"""The same for scripts without gaps between words, where one other sign changes three trigrams of a short text."""
NEAR = 0.83
"""Cosine from which two texts are near in meaning (ocpg's)."""
MOST_GROUPS = 25
"""Groups of one pass in one run, so that a person can read what a run does."""
MOST_COMPARED = 16
"""Earlier memories that one is compared with, the most alike first; it bounds the work among lines of one template."""

# Lines that programs write of each task or session: alike by their template, and each about something else.
_TEMPLATES = (
    r"(?i:background task bg.)",
    r"(?i:session compacting for project)",
    r"For APP.{0,3}\d+.{0,3}\(",
)


class Pass(StrEnum):
    """By what memories are found to say the same, in the order in which it is tried."""

    EXACT = "exact"
    WORDING = "wording"
    MEANING = "meaning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Memories that say the same: the one that stays, and those that it replaces."""

    found_by: Pass
    kept: Memory
    removed: tuple[Memory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubtful:
    """Two memories that are alike and differ in something; both stay, and ``reasons`` say in what they differ."""

    found_by: Pass
    memory: Memory
    other: Memory
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one pass found, at most ``MOST_GROUPS`` of either; ``more_groups`` and ``more_doubtful`` count the rest."""

    groups: tuple[Group, ...] = ()
    doubtful: tuple[Doubtful, ...] = ()
    more_groups: int = 0
    more_doubtful: int = 0
    gone: frozenset[MemoryId] = frozenset()
    """Those that are replaced, or will be by a further run: no further pass of this run looks at them."""
    told: frozenset[MemoryId] = frozenset()
    """The ``other`` of each pair, also of those not shown: one pair is enough to look at for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What the passes before this one did. ``staying`` took another's place: others may join them, but none takes
    theirs. ``told`` are those that a pair was told of already."""

    staying: frozenset[MemoryId] = frozenset()
    told: frozenset[MemoryId] = frozenset()

    def and_then(self, found: Found) -> Before:
        """The same with one more pass."""
        stayed = {group.kept.id for group in found.groups}
        return Before(staying=self.staying | stayed, told=self.told | found.told)


NOTHING_BEFORE = Before()


def comparable(memories: Iterable[Memory], *, now: datetime, audience: Audience) -> list[Memory]:
    """The memories that may take part, those first that stay before others: the most trusted, then what was stated
    before what was distilled (which may fade and be pruned), then the pinned, then the newest.

    Left out is what is not current, what is in conflict with another (somebody has to decide that first), lines that
    programs write by a template, and, where a model is to read of it, what is private or local-only.
    """
    memories = list(memories)
    disputed = {memory.status.against for memory in memories if isinstance(memory.status, Conflicted)}
    kept = [
        memory
        for memory in memories
        if isinstance(status_at(memory, now), Active)
        and memory.id not in disputed
        and not is_templated(memory.content)
        and (audience is Audience.PERSON or memory.sensitivity is Sensitivity.NORMAL)
    ]
    return sorted(kept, key=_standing, reverse=True)


def is_templated(text: str) -> bool:
    """Whether a text is a line that a program writes of each of its tasks or sessions."""
    return any(re.search(pattern, text) for pattern in _TEMPLATES)


def same_words(memories: Sequence[Memory]) -> Found:
    """Those that say the same to the letter, but for case and spacing.

    ``memories`` here and in the other passes are ``comparable``, in its order. Linear in their texts.
    """
    by_text: dict[object, list[int]] = {}

    def partners(place: int) -> list[int]:
        known = by_text.setdefault((normalise(memories[place].content), *readers(memories[place])), [])
        known.append(place)
        return known[:-1]

    return _found(Pass.EXACT, memories, partners, _BY_WORDING, NOTHING_BEFORE)


def like_worded(memories: Sequence[Memory], before: Before = NOTHING_BEFORE) -> Found:
    """Those whose wordings are alike: three characters after three (``ALIKE``), or word by word."""
    return _found(Pass.WORDING, memories, _Wordings(memories).partners, _BY_WORDING, before)


def near_in_meaning(
    memories: Sequence[Memory], near: Mapping[int, Sequence[int]], before: Before = NOTHING_BEFORE
) -> Found:
    """Those whose vectors are near each other. ``near`` has, for a place in ``memories``, the earlier places whose
    cosine with it is at least ``NEAR``, nearest first."""
    return _found(Pass.MEANING, memories, lambda place: near.get(place, ()), _BY_MEANING, before)


def _standing(memory: Memory) -> tuple[object, ...]:
    return trust(memory.origin), memory.source not in DERIVED, memory.pinned, memory.times.learned, memory.n


def _found(
    found_by: Pass,
    memories: Sequence[Memory],
    partners: Callable[[int], Sequence[int]],
    judge: _Judge,
    before: Before,
) -> Found:
    """Go through the memories in order; each joins an earlier one that says the same, or stays for itself.

    ``partners`` names the earlier ones worth comparing, best first. One that joined another has no followers, so
    whatever goes was itself compared with what stays.
    """
    removed: dict[int, list[int]] = {}
    doubtful: dict[int, tuple[int, Sameness]] = {}
    joined = set[int]()
    for place, memory in enumerate(memories):
        for earlier in partners(place)[:MOST_COMPARED]:
            if earlier in joined or readers(memories[earlier]) != readers(memory):
                continue
            is_told = place in doubtful or memory.id in before.told
            if is_told and not judge.may_be_same(memories[earlier].content, memory.content):
                continue  # one doubt of it is enough
            sameness = _judged(memories[earlier], memory, judge.compare)
            if sameness.verdict is Verdict.SAME and memory.id not in before.staying:
                removed.setdefault(earlier, []).append(place)
                joined.add(place)
                doubtful.pop(place, None)
                break
            if sameness.verdict is Verdict.UNCERTAIN and memory.id not in before.told:
                doubtful.setdefault(place, (earlier, sameness))
    groups = [
        Group(found_by=found_by, kept=memories[kept], removed=tuple(memories[place] for place in places))
        for kept, places in removed.items()
    ]
    pairs = [
        Doubtful(found_by=found_by, memory=memories[kept], other=memories[place], reasons=sameness.reasons)
        for place, (kept, sameness) in doubtful.items()
    ]
    return Found(
        groups=tuple(groups[:MOST_GROUPS]),
        doubtful=tuple(pairs[:MOST_GROUPS]),
        more_groups=max(0, len(groups) - MOST_GROUPS),
        more_doubtful=max(0, len(pairs) - MOST_GROUPS),
        gone=frozenset(memories[place].id for place in joined),
        told=frozenset(memories[place].id for place in doubtful),
    )


def _judged(kept: Memory, other: Memory, compare: Callable[[str, str], Sameness]) -> Sameness:
    """The verdict on two texts; where they are filed under different areas or issues, they may be about two things."""
    sameness = compare(kept.content, other.content)
    differing = [
        f"{label}: {one} against {two}"
        for label, one, two in (("area", kept.area, other.area), ("issue", kept.issue, other.issue))
        if one and two and one != two
    ]
    if sameness.verdict is Verdict.SAME and differing:
        return Sameness(verdict=Verdict.UNCERTAIN, reasons=tuple(differing))
    return sameness


@dataclass(frozen=True, slots=True)
class _Judge:
    """How a pass compares two texts. Where it may not find them the same, ``may_be_same`` mostly says so, and fast."""

    compare: Callable[[str, str], Sameness]
    may_be_same: Callable[[str, str], bool]


_BY_WORDING = _Judge(said_alike, may_be_alike)
_BY_MEANING = _Judge(said_in_other_words, may_be_in_other_words)


class _Wordings:
    """Finds, for one memory after the other, the earlier ones of like wording."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self._letters = [_windows(memory.content) for memory in memories]
        self._words = [frozenset(said_words(memory.content)) - {BORDER} for memory in memories]
        self._spaced = [is_spaced(memory.content) for memory in memories]
        self._by_letters = SetJoin(self._letters, at_least=ALIKE, shared=4)
        self._by_words = SetJoin(self._words, at_least=ALIKE_IN_WORDS, shared=2)
        unspaced = (letters for letters, is_so in zip(self._letters, self._spaced, strict=True) if not is_so)
        self._by_signs = SetJoin(unspaced, at_least=ALIKE_UNSPACED, shared=2)

    def partners(self, place: int) -> list[int]:
        """The earlier places of like wording that are worth comparing, most alike first; this one counts as earlier
        from now on."""
        letters, words = self._letters[place], self._words[place]
        joins = [(self._by_letters, letters), (self._by_words, words)]
        if not self._spaced[place]:
            joins.append((self._by_signs, letters))
        share: dict[int, float] = {}
        for join, members in joins:
            for alike, earlier in join.like(members, most=MOST_COMPARED):
                share[earlier] = max(alike, share.get(earlier, 0.0))
            join.add(place, members)
        # what is among the first by its highest share is among them in the join that has it
        return sorted(share, key=lambda earlier: (-share[earlier], earlier))[:MOST_COMPARED]


def _windows(text: str) -> frozenset[str]:
    """All runs of three characters, without marks at the edges (``similarity.trigrams`` has them): ``ALIKE`` is of
    these."""
    normal = normalise(text)
    return frozenset(normal[start : start + 3] for start in range(len(normal) - 2))
