"""English phrases that name a time: "yesterday", "last week", "in March", "between 2 March and 5 March".

Phrases look back, since memories do: "in October" is the latest October that has begun. Weeks start on Monday. The
values of ``since`` and ``until`` are read in ``dates.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo

from backstory.domain.date_forms import Form, Moment, forms
from backstory.domain.time_range import (
    TimeRange,
    after,
    before,
)

# Every phrase holds one of these. Most texts hold none, and are spared the compiling of all forms (6 ms, once).
_SIGNS_OF_A_DATE = (
    r"\b(?:(?:19|20)\d\d|q[1-4]|ago|today|tonight|yesterday|last|past|this|previous|current"
    r"|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)"
)
_LEAD = r"(?:^|\W)(in|on|during|since|after|before|until|till|from|between|through)(?: the| early| mid| late)? $"
_LEAD_CHARS = 20
_CONNECTOR = r" ?(to|until|till|through|and|-|–) (?:the )?"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    start: int
    end: int
    span: TimeRange
    lead: str


def find_dates(text: str, *, now: datetime, zone: tzinfo) -> TimeRange | None:
    """The first time that a text names, as a range, or None where it names none.

    "since", "after", "before" and "until" open the range on one side; "from … to" and "between … and" join two times,
    and "from last week" is last week. Dates inside names (``2026-03-02_users.sql``) do not count. Never raises;
    linear in the text.
    """
    text = " ".join(text.split()).lower()
    moment = Moment(now=now.astimezone(zone), zone=zone)
    first = next(_in_order(text, moment), None) if re.search(_SIGNS_OF_A_DATE, text) else None
    if first is None:
        return None
    connector = re.match(_CONNECTOR, text[first.end : first.end + _LEAD_CHARS])
    if connector and (connector[1] != "and" or first.lead == "between"):
        second = _at(text, first.end + connector.end(), moment)
        if second is not None and first.lead not in ("since", "before", "after", "until", "till"):
            return TimeRange(since=first.span.since, until=second.span.until)
    return _opened(first)


def phrase_range(text: str, *, now: datetime, zone: tzinfo) -> TimeRange | None:
    """The range of a text that is nothing but a phrase ("Monday", "last week", "in May 2025"); None if it is not."""
    text = re.sub(r"^(?:in|on|during|the) ", "", " ".join(text.split()).lower())
    found = _at(text, 0, Moment(now=now.astimezone(zone), zone=zone))
    return found.span if found is not None and found.end == len(text) else None


def _opened(found: _Found) -> TimeRange:
    match found.lead:
        case "since":
            return TimeRange(since=found.span.since)
        case "until" | "till" | "through":
            return TimeRange(until=found.span.until)
        case "before":
            return before(found.span)
        case "after":
            return after(found.span)
        case _:
            return found.span


def _in_order(text: str, moment: Moment) -> Iterator[_Found]:
    """What each form finds first, the earliest in the text first; at one place, the longest."""
    firsts = (next(_matches(form, text, moment), None) for form in forms())
    yield from sorted((found for found in firsts if found is not None), key=lambda found: (found.start, -found.end))


def _matches(form: Form, text: str, moment: Moment) -> Iterator[_Found]:
    for match in form.pattern.finditer(text):
        lead = re.search(_LEAD, text[max(0, match.start() - _LEAD_CHARS) : match.start()])
        if form.needs_lead and lead is None:
            continue
        span = _read(form, match, moment)
        if span is not None:
            yield _Found(start=match.start(), end=match.end(), span=span, lead=lead[1] if lead else "")


def _at(text: str, start: int, moment: Moment) -> _Found | None:
    """The longest time named exactly at ``start``; no lead is needed here."""
    best: _Found | None = None
    for form in forms():
        match = form.pattern.match(text, start)
        if match is None or (best is not None and match.end() <= best.end):
            continue
        span = _read(form, match, moment)
        if span is not None:
            best = _Found(start=start, end=match.end(), span=span, lead="")
    return best


def _read(form: Form, match: re.Match[str], moment: Moment) -> TimeRange | None:
    try:
        return form.read(match, moment)
    except ValueError:
        return None  # 31 June: not a date, so not a phrase
