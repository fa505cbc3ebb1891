"""Ranges of time, and the calendar spans (day, week, month) of a person's zone as ranges of instants.

Reading them from text is in ``dates.py`` (values of filters) and ``date_phrases.py`` (plain English).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

_EARLIEST = datetime.min.replace(tzinfo=UTC)
_LATEST = datetime.max.replace(tzinfo=UTC)
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRange:
    """From ``since`` to ``until``, both aware, in UTC, and both included; None is open on that side.

    A range whose ``until`` lies before its ``since`` contains nothing.
    """

    since: datetime | None = None
    until: datetime | None = None

    def contains(self, instant: datetime) -> bool:
        """Whether an aware instant lies in the range; its zone does not matter."""
        return (self.since is None or self.since <= instant) and (self.until is None or instant <= self.until)

    def within(self, other: TimeRange) -> TimeRange:
        """What both ranges share."""
        since = max((edge for edge in (self.since, other.since) if edge is not None), default=None)
        until = min((edge for edge in (self.until, other.until) if edge is not None), default=None)
        return TimeRange(since=since, until=until)


def before(span: TimeRange) -> TimeRange:
    """All time up to the start of a span, without it."""
    return TimeRange(until=_shifted(span.since, -_TICK))


def after(span: TimeRange) -> TimeRange:
    """All time from the end of a span on, without it."""
    return TimeRange(since=_shifted(span.until, _TICK))


def in_utc(moment: datetime) -> datetime:
    """An aware moment in UTC; at the edges of the calendar, the nearest instant that exists."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return _EARLIEST if moment.year == 1 else _LATEST


def moments(first: datetime, last: datetime) -> TimeRange:
    """From one aware moment to another."""
    return TimeRange(since=in_utc(first), until=in_utc(last))


def earlier(moment: datetime, distance: timedelta) -> datetime:
    """The moment that long before, by the clock of UTC; never before the calendar starts."""
    return _shifted(in_utc(moment), -distance) or _EARLIEST


def days(first: date, last: date, zone: tzinfo) -> TimeRange:
    """From the first to the last day, whole days in ``zone``, whatever its clock changes."""
    try:
        until = _midnight(last + timedelta(days=1), zone) - _TICK
    except OverflowError:
        until = _LATEST
    return TimeRange(since=_midnight(first, zone), until=until)


def week(day: date, zone: tzinfo) -> TimeRange:
    """The week of a day, Monday to Sunday (ISO 8601)."""
    monday = shift_days(day, -day.weekday())
    return days(monday, shift_days(monday, 6), zone)


def months(year: int, month: int, zone: tzinfo, *, count: int = 1) -> TimeRange:
    """``count`` whole months, ``month`` of ``year`` being the first."""
    first = date(year, month, 1)
    following = shift_months(first, count)
    last = date.max if following == date.max else shift_days(following, -1)
    return days(first, last, zone)


def shift_days(day: date, count: int) -> date:
    """The day that many days later, held inside the calendar."""
    return date.fromordinal(min(max(day.toordinal() + count, 1), date.max.toordinal()))


def shift_months(day: date, count: int) -> date:
    """The day that many months later; the last day of the month where it has no such day. Held inside the calendar."""
    total = day.year * 12 + day.month - 1 + count
    if total < 12:
        return date.min
    if total >= 120_000:
        return date.max
    year, month = divmod(total, 12)
    return date(year, month + 1, min(day.day, _month_days(year, month + 1)))


def _month_days(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _midnight(day: date, zone: tzinfo) -> datetime:
    # Where the clock skips midnight, fold 0 means the first instant after the gap.
    return in_utc(datetime(day.year, day.month, day.day, tzinfo=zone))


def _shifted(instant: datetime | None, distance: timedelta) -> datetime | None:
    if instant is None:
        return None
    try:
        return instant + distance
    except OverflowError:
        return _EARLIEST if distance < timedelta(0) else _LATEST
