"""Which of many sets have much in common, without comparing each with each."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

MOST_LISTED = 400
"""Sets remembered by one member; a member of more than so many tells little, and rarer ones find the same sets."""

_ROUNDING = 1e-9
_SIGN_BITS = 1024  # ten times the members of a short text's set, so that few have a bit together


class SetJoin:
    """Sets that are added one after the other, each asked for what it has in common with those before it.

    Two sets whose Jaccard index reaches the threshold share some of the first few of their members by rarity (prefix
    filtering: Chaudhuri, Ganti and Kaushik, ICDE 2006; more than one: Wang, Li and Feng, SIGMOD 2012), so only those
    that do are compared. Exact while no member is among the rarest of more than ``MOST_LISTED`` sets; of those, the
    last ones are found.
    """

    def __init__(self, sets: Iterable[Collection[str]], *, at_least: float, shared: int) -> None:
        """``sets`` are all that will be added: how rare a member is, is counted over them. ``shared`` is how many rare
        members must be shared before two sets are compared: more of them spare comparing, and cost looking up."""
        self._at_least = at_least
        self._shared = shared
        uses = Counter(member for members in sets for member in members)
        self._rank = {member: rank for rank, member in enumerate(sorted(uses, key=lambda name: (uses[name], name)))}
        self._listed: dict[str, list[int]] = {}
        self._sets: dict[int, frozenset[str]] = {}
        self._signs: dict[int, int] = {}
        self._last: tuple[frozenset[str], Sequence[str], int] | None = None

    def like(self, members: frozenset[str], *, most: int) -> list[tuple[float, int]]:
        """The places of the sets that have at least the threshold in common with this one, each after its share: the
        ``most`` that are most alike, the most alike first, then the one that was added first."""
        size, (rarest, sign) = len(members), self._read(members)
        hidden = size - sign.bit_count()  # members that have a bit together with another
        best: list[tuple[float, int]] = []  # a heap: the least alike of them first
        least = self._at_least  # nothing below it matters
        for bits, place in self._by_common_bits(rarest, sign, enough=min(self._shared, self._least(members))):
            common = bits + hidden
            if common < least * size - _ROUNDING:
                break
            others = self._sets[place]
            if min(common, len(others)) < least * (size + max(0, len(others) - common)) - _ROUNDING:
                continue
            if (share := self._share(members, others)) < least:
                continue
            heapq.heappush(best, (share, -place))
            if len(best) > most:
                heapq.heappop(best)
            if len(best) == most:
                least = best[0][0]
        return [(share, -place) for share, place in sorted(best, reverse=True)]

    def add(self, place: int, members: frozenset[str]) -> None:
        """Remember a set under a place."""
        rarest, sign = self._read(members)
        self._sets[place], self._signs[place] = members, sign
        for member in rarest:
            listed = self._listed.setdefault(member, [])
            listed.append(place)
            if len(listed) > 2 * MOST_LISTED:
                del listed[:MOST_LISTED]

    def _by_common_bits(self, rarest: Sequence[str], sign: int, *, enough: int) -> list[tuple[int, int]]:
        """The places that have enough of the rarest members, each after how many bits of the sign its own has; those
        with most of them first.

        Two sets have no more members in common than bits, and those members that share a bit.
        """
        seen = Counter[int]()
        for member in rarest:
            seen.update(self._listed.get(member, ())[-MOST_LISTED:])
        signs = self._signs
        found = [((sign & signs[place]).bit_count(), place) for place, count in seen.items() if count >= enough]
        found.sort(reverse=True)
        return found

    def _read(self, members: frozenset[str]) -> tuple[Sequence[str], int]:
        """The rarest members, and the sign: a number with a bit for each member. Asked twice in a row of most sets."""
        if self._last is None or self._last[0] is not members:
            sign = 0
            for member in members:
                sign |= 1 << self._rank[member] % _SIGN_BITS
            self._last = members, self._rarest(members), sign
        return self._last[1:]

    def _share(self, members: frozenset[str], others: frozenset[str]) -> float:
        smaller, larger = sorted((len(members), len(others)))
        if smaller < self._at_least * larger:
            return 0.0
        shared = len(members & others)
        return shared / (smaller + larger - shared)

    def _least(self, members: Collection[str]) -> int:
        """How many members a set must share with any other that is like it."""
        return math.ceil(self._at_least * len(members) - _ROUNDING)

    def _rarest(self, members: Collection[str]) -> Sequence[str]:
        count = len(members) - self._least(members) + self._shared
        return sorted(members, key=self._rank.__getitem__)[:count]
