"""Vectors of one model as a matrix in the process, searched exactly. Where their bytes are kept is the store's."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backstory.domain.ids import MemoryId
from backstory.ports.index import VectorHit
from backstory.ports.models import Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FIRST_LOOK = 64  # nearest vectors to test against the selection before looking further
_LOOK_AT_MOST = 2048  # beyond this, asking which rows are selected is cheaper than testing the nearest

Selected = Mapping[int, str]
"""Selected memories: number to id."""


class VectorMatrix:
    """Unit rows, each beside the number of its memory and the sequence number under which the store keeps it.

    Rows stand in circles (``domain.scope.circle``), so that a search multiplies only those its viewer may see. numpy is
    imported when one is made. Cost: about 0.2 ms for each 1,000 rows in the viewer's circles.
    """

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._circles: dict[str, _Rows] = {}
        self.last_seq = 0
        """The highest sequence number it was ever given; 0 at first."""

    def keep(self, seqs: Iterable[int]) -> None:
        """Drop every row whose sequence number is not among these."""
        import numpy

        wanted = numpy.fromiter(seqs, dtype=numpy.int64)
        kept = ((name, rows.only(numpy.isin(rows.seqs, wanted))) for name, rows in self._circles.items())
        self._circles = {name: rows for name, rows in kept if len(rows.seqs)}

    def append(self, rows: Sequence[tuple[int, int, bytes, str]]) -> None:
        """Add rows as (sequence number, number of the memory, vector as ``pack`` made it, circle), by ascending
        sequence number."""
        if not rows:
            return
        by_circle: dict[str, list[tuple[int, int, bytes, str]]] = {}
        for row in rows:
            by_circle.setdefault(row[3], []).append(row)
        for name, added in by_circle.items():
            present = self._circles.get(name)
            block = _Rows.unpack(added, self._dimension)
            self._circles[name] = block if present is None else present.with_more(block)
        self.last_seq = rows[-1][0]

    def nearest(
        self,
        vector: Vector,
        *,
        circles: frozenset[str] | None,
        selected_among: Callable[[Sequence[int]], Selected],
        all_selected: Callable[[], Selected],
        limit: int,
    ) -> list[VectorHit]:
        """The nearest selected memories, nearest first, then the highest number.

        ``circles`` are those that can hold selected memories, None stands for all. Looks further down the order until
        enough are selected, so it is exact. ``selected_among`` tells which of some numbers are selected,
        ``all_selected`` which of all.
        """
        import numpy

        searched = [rows for name, rows in self._circles.items() if circles is None or name in circles]
        if not searched:
            return []
        query = numpy.asarray(vector, dtype=numpy.float32)
        similarity = numpy.concatenate([rows.vectors @ query for rows in searched])
        numbers = numpy.concatenate([rows.numbers for rows in searched])
        order = _nearest_first(similarity)
        selected: dict[int, str] = {}
        looked, look = 0, max(_FIRST_LOOK, limit + limit // 4)
        while look <= len(order):
            selected |= selected_among(numbers[order[looked:look]].tolist())
            if len(selected) >= limit:
                return _hits(similarity[order[:look]], numbers[order[:look]], selected, limit)
            # as far as the share selected so far promises enough, and a little further
            looked, look = look, 1 + look * 5 * limit // (4 * max(1, len(selected)))
        return _hits(similarity, numbers, all_selected(), limit)


@dataclass(frozen=True, slots=True)
class _Rows:
    seqs: NDArray[np.int64]
    numbers: NDArray[np.int64]
    vectors: NDArray[np.float32]

    @classmethod
    def unpack(cls, rows: Sequence[tuple[int, int, bytes, str]], dimension: int) -> _Rows:
        import numpy

        packed = b"".join(row[2] for row in rows)
        return cls(
            numpy.array([row[0] for row in rows], dtype=numpy.int64),
            numpy.array([row[1] for row in rows], dtype=numpy.int64),
            numpy.frombuffer(packed, dtype="<f2").astype(numpy.float32).reshape(len(rows), dimension),
        )

    def only(self, kept: NDArray[np.bool_]) -> _Rows:
        return _Rows(self.seqs[kept], self.numbers[kept], self.vectors[kept])

    def with_more(self, more: _Rows) -> _Rows:
        import numpy

        return _Rows(
            numpy.concatenate([self.seqs, more.seqs]),
            numpy.concatenate([self.numbers, more.numbers]),
            numpy.concatenate([self.vectors, more.vectors]),
        )


def _hits(
    similarity: NDArray[np.float32], numbers: NDArray[np.int64], selected: Selected, limit: int
) -> list[VectorHit]:
    import numpy

    kept = numpy.isin(numbers, numpy.fromiter(selected, dtype=numpy.int64, count=len(selected)))
    similarity, numbers = similarity[kept], numbers[kept]
    order = numpy.lexsort((-numbers, -similarity))[:limit]
    return [
        VectorHit(id=MemoryId(selected[n]), similarity=cosine)
        for n, cosine in zip(numbers[order].tolist(), similarity[order].tolist(), strict=True)
    ]


def pack(vector: Vector) -> bytes:
    """A vector as little-endian float16."""
    import numpy

    return numpy.asarray(vector, dtype="<f2").tobytes()


def unpack(packed: bytes) -> Vector:
    """The vector that ``pack`` made these bytes of, as single-precision numbers."""
    import numpy

    return array("f", numpy.frombuffer(packed, dtype="<f2").astype(numpy.float32).tobytes())


def cosines(packed: Sequence[bytes], vector: Vector) -> list[float]:
    """The cosines of packed unit vectors with one more, in their order."""
    if not packed:
        return []
    import numpy

    matrix: NDArray[np.float32] = numpy.frombuffer(b"".join(packed), dtype="<f2").astype(numpy.float32)
    found: list[float] = (matrix.reshape(len(packed), -1) @ numpy.asarray(vector, dtype=numpy.float32)).tolist()
    return found


def nearest(rows: Sequence[tuple[int, bytes]], vector: Vector, *, limit: int) -> list[tuple[int, float]]:
    """The nearest of rows as (number, packed unit vector), with their cosines; of equal ones the highest number."""
    if not rows:
        return []
    import numpy

    numbers = numpy.fromiter((number for number, _ in rows), dtype=numpy.int64, count=len(rows))
    similarity = numpy.asarray(cosines([packed for _, packed in rows], vector))
    least = numpy.partition(similarity, -limit)[-limit] if limit < len(rows) else -numpy.inf
    among = numpy.flatnonzero(similarity >= least)  # all that tie for the last place
    order = among[numpy.lexsort((-numbers[among], -similarity[among]))][:limit]
    return list(zip(numbers[order].tolist(), similarity[order].tolist(), strict=True))


def _nearest_first(similarity: NDArray[np.float32]) -> NDArray[np.intp]:
    """The rows of the greatest similarity in order, at most ``_LOOK_AT_MOST``."""
    import numpy

    if len(similarity) <= _LOOK_AT_MOST:
        return numpy.argsort(-similarity)
    best = numpy.argpartition(-similarity, _LOOK_AT_MOST)[:_LOOK_AT_MOST]
    return best[numpy.argsort(-similarity[best])]
