"""Which vectors of many are near each other: compared in blocks of a matrix. Where they come from is elsewhere."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

from backstory.ports.models import Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLOCK = 512
_ROUNDING = 1e-6
"""What stores keep, and what seeds computed with, has half the digits."""


class NearVectors:
    """Vectors of one length that are added one after the other. numpy is imported when they are compared.

    Cost: 4 bytes a number; about 1 s to compare 10,000 vectors of 384 numbers with each other.
    """

    def __init__(self) -> None:
        self._numbers = array("f")
        self._count = 0

    def add(self, vector: Vector) -> None:
        """Add one vector, of any length but 0."""
        self._numbers.extend(vector)
        self._count += 1

    def earlier(self, *, at_least: float, most: int) -> list[Sequence[int]]:
        """For each vector in order, the places of those before it whose cosine with it is at least so much: the nearest
        first, then the first; at most ``most`` of them."""
        if not self._count:
            return []
        unit = self._unit()
        found: list[Sequence[int]] = []
        for start in range(0, self._count, _BLOCK):
            block = unit[start : start + _BLOCK]
            cosines = block @ unit[: start + len(block)].T
            found += [_nearest(row[: start + place], at_least, most) for place, row in enumerate(cosines)]
        return found

    def accompanied(self, *, at_least: float) -> list[int]:
        """The places of those that have another whose cosine with it is at least so much: those with the nearest first,
        then the first."""
        if not self._count:
            return []
        import numpy

        unit = self._unit()
        nearest = numpy.empty(self._count, dtype=numpy.float32)
        for start in range(0, self._count, _BLOCK):
            cosines = unit[start : start + _BLOCK] @ unit.T
            own = numpy.arange(len(cosines))
            cosines[own, start + own] = -numpy.inf
            nearest[start : start + _BLOCK] = cosines.max(axis=1)
        order = numpy.argsort(-nearest, kind="stable")
        found: list[int] = order[nearest[order] >= at_least - _ROUNDING].tolist()
        return found

    def _unit(self) -> NDArray[np.float32]:
        import numpy

        rows = numpy.frombuffer(self._numbers, dtype=numpy.float32).reshape(self._count, -1)
        unit: NDArray[np.float32] = rows / numpy.maximum(numpy.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        return unit


def _nearest(cosines: NDArray[np.float32], at_least: float, most: int) -> Sequence[int]:
    import numpy

    near = numpy.flatnonzero(cosines >= at_least - _ROUNDING)
    order = numpy.argsort(-cosines[near], kind="stable")[:most]
    nearest: list[int] = near[order].tolist()
    return nearest
