from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from backstory.adapters.clock import SystemClock, UlidSource
from backstory.domain.ids import CROCKFORD, is_ulid
from backstory.ports.system import Clock, IdSource


def milliseconds(ulid: str) -> int:
    value = 0
    for char in ulid[:10]:
        value = value * 32 + CROCKFORD.index(char)
    return value


def test_the_clock_tells_aware_utc_time() -> None:
    clock: Clock = SystemClock()
    now = clock.now()
    assert now.tzinfo is UTC
    assert abs(now - datetime.now(UTC)) < timedelta(minutes=1)


def test_ids_carry_the_time_they_were_made() -> None:
    source: IdSource = UlidSource()
    made = source.new_id()
    assert is_ulid(made)
    assert abs(milliseconds(made) - datetime.now(UTC).timestamp() * 1000) < 60_000


def test_ids_of_one_millisecond_sort_in_the_order_they_were_made() -> None:
    source = UlidSource(now_ms=lambda: 1_714_557_600_000)
    made = [source.new_id() for _ in range(1000)]
    assert made == sorted(set(made))
    assert {milliseconds(ulid) for ulid in made} == {1_714_557_600_000}


def test_a_clock_that_steps_back_does_not_take_the_ids_with_it() -> None:
    times: Iterator[int] = iter([1000, 2000, 1500, 10, 2001])
    source = UlidSource(now_ms=lambda: next(times))
    made = [source.new_id() for _ in range(5)]
    assert made == sorted(set(made))
    assert [milliseconds(ulid) for ulid in made] == [1000, 2000, 2000, 2000, 2001]


def test_a_random_part_that_runs_over_moves_on_to_the_next_millisecond() -> None:
    source = UlidSource(now_ms=lambda: 1000)
    first = source.new_id()
    source._random = (1 << 80) - 1
    second = source.new_id()
    assert first < second
    assert milliseconds(second) == 1001


def test_threads_never_share_an_id() -> None:
    source = UlidSource(now_ms=lambda: 1000)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: source.new_id(), range(2000)))
    assert len(set(made)) == 2000


def test_two_sources_draw_different_ids_in_the_same_millisecond() -> None:
    one, two = UlidSource(now_ms=lambda: 1000), UlidSource(now_ms=lambda: 1000)
    assert {one.new_id() for _ in range(100)}.isdisjoint(two.new_id() for _ in range(100))
