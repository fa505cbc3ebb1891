"""The values of since and until, phrases in a query, and stored stamps."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from backstory.domain.dates import TimeRange, find_dates, parse_range, parse_stored
from backstory.errors import InputError

NOW = datetime(2025, 9, 10, 14, 20, tzinfo=UTC)  # a Wednesday
BERLIN = ZoneInfo("Europe/Berlin")
AUCKLAND = ZoneInfo("Pacific/Auckland")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def shown(found: TimeRange | None) -> str:
    if found is None:
        return "none"
    since = found.since.isoformat(sep=" ", timespec="minutes")[:16] if found.since else ""
    until = (found.until + timedelta(microseconds=1)).isoformat(sep=" ", timespec="minutes")[:16] if found.until else ""
    return f"{since} .. {until}"


@pytest.mark.parametrize(
    ("since", "start"),
    [
        ("2025-09-08", "2025-09-07 22:00"),
        ("2025/9/8", "2025-09-07 22:00"),
        ("20250908", "2025-09-07 22:00"),
        ("2025-01", "2024-12-31 23:00"),
        ("2024", "2023-12-31 23:00"),
        ("2025-09-08T10:00", "2025-09-08 08:00"),
        ("2025-09-08 10:00:00", "2025-09-08 08:00"),
        ("2025-09-08T10:00:00Z", "2025-09-08 10:00"),
        ("2025-09-08 10:00 UTC", "2025-09-08 10:00"),
        ("2025-09-08T10:00:00-03:00", "2025-09-08 13:00"),
        ("5d", "2025-09-05 14:20"),
        ("2w", "2025-08-27 14:20"),
        ("3h", "2025-09-10 11:20"),
        ("45 min", "2025-09-10 13:35"),
        ("1mo", "2025-08-10 14:20"),
        ("2y", "2023-09-10 14:20"),
        ("now", "2025-09-10 14:20"),
        ("Yesterday", "2025-09-08 22:00"),
        ("last week", "2025-08-31 22:00"),
        ("friday", "2025-09-04 22:00"),
        ("in May", "2025-04-30 22:00"),
        ("3 days ago", "2025-09-06 22:00"),
    ],
)
def test_since_starts_where_its_value_starts_in_the_users_zone(since: str, start: str) -> None:
    assert parse_range(since=since, until=None, now=NOW, zone=BERLIN) == TimeRange(since=at(start))


@pytest.mark.parametrize(
    ("until", "end"),
    [("2025-09-08", "2025-09-08 12:00"), ("2025-02", "2025-02-28 11:00"), ("2024", "2024-12-31 11:00")],
)
def test_until_includes_the_whole_of_its_last_day(until: str, end: str) -> None:
    found = parse_range(since=None, until=until, now=NOW, zone=AUCKLAND)
    assert found.contains(at(end) - timedelta(microseconds=1))
    assert not found.contains(at(end))


def test_a_day_on_which_the_clock_changes_is_as_long_as_it_was() -> None:
    spring = parse_range(since="2025-03-30", until="2025-03-30", now=NOW, zone=BERLIN)
    assert shown(spring) == "2025-03-29 23:00 .. 2025-03-30 22:00"


@pytest.mark.parametrize(
    "value",
    [
        "soon",
        "2025-02-29",
        "2025-13",
        "2025-09-08T25:00",
        "0000",
        "12",
        "5 parsecs",
        "２０２５",
        "2025-W37",
        "x" * 10_000,
    ],
)
@pytest.mark.parametrize("field", ["since", "until"])
def test_a_bad_value_names_its_field_and_shows_what_to_write(field: str, value: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_range(
            since=value if field == "since" else None, until=value if field == "until" else None, now=NOW, zone=UTC
        )
    assert caught.value.field == field
    assert caught.value.hint is not None
    assert "2026-03-02" in caught.value.hint
    assert len(str(caught.value)) < 200


def test_a_reversed_range_is_an_error_that_shows_both_values() -> None:
    with pytest.raises(InputError, match=r"2025-05-01.*2025-06-01"):
        parse_range(since="2025-06-01", until="2025-05-01", now=NOW, zone=UTC)


def test_blank_values_count_as_not_given() -> None:
    assert parse_range(since=" ", until="", phrase="", now=NOW, zone=UTC) == TimeRange()


def test_a_phrase_narrows_the_range() -> None:
    found = parse_range(since="2025-09-09T12:00", until=None, phrase="yesterday", now=NOW, zone=UTC)
    assert shown(found) == "2025-09-09 12:00 .. 2025-09-10 00:00"


def test_a_phrase_without_a_date_is_an_error() -> None:
    with pytest.raises(InputError) as caught:
        parse_range(since=None, until=None, phrase="whenever", now=NOW, zone=UTC)
    assert caught.value.field == "phrase"


@pytest.mark.parametrize("value", ["0001-01-01", "9999-12-31", "9999", "999999999y", "999999999w"])
@pytest.mark.parametrize("zone", [AUCKLAND, ZoneInfo("America/Los_Angeles")])
def test_the_edges_of_the_calendar_are_no_trap(value: str, zone: ZoneInfo) -> None:
    parse_range(since=value, until=None, now=NOW, zone=zone)
    parse_range(since=None, until=value, now=NOW, zone=zone)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what did we change yesterday?", "2025-09-09 00:00 .. 2025-09-10 00:00"),
        ("today", "2025-09-10 00:00 .. 2025-09-11 00:00"),
        ("the day before yesterday", "2025-09-08 00:00 .. 2025-09-09 00:00"),
        ("this morning", "2025-09-10 00:00 .. 2025-09-10 12:00"),
        ("notes from last month until today", "2025-08-01 00:00 .. 2025-09-11 00:00"),
        ("the bug from last night", "2025-09-09 18:00 .. 2025-09-10 06:00"),
        ("last week", "2025-09-01 00:00 .. 2025-09-08 00:00"),
        ("this week", "2025-09-08 00:00 .. 2025-09-15 00:00"),
        ("over the past week", "2025-09-03 00:00 .. 2025-09-10 14:20"),
        ("last weekend", "2025-09-06 00:00 .. 2025-09-08 00:00"),
        ("last month", "2025-08-01 00:00 .. 2025-09-01 00:00"),
        ("last quarter", "2025-04-01 00:00 .. 2025-07-01 00:00"),
        ("last year", "2024-01-01 00:00 .. 2025-01-01 00:00"),
        ("in the last 3 days", "2025-09-07 00:00 .. 2025-09-10 14:20"),
        ("past two hours", "2025-09-10 12:20 .. 2025-09-10 14:20"),
        ("two weeks ago", "2025-08-25 00:00 .. 2025-09-01 00:00"),
        ("4 days ago", "2025-09-06 00:00 .. 2025-09-07 00:00"),
        ("a few days ago", "2025-09-03 00:00 .. 2025-09-08 00:00"),
        ("an hour ago", "2025-09-10 12:50 .. 2025-09-10 13:50"),
        ("a year ago", "2024-01-01 00:00 .. 2025-01-01 00:00"),
        ("what we chose in March", "2025-03-01 00:00 .. 2025-04-01 00:00"),
        ("in October", "2024-10-01 00:00 .. 2024-11-01 00:00"),
        ("last September", "2024-09-01 00:00 .. 2024-10-01 00:00"),
        ("early june 2023", "2023-06-01 00:00 .. 2023-07-01 00:00"),
        ("on 2025-07-04", "2025-07-04 00:00 .. 2025-07-05 00:00"),
        ("July 4th", "2025-07-04 00:00 .. 2025-07-05 00:00"),
        ("the 24th of December", "2024-12-24 00:00 .. 2024-12-25 00:00"),
        ("Feb 29", "2024-02-29 00:00 .. 2024-03-01 00:00"),
        ("4 July, 2022", "2022-07-04 00:00 .. 2022-07-05 00:00"),
        ("on Monday", "2025-09-08 00:00 .. 2025-09-09 00:00"),
        ("last Wednesday", "2025-09-03 00:00 .. 2025-09-04 00:00"),
        ("in 2024", "2024-01-01 00:00 .. 2025-01-01 00:00"),
        ("Q2 2025", "2025-04-01 00:00 .. 2025-07-01 00:00"),
        ("during q4", "2024-10-01 00:00 .. 2025-01-01 00:00"),
        ("since monday", "2025-09-08 00:00 .. "),
        ("after August 20", "2025-08-21 00:00 .. "),
        ("before last week", " .. 2025-09-01 00:00"),
        ("until 2025-06", " .. 2025-07-01 00:00"),
        ("between March 3 and March 9", "2025-03-03 00:00 .. 2025-03-10 00:00"),
        ("from may to july", "2025-05-01 00:00 .. 2025-08-01 00:00"),
        ("2025-01-01 - 2025-01-31", "2025-01-01 00:00 .. 2025-02-01 00:00"),
    ],
)
def test_phrases_in_a_query_name_a_time(text: str, expected: str) -> None:
    assert shown(find_dates(text, now=NOW, zone=UTC)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "which port does staging use",
        "you may march on, sun or not",
        "the migration 2025-01-02_users.sql",
        "listens on port 2024",
        "version 2024.05.01.rc1",
        "what happens on the last request",
        "wait 3 days",
        "June 31",
        "cron runs Sundays",
        "in 2999",
    ],
)
def test_ordinary_words_and_names_are_not_dates(text: str) -> None:
    assert find_dates(text, now=NOW, zone=UTC) is None


def test_phrases_mean_days_of_the_users_zone() -> None:
    found = find_dates("today", now=datetime(2025, 9, 10, 20, 0, tzinfo=UTC), zone=AUCKLAND)
    assert shown(found) == "2025-09-10 12:00 .. 2025-09-11 12:00"


@pytest.mark.parametrize(
    "piece", ["since ", "may ", "1 ", "in may ", "a couple of ", "2025-03-02_", "last ", "monday "]
)
def test_a_hostile_pile_of_dates_takes_linear_time(piece: str) -> None:
    started = time.process_time()
    find_dates(piece * (200_000 // len(piece)), now=NOW, zone=UTC)
    assert time.process_time() - started < 5.0


@pytest.mark.parametrize(
    ("stored", "instant"),
    [
        ("2025-09-08T10:00:00", "2025-09-08 10:00"),
        ("2025-09-08 10:00:00.000Z", "2025-09-08 10:00"),
        ("2025-09-08T10:00:00+05:30", "2025-09-08 04:30"),
        ("2025-09-08", "2025-09-08 00:00"),
    ],
)
def test_a_stored_stamp_without_zone_is_in_utc(stored: str, instant: str) -> None:
    assert parse_stored(stored) == at(instant)


def test_a_stored_stamp_that_is_none_raises() -> None:
    with pytest.raises(ValueError, match="isoformat"):
        parse_stored("yesterday")
