"""What ``since`` and ``until`` accept, and stored stamps. Phrases inside a query are in ``date_phrases.py``."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo

from backstory.domain.date_phrases import find_dates, phrase_range
from backstory.domain.time_range import TimeRange, days, earlier, in_utc, moments, months, shift_months
from backstory.errors import InputError

__all__ = ["TimeRange", "find_dates", "parse_range", "parse_stored"]

_HINT = (
    "write a day (2026-03-02), a month (2026-03), a year (2026), a stamp (2026-03-02T12:00:00Z), "
    "an age (7d, 2w, 3h, 6mo) or a phrase (yesterday, last week)"
)
_SHOWN_CHARS = 60
_MAX_CHARS = 100

# Patterns are strings: ``re`` compiles them at first use, and most commands have no date filter.
_DAY = r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})|(\d{4})(\d{2})(\d{2})"
_MONTH = r"(\d{4})[-/](\d{1,2})"
_YEAR = r"\d{4}"
_AGE = r"(\d{1,9}) ?([a-z]+)(?: ago)?"
_UNIT_SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
    **dict.fromkeys(("w", "wk", "wks", "week", "weeks"), 604_800),
}
_UNIT_MONTHS = {
    **dict.fromkeys(("mo", "mos", "month", "months"), 1),
    **dict.fromkeys(("y", "yr", "yrs", "year", "years"), 12),
}


def parse_range(
    *, since: str | None, until: str | None, phrase: str | None = None, now: datetime, zone: tzinfo
) -> TimeRange:
    """The range that the filters of a search mean; blank counts as not given.

    A day, month or year is taken in ``zone`` and as a whole: ``since`` from its start, ``until`` to its end. A stamp
    without zone is in ``zone``. An age counts back from ``now``. A phrase narrows what the other two leave.
    Raises InputError naming the field; also where ``until`` lies before ``since``.
    """
    first = _bound(since, field="since", now=now, zone=zone).since
    last = _bound(until, field="until", now=now, zone=zone).until
    if first is not None and last is not None and last < first:
        raise InputError(
            f"until ({_shown(until)}) lies before since ({_shown(since)})", field="until", hint="swap the two"
        )
    outer = TimeRange(since=first, until=last)
    if phrase is None or not phrase.strip():
        return outer
    found = find_dates(phrase, now=now, zone=zone) or _span(phrase, now=now, zone=zone)
    if found is None:
        raise InputError(f"no date is understood in phrase {_shown(phrase)}", field="phrase", hint=_HINT)
    return outer.within(found)


def parse_stored(text: str) -> datetime:
    """A stored stamp as an instant in UTC; one without zone counts as UTC. Raises ValueError on anything else."""
    moment = datetime.fromisoformat(text.strip())
    return in_utc(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))


def _bound(text: str | None, *, field: str, now: datetime, zone: tzinfo) -> TimeRange:
    if text is None or not text.strip():
        return TimeRange()
    span = _span(text, now=now, zone=zone)
    if span is None:
        raise InputError(f"{field} is not a date: {_shown(text)}", field=field, hint=_HINT)
    return span


def _span(text: str, *, now: datetime, zone: tzinfo) -> TimeRange | None:
    """The stretch of time a value names, or None."""
    value = " ".join(text.split())
    if len(value) > _MAX_CHARS:
        return None
    try:
        return _iso_span(value, zone) or phrase_range(value, now=now, zone=zone) or _age_span(value.lower(), now)
    except ValueError:
        return None  # 30 February, month 13, hour 25


def _iso_span(value: str, zone: tzinfo) -> TimeRange | None:
    """Raises ValueError where the form is right and the date does not exist."""
    if not value[:4].isdigit() or not value.isascii():
        return None
    if match := re.fullmatch(_DAY, value):
        year, month, day = (int(number) for number in match.groups() if number is not None)
        return days(date(year, month, day), date(year, month, day), zone)
    if match := re.fullmatch(_MONTH, value):
        return months(int(match[1]), int(match[2]), zone)
    if re.fullmatch(_YEAR, value):
        return months(int(value), 1, zone, count=12)
    if not re.match(r"\d{4}-?\d\d-?\d\d[T ]", value, re.IGNORECASE):
        return None
    moment = datetime.fromisoformat(re.sub(r"(?i)[ ]?(?:utc|z)$", "+00:00", value))
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
    return moments(moment, moment)


def _age_span(value: str, now: datetime) -> TimeRange | None:
    if value == "now":
        return moments(now, now)
    match = re.fullmatch(_AGE, value)
    if match is None or not value.isascii():
        return None
    count, unit = int(match[1]), match[2]
    if unit in _UNIT_MONTHS:
        day = shift_months(now.date(), -count * _UNIT_MONTHS[unit])
        moment = datetime.combine(day, now.timetz())
    elif unit in _UNIT_SECONDS:
        moment = earlier(now, timedelta(seconds=min(count * _UNIT_SECONDS[unit], 10**13)))
    else:
        return None
    return moments(moment, moment)


def _shown(text: str | None) -> str:
    shown = " ".join((text or "").split())
    return repr(shown if len(shown) <= _SHOWN_CHARS else shown[:_SHOWN_CHARS] + "…")
