"""What a question says about whose words and which days are meant. Used to score evidence; nothing else is decided."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo

from backstory.domain.conversation import Role
from backstory.domain.date_phrases import find_dates
from backstory.domain.evidence_passages import EvidencePassage
from backstory.domain.evidence_talk import known_speakers, speaker_of
from backstory.domain.ids import MessageId
from backstory.domain.time_range import TimeRange

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
# "may" and "march" are words of every day: they need a day, a year or a preposition beside them
_NAMED_MONTH = (
    r"\b(?:january|february|april|june|july|august|september|october|november|december)\b"
    r"|(?<=\b(?:in|on|of) )(?:may|march)\b|(?<=\d )(?:may|march)\b|(?<=\d(?:st|nd|rd|th) )(?:may|march)\b"
    r"|\b(?:may|march)(?=,? \d)"
)
_YEAR = r"\b(?:19|20)\d\d\b"
_DAY = r"\b([0-3]?\d)(?:st|nd|rd|th)?\b"
_BY_USER = r"(?i)\b(?:did|have|had|do) i\b|\bi (?:said|asked|told|mentioned|wanted|decided|described)\b|\bthe user\b"
_BY_ASSISTANT = r"(?i)\b(?:did|have|had) you\b|\byou (?:said|suggested|recommended|told|gave)\b|\bthe assistant\b"
_ASKS_TIME = r"(?i)\b(?:when|what (?:date|year|month|day|time)|which (?:year|month)|how long)\b"
_ASKS_NUMBER = r"(?i)\bhow (?:many|much)\b"
_OF_TIME = """
    yesterday today tomorrow tonight last next ago recently week weekend month year spring summer fall winter
    monday tuesday wednesday thursday friday saturday sunday
"""
_TIME_WORDS = frozenset([*_OF_TIME.split(), *_MONTHS])


@dataclass(frozen=True, slots=True, kw_only=True)
class DateHint:
    """The days that a question names: months, with their years and days if it names any; or a stretch of time."""

    months: frozenset[int] = frozenset()
    years: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    range: TimeRange | None = None

    def fit(self, at: datetime) -> float:
        """How well a moment fits, 0 to 2: 1 for the month or stretch, 1 more for the day, less for another year."""
        if self.range is not None:
            return 1.0 if self.range.contains(at) else 0.0
        if at.month not in self.months:
            return 0.0
        fit = 0.3 if self.years and at.year not in self.years else 1.0
        return fit + (1.0 if at.day in self.days else 0.0)


def date_hint(question: str, *, now: datetime, zone: tzinfo) -> DateHint | None:
    """The days a question names, or None. Months are meant in any year unless it names one; "last week" and the like
    are counted back from ``now``."""
    text = question.lower()
    months = frozenset(_MONTHS.index(month) + 1 for month in re.findall(_NAMED_MONTH, text))
    if months:
        years = frozenset(map(int, re.findall(_YEAR, text)))
        days = frozenset(map(int, re.findall(_DAY, re.sub(_YEAR, "", text))))
        return DateHint(months=months, years=years, days=days)
    named = find_dates(question, now=now, zone=zone)
    return None if named is None else DateHint(range=named)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakerHint:
    """Whose words a question asks for: a role's, or those of a person whose name their messages begin with."""

    role: Role | None = None
    name: str | None = None
    names: Mapping[MessageId, str]

    def fits(self, passage: EvidencePassage) -> bool:
        """Whether the passage is the speaker's."""
        if self.name is not None:
            return self.names.get(passage.message) == self.name
        return self.role is not None and passage.role is self.role


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailHint:
    """Whether a question wants a time or a number."""

    time: bool
    number: bool


def detail_hint(question: str) -> DetailHint:
    """What kind of detail a question wants: "when", "how long"; "how many"."""
    return DetailHint(
        time=re.search(_ASKS_TIME, question) is not None, number=re.search(_ASKS_NUMBER, question) is not None
    )


def tells_time(text: str) -> bool:
    """Whether a text names a day, a season, a year or a distance in time."""
    lower = text.lower()
    return not _TIME_WORDS.isdisjoint(re.findall(r"\w+", lower)) or re.search(_YEAR, lower) is not None


def tells_number(text: str) -> bool:
    """Whether a text has a digit."""
    return re.search(r"\d", text) is not None


def speaker_hint(question: str, passages: Iterable[EvidencePassage]) -> SpeakerHint:
    """Whose words are asked for. A question that names two speakers, or both roles, asks for nobody's in particular.

    A speaker's name stands before a colon at the beginning of at least two of the messages.
    """
    names = {passage.message: name for passage in passages if (name := speaker_of(passage.text, kind=passage.kind))}
    named = [name for name in known_speakers(names.values()) if re.search(rf"\b{re.escape(name)}\b", question)]
    if named:
        return SpeakerHint(name=named[0] if len(named) == 1 else None, names=names)
    by_user, by_assistant = re.search(_BY_USER, question), re.search(_BY_ASSISTANT, question)
    if bool(by_user) == bool(by_assistant):
        return SpeakerHint(names=names)
    return SpeakerHint(role=Role.USER if by_user else Role.ASSISTANT, names=names)
