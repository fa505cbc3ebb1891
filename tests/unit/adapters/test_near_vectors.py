"""Near vectors are found exactly, over the borders of blocks too."""

from __future__ import annotations

import math
from random import Random

import pytest

from backstory.adapters import near_vectors
from backstory.adapters.near_vectors import NearVectors

pytest.importorskip("numpy")


def pile(*vectors: tuple[float, ...]) -> NearVectors:
    near = NearVectors()
    for vector in vectors:
        near.add(vector)
    return near


def test_each_vector_finds_the_near_ones_before_it_nearest_first() -> None:
    turned = [(math.cos(math.radians(angle)), math.sin(math.radians(angle))) for angle in (0, 90, 10, 30, 12)]
    assert pile(*turned).earlier(at_least=math.cos(math.radians(31)), most=9) == [[], [], [0], [2, 0], [2, 0, 3]]
    assert pile(*turned).earlier(at_least=math.cos(math.radians(31)), most=1) == [[], [], [0], [2], [2]]


def test_those_with_another_near_come_by_how_near_it_is() -> None:
    turned = [(math.cos(math.radians(angle)), math.sin(math.radians(angle))) for angle in (0, 90, 20, 98, 35, 200)]
    assert pile(*turned).accompanied(at_least=math.cos(math.radians(16))) == [1, 3, 2, 4]
    assert pile(*turned).accompanied(at_least=math.cos(math.radians(21))) == [1, 3, 2, 4, 0]
    assert pile((1, 0)).accompanied(at_least=0.0) == pile().accompanied(at_least=0.0) == []


def test_length_does_not_count_and_nothing_is_near_to_nothing() -> None:
    assert pile((1, 0), (5, 0), (0, 0), (0, 0)).earlier(at_least=0.8, most=9) == [[], [0], [], []]
    assert pile().earlier(at_least=0.8, most=9) == []


def test_of_equally_near_ones_the_first_comes_first() -> None:
    assert pile((1, 0), (1, 0), (1, 0)).earlier(at_least=0.8, most=9) == [[], [0], [0, 1]]


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(3)
    vectors = [tuple(random.gauss(0, 1) for _ in range(4)) for _ in range(50)]
    whole = pile(*vectors).earlier(at_least=0.5, most=50)
    accompanied = pile(*vectors).accompanied(at_least=0.9)
    monkeypatch.setattr(near_vectors, "_BLOCK", 7)
    assert pile(*vectors).earlier(at_least=0.5, most=50) == whole
    assert pile(*vectors).accompanied(at_least=0.9) == accompanied
    assert 0 < len(accompanied) < 50
