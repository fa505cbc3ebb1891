"""Words of many texts compared with a query's at once."""

from __future__ import annotations

import math
import random

import pytest

pytest.importorskip("numpy")

from backstory.adapters.word_agreement import agreements, nearest_words
from backstory.domain.ids import MemoryId
from backstory.ports.models import WordVectors

WIDTH = 8


def some(count: int, seed: int) -> WordVectors:
    dice = random.Random(seed)
    matrix = bytes(dice.randrange(256) for _ in range(count * WIDTH))
    return WordVectors(words=tuple(map(str, range(count))), dimension=WIDTH, matrix=matrix)


def rows(matrix: bytes) -> list[list[int]]:
    signed = [number - 256 if number > 127 else number for number in matrix]
    return [signed[start : start + WIDTH] for start in range(0, len(signed), WIDTH)]


def cosine(one: list[int], other: list[int]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))


@pytest.mark.parametrize("texts", [1, 5, 40])
def test_each_text_has_the_cosine_of_its_nearest_word(texts: int) -> None:
    asked = some(3, seed=0)
    held = {n: some(1 + n % 7, seed=n + 1).matrix for n in range(texts)}
    expected = [
        max(cosine(row, word) for row in rows(matrix)) for matrix in held.values() for word in rows(asked.matrix)
    ]
    found = nearest_words(asked, held)
    assert list(found) == list(held)
    assert [number for row in found.values() for number in row] == pytest.approx(expected, abs=1e-5)


def test_the_other_way_round_is_the_mean_over_a_texts_own_words() -> None:
    asked, held = some(3, seed=0), some(4, seed=1)
    (found,) = agreements(asked, {MemoryId("m"): held.matrix}).values()
    nearest = [max(cosine(row, word) for word in rows(asked.matrix)) for row in rows(held.matrix)]
    assert found.answered == pytest.approx(sum(nearest) / 4, abs=1e-5)
    assert found.words == 4
    assert list(found.nearest) == pytest.approx(nearest_words(asked, {0: held.matrix})[0])


def test_a_word_without_a_direction_agrees_with_nothing() -> None:
    assert nearest_words(some(2, seed=0), {0: bytes(WIDTH)}) == {0: [0.0, 0.0]}


def test_what_does_not_fit_is_left_out() -> None:
    asked = some(2, seed=0)
    assert (
        nearest_words(asked, {0: b"", 1: bytes(WIDTH + 1)}) == nearest_words(some(0, seed=0), {0: bytes(WIDTH)}) == {}
    )


def test_words_are_taken_by_their_places() -> None:
    words = some(4, seed=0)
    taken = words.at([3, 1])
    assert taken.words == ("3", "1")
    assert rows(taken.matrix) == [rows(words.matrix)[3], rows(words.matrix)[1]]
    assert words.at([]) == WordVectors(words=(), dimension=WIDTH, matrix=b"")
