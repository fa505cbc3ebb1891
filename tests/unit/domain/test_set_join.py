"""Sets with much in common are found without comparing each with each, and none is missed."""

from __future__ import annotations

from random import Random

import pytest

from backstory.domain.set_join import SetJoin


def share(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a or b else 0.0


@pytest.mark.parametrize(("at_least", "shared"), [(0.8, 4), (0.5, 2), (0.4, 2), (0.5, 1)])
def test_the_same_sets_are_found_as_by_comparing_all(at_least: float, shared: int) -> None:
    random = Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    sets = [frozenset(random.sample(letters[: random.randint(6, 26)], random.randint(1, 6))) for _ in range(120)]
    sets += [members | {random.choice(letters)} for members in sets[:60]]
    join = SetJoin(sets, at_least=at_least, shared=shared)
    for place, members in enumerate(sets):
        expected = sorted(
            (-share(members, other), earlier)
            for earlier, other in enumerate(sets[:place])
            if share(members, other) >= at_least
        )
        assert [(-alike, earlier) for alike, earlier in join.like(members, most=1000)] == expected
        assert [(-alike, earlier) for alike, earlier in join.like(members, most=3)] == expected[:3]
        join.add(place, members)


def test_an_empty_set_is_like_nothing() -> None:
    join = SetJoin([frozenset(), frozenset("a")], at_least=0.5, shared=2)
    join.add(0, frozenset())
    assert join.like(frozenset(), most=9) == []
    assert join.like(frozenset("a"), most=9) == []
