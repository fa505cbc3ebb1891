"""The forms in which English names a time, each with the range that it means: "last week", "in March", "two days ago".

Weeks start on Monday. Finding them in a text is ``date_phrases.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache

from backstory.domain.time_range import (
    TimeRange,
    days,
    earlier,
    in_utc,
    moments,
    months,
    shift_days,
    shift_months,
    week,
)

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "a couple": 2, "a couple of": 2, "couple of": 2, "a few": 3, "few": 3,
    "several": 5,
}  # fmt: skip
_VAGUE_COUNTS = {"a couple": 3, "a couple of": 3, "couple of": 3, "a few": 7, "few": 7, "several": 10}
"""How far a vague count may reach back."""

_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY = r"(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?s?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_COUNT = r"(?P<count>\d{1,4}|" + "|".join(sorted(_COUNTS, key=len, reverse=True)) + ")"
_UNIT = r"(?P<unit>minute|min|hour|day|week|month|quarter|year)s?"
_PART_HOURS = {"morning": (0, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When and where a phrase is said."""

    now: datetime
    zone: tzinfo

    @property
    def today(self) -> date:
        return self.now.date()


Reader = Callable[[re.Match[str], Moment], TimeRange]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A way to name a time. One that is also an ordinary word or number (may, Monday, 2024) needs a lead: "in May"."""

    pattern: re.Pattern[str]
    read: Reader
    needs_lead: bool = False


def _iso(match: re.Match[str], moment: Moment) -> TimeRange:
    year, month = int(match["y"]), int(match["m"])
    if match["d"] is None:
        return months(year, month, moment.zone)
    day = date(year, month, int(match["d"]))
    return days(day, day, moment.zone)


def _day_of_month(match: re.Match[str], moment: Moment) -> TimeRange:
    month, number = _month_number(match), int(match["day"])
    if match["year"]:
        day = date(int(match["year"]), month, number)
    else:
        years = range(moment.today.year, max(moment.today.year - 8, 1), -1)  # 29 February may be eight years away
        candidates = (date(year, month, number) for year in years if _exists(year, month, number))
        day = next((day for day in candidates if day <= moment.today), date.min)
        if day == date.min:
            raise ValueError("no such day")
    return days(day, day, moment.zone)


def _exists(year: int, month: int, number: int) -> bool:
    try:
        date(year, month, number)
    except ValueError:
        return False
    return True


def _month(match: re.Match[str], moment: Moment) -> TimeRange:
    month = _month_number(match)
    if match["year"]:
        return months(int(match["year"]), month, moment.zone)
    latest = moment.today.replace(day=1)
    if match["last"] in ("last", "previous"):
        latest = shift_months(latest, -1)
    year = latest.year if month <= latest.month else latest.year - 1
    return months(year, month, moment.zone)


def _month_number(match: re.Match[str]) -> int:
    return _MONTHS.index(match["month"][:3]) + 1


def _year(match: re.Match[str], moment: Moment) -> TimeRange:
    year = int(match["year"])
    if year > moment.today.year:
        raise ValueError("a number, or a plan")
    return months(year, 1, moment.zone, count=12)


def _quarter(match: re.Match[str], moment: Moment) -> TimeRange:
    number = int(match["quarter"])
    year = int(match["year"]) if match["year"] else moment.today.year
    if not match["year"] and 3 * number - 2 > moment.today.month:
        year -= 1
    return months(year, 3 * number - 2, moment.zone, count=3)


def _weekday(match: re.Match[str], moment: Moment) -> TimeRange:
    back = (moment.today.weekday() - _WEEKDAYS.index(match["weekday"][:3])) % 7
    if back == 0 and match["last"] in ("last", "previous", "past"):
        back = 7
    day = shift_days(moment.today, -back)
    return days(day, day, moment.zone)


def _named_day(match: re.Match[str], moment: Moment) -> TimeRange:
    back = {"today": 0, "yesterday": 1}.get(match[0], 2)
    day = shift_days(moment.today, -back)
    return days(day, day, moment.zone)


def _part_of_day(match: re.Match[str], moment: Moment) -> TimeRange:
    word = match[0]
    back = 0 if word.startswith(("this", "tonight")) else 1
    first, last = _PART_HOURS[match["part"] or "night"]
    midnight = datetime.combine(shift_days(moment.today, -back), datetime.min.time(), tzinfo=moment.zone)
    return moments(midnight + timedelta(hours=first), midnight + timedelta(hours=last, microseconds=-1))


def _calendar_unit(match: re.Match[str], moment: Moment) -> TimeRange:
    """This week, last month: whole units of the calendar. "The past week" is the seven days up to now."""
    if match["which"] == "past":
        return _up_to_now(1, match["unit"], moment)
    return _whole_unit(match["unit"], 0 if match["which"] in ("this", "current") else 1, moment)


def _whole_unit(unit: str, back: int, moment: Moment) -> TimeRange:
    today = moment.today
    match unit:
        case "day":
            day = shift_days(today, -back)
            return days(day, day, moment.zone)
        case "week":
            return week(shift_days(today, -7 * back), moment.zone)
        case "weekend":
            # The latest Saturday; said in the week, "this" and "last" weekend are the one just past.
            saturday = shift_days(today, -((today.weekday() - 5) % 7) - (7 if back and today.weekday() >= 5 else 0))
            return days(saturday, shift_days(saturday, 1), moment.zone)
        case "month":
            first = shift_months(today.replace(day=1), -back)
            return months(first.year, first.month, moment.zone)
        case "quarter":
            first = shift_months(date(today.year, (today.month - 1) // 3 * 3 + 1, 1), -3 * back)
            return months(first.year, first.month, moment.zone, count=3)
        case _:
            return months(max(today.year - back, 1), 1, moment.zone, count=12)


def _last_several(match: re.Match[str], moment: Moment) -> TimeRange:
    count = match["count"]
    return _up_to_now(_VAGUE_COUNTS.get(count) or _count(count), match["unit"], moment)


def _up_to_now(count: int, unit: str, moment: Moment) -> TimeRange:
    if unit in ("minute", "min", "hour"):
        return moments(earlier(moment.now, _clock_unit(unit) * count), moment.now)
    first = days(_back(count, unit, moment.today), moment.today, moment.zone)
    return TimeRange(since=first.since, until=in_utc(moment.now))


def _ago(match: re.Match[str], moment: Moment) -> TimeRange:
    """Three days ago is that day; two weeks ago is that week; an hour ago is half an hour around it."""
    count, unit = match["count"], match["unit"]
    if unit in ("minute", "min", "hour"):
        distance, slack = _clock_unit(unit) * _count(count), _clock_unit(unit) / 2
        return moments(earlier(moment.now, distance + slack), earlier(moment.now, distance - slack))
    nearest = _whole_unit(unit, _count(count), moment)
    if count in _VAGUE_COUNTS:
        return TimeRange(since=_whole_unit(unit, _VAGUE_COUNTS[count], moment).since, until=nearest.until)
    return nearest


def _count(text: str) -> int:
    return _COUNTS.get(text) or int(text)


def _clock_unit(unit: str) -> timedelta:
    return timedelta(hours=1) if unit == "hour" else timedelta(minutes=1)


def _back(count: int, unit: str, day: date) -> date:
    match unit:
        case "day":
            return shift_days(day, -count)
        case "week" | "weekend":
            return shift_days(day, -7 * count)
        case "month":
            return shift_months(day, -count)
        case "quarter":
            return shift_months(day, -3 * count)
        case _:
            return shift_months(day, -12 * count)


@lru_cache(maxsize=1)
def forms() -> tuple[Form, ...]:
    """Every form; made at the first need, because most commands never ask."""

    def form(pattern: str, read: Reader, *, needs_lead: bool = False) -> Form:
        bounded = rf"(?<![\w./:#@+-]){pattern}(?![\w/@]|[-.:][\w])"
        return Form(pattern=re.compile(bounded), read=read, needs_lead=needs_lead)

    year = rf"(?:,? {_YEAR})?"
    last = "(?:(?P<last>last|previous|past|this) )"
    return (
        form(r"(?P<y>(?:19|20)\d\d)[-/](?P<m>\d\d?)(?:[-/](?P<d>\d\d?))?", _iso),
        form(rf"{_MONTH} {_DAY}{year}", _day_of_month),
        form(rf"{_DAY} (?:of )?{_MONTH}{year}", _day_of_month),
        form(rf"(?P<last>)?{_MONTH},? (?:of )?{_YEAR}", _month),
        form(rf"{last}{_MONTH}(?P<year>)?", _month),
        form(rf"(?P<last>)?{_MONTH}(?P<year>)?", _month, needs_lead=True),
        form(_YEAR, _year, needs_lead=True),
        form(rf"q(?P<quarter>[1-4])(?: of)? {_YEAR}", _quarter),
        form(r"q(?P<quarter>[1-4])(?P<year>)?", _quarter, needs_lead=True),
        form(rf"{last}{_WEEKDAY}", _weekday),
        form(rf"(?P<last>)?{_WEEKDAY}", _weekday, needs_lead=True),
        form(r"today|yesterday|(?:the )?day before yesterday", _named_day),
        form(r"(?:this|yesterday|last) (?P<part>morning|afternoon|evening|night)|tonight", _part_of_day),
        form(
            r"(?P<which>this|current|last|previous|past) (?P<unit>day|week|weekend|month|quarter|year)", _calendar_unit
        ),
        form(rf"(?:last|past|previous) {_COUNT} {_UNIT}", _last_several),
        form(rf"{_COUNT} {_UNIT} ago", _ago),
    )
