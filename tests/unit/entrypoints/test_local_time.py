"""The person's own zone, summer and winter."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from backstory.domain.time_range import days
from backstory.entrypoints.local_time import LocalZone, shown_day, shown_time


@pytest.fixture(autouse=True)
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The rule itself rather than a name, so that no time zone database is needed."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_each_half_of_the_year_has_its_offset() -> None:
    assert datetime(2026, 1, 15, tzinfo=LocalZone()).utcoffset() == timedelta(hours=1)
    assert datetime(2026, 7, 15, tzinfo=LocalZone()).utcoffset() == timedelta(hours=2)


def test_a_moment_is_shown_in_the_zone_it_had_there() -> None:
    assert shown_time(datetime(2026, 1, 15, 23, 30, tzinfo=UTC)) == "2026-01-16 00:30"
    assert shown_time(datetime(2026, 7, 15, 21, 30, tzinfo=UTC)) == "2026-07-15 23:30"
    assert shown_day(datetime(2026, 7, 15, 22, 30, tzinfo=UTC)) == "2026-07-16"


def test_the_day_the_clock_changes_has_23_hours() -> None:
    day = datetime(2026, 3, 29).date()
    span = days(day, day, LocalZone())
    assert span.since is not None
    assert span.until is not None
    assert span.until - span.since == timedelta(hours=23) - timedelta(microseconds=1)


def test_the_hour_that_comes_twice_is_told_apart() -> None:
    first, second = (datetime(2026, 10, 25, 2, 30, tzinfo=LocalZone(), fold=fold) for fold in (0, 1))
    assert (first.utcoffset(), second.utcoffset()) == (timedelta(hours=2), timedelta(hours=1))


@pytest.mark.parametrize("edge", [datetime.min, datetime.max])
def test_the_edges_of_the_calendar_are_no_error(edge: datetime) -> None:
    assert shown_day(edge.replace(tzinfo=UTC))
    assert edge.replace(tzinfo=LocalZone()).utcoffset() is not None
