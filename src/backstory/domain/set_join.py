"""Which of many sets have much in common, without comparing each with each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

MOST_LISTED = 400
"""Sets remembered by one member; a member of more than so many tells little, and rarer ones find the same sets."""


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
        self._uses = Counter(member for members in sets for member in members)
        self._listed: dict[str, list[int]] = {}
        self._sets: dict[int, frozenset[str]] = {}

    def like(self, members: frozenset[str]) -> list[tuple[float, int]]:
        """The places of the sets that have at least the threshold in common with this one, each after its share: the
        most alike first, then the one that was added first."""
        seen = Counter[int]()
        for member in self._rarest(members):
            seen.update(self._listed.get(member, ())[-MOST_LISTED:])
        enough = min(self._shared, self._least(members))
        found = [
            (share, place)
            for place, count in seen.items()
            if count >= enough and (share := self._share(members, self._sets[place])) >= self._at_least
        ]
        return sorted(found, key=lambda item: (-item[0], item[1]))

    def add(self, place: int, members: frozenset[str]) -> None:
        """Remember a set under a place."""
        self._sets[place] = members
        for member in self._rarest(members):
            listed = self._listed.setdefault(member, [])
            listed.append(place)
            if len(listed) > 2 * MOST_LISTED:
                del listed[:MOST_LISTED]

    def _share(self, members: frozenset[str], others: frozenset[str]) -> float:
        smaller, larger = sorted((len(members), len(others)))
        if smaller < self._at_least * larger:
            return 0.0
        shared = len(members & others)
        return shared / (smaller + larger - shared)

    def _least(self, members: Collection[str]) -> int:
        """How many members a set must share with any other that is like it."""
        return math.ceil(self._at_least * len(members) - 1e-9)

    def _rarest(self, members: Collection[str]) -> Sequence[str]:
        count = len(members) - self._least(members) + self._shared
        return sorted(members, key=lambda member: (self._uses[member], member))[:count]
