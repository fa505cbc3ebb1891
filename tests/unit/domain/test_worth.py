"""What a memory is worth over time, part by part."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from backstory.domain.lifecycle import confirm, found_irrelevant, found_useful
from backstory.domain.memory import Counters, Source
from backstory.domain.worth import parts, usefulness, worth
from backstory.testing.fakes import START, sample_memory

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("fields", "days", "expected"),
    [
        ({"source": Source.EXPLICIT, "weight": 0.75}, 0, 3.5),
        ({"source": Source.CAPTURED, "weight": 0.75}, 0, 3.5),
        ({"source": Source.DREAMED, "weight": 0.25}, 0, 1.0),
        ({"source": Source.IMPORTED, "weight": 0.5}, 0, 2.0),
        ({"source": Source.EXPLICIT, "weight": 1.0}, 45, 4.5 / math.e),
        ({"source": Source.DREAMED, "weight": 0.25}, 90, math.exp(-2)),
        ({"source": Source.DREAMED, "weight": 0.25, "pinned": True}, 900, 1.0),
        ({"source": Source.DREAMED, "weight": 0.25, "counters": Counters(helpful=2, irrelevant=1)}, 0, 1.05),
        ({"source": Source.DREAMED, "weight": 0.0, "counters": Counters(irrelevant=3)}, 45, -0.45 / math.e),
    ],
)
def test_worth_is_weight_statement_and_use_faded_since_the_last_confirmation(
    fields: dict[str, Any], days: int, expected: float
) -> None:
    # Any: the fields of Memory
    assert worth(sample_memory(**fields), START + days * DAY) == pytest.approx(expected, abs=1e-12)


def test_the_parts_make_up_the_whole() -> None:
    memory = sample_memory(weight=0.5, counters=Counters(helpful=1))
    shown = parts(memory, START + 9 * DAY)
    assert (shown.base, shown.stated, shown.usefulness, shown.age) == (2.0, 0.5, 0.1, 9 * DAY)
    assert shown.total == worth(memory, START + 9 * DAY) == pytest.approx(2.6 * math.exp(-0.2))


def test_feedback_is_bounded_on_both_sides() -> None:
    assert usefulness(sample_memory(counters=Counters(helpful=1000))) == 0.5
    assert usefulness(sample_memory(counters=Counters(irrelevant=1000))) == -0.5
    assert usefulness(sample_memory(counters=Counters(helpful=1000, irrelevant=1000))) == pytest.approx(-0.25)


def test_a_memory_of_the_future_has_not_faded() -> None:
    assert parts(sample_memory(at=START + DAY), START).decay == 1.0


def test_being_shown_a_hundred_times_is_worth_nothing() -> None:
    seen = Counters(surfaced=100, recalled=100, sessions=100)
    memory = sample_memory()
    often = replace(memory, counters=seen, times=replace(memory.times, surfaced=START + DAY, used=START + DAY))
    assert parts(often, START + DAY) == parts(memory, START + DAY)


def test_confirming_refreshes_and_strengthens_up_to_a_cap() -> None:
    memory = sample_memory(weight=0.75)
    later = START + 45 * DAY
    assert worth(confirm(memory, now=later), later) == 4.0
    for _ in range(20):
        memory = confirm(memory, now=later)
    assert worth(memory, later) == 4.5


def test_useful_refreshes_and_raises_while_irrelevant_only_lowers() -> None:
    memory = sample_memory(weight=0.25, source=Source.DREAMED)
    later = START + 45 * DAY
    assert worth(found_useful(memory, now=later), later) == pytest.approx(1.1)
    ignored = found_irrelevant(memory)
    assert ignored.times == memory.times
    assert worth(ignored, later) == pytest.approx(0.85 / math.e)
