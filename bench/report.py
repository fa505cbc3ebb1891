"""What a bench says: percentiles, a table for people, and one JSON object for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from backstory.__about__ import __version__


class Unavailable(Exception):
    """A bench cannot run here; the message says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The outcome of one bench. ``text`` is for people, the rest for JSON: ``figures`` of Backstory, ``others`` of
    the systems beside it by name, and ``conditions``, what else was measured."""

    bench: str
    store: str
    data: str
    figures: dict[str, object]
    text: str
    others: Mapping[str, object] = field(default_factory=dict)
    conditions: Mapping[str, object] = field(default_factory=dict)

    def as_text(self) -> str:
        """The tables, under a line that says what was measured."""
        return f"{self.bench}: store {self.store}, data {self.data}, Backstory {__version__}\n\n{self.text}"

    def as_json(self) -> str:
        """One object: bench, store, data, version, the figures under ``systems``, and the conditions, if any."""
        whole = {
            "bench": self.bench,
            "store": self.store,
            "data": self.data,
            "version": __version__,
            "systems": {"backstory": self.figures, **self.others},
            **self.conditions,
        }
        return json.dumps(whole, indent=2, ensure_ascii=False)


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: the smallest value that at least ``share`` of all values do not exceed."""
    if not values:
        raise ValueError("no values")
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, 95th percentile and number of measurements, in the unit of the values."""
    return {
        "p50": round(percentile(values, 0.5), 3),
        "p95": round(percentile(values, 0.95), 3),
        "n": len(values),
    }


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns of text: the first to the left, the others to the right."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) if place == 0 else cell.rjust(width) for place, (cell, width) in enumerate(line))
        for line in (list(zip(row, widths, strict=True)) for row in cells)
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
