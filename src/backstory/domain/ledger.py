"""What calls of language models cost, and when no more may be made. Booking and asking are elsewhere.

Money is counted in millionths of a unit of the user's own currency, whichever that is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from datetime import time as time_of_day
from enum import StrEnum

from backstory.domain.ids import ProjectId, SessionId

FEATURES = ("rerank", "summary_tree", "observation", "reflection", "dream")
"""Whatever asks a language model: the values of ``TextRequest.feature`` and of the caps."""
MILLION = 1_000_000
_AMOUNT = re.compile(r"([0-9]{1,4})(?:\.([0-9]{1,6}))?")
_FEATURE_CAP = re.compile(r"([a-z_]+)=([0-9]{1,12})")


class Outcome(StrEnum):
    """How a call ended.

    ``REFUSED``: the server answered with an error, which costs nothing. ``FAILED``: the connection broke, or the answer
    could not be read. ``TIMEOUT``: no answer in time. ``UNFINISHED``: begun and not ended, because it is under way, was
    given up, or its process died.
    """

    OK = "ok"
    FAILED = "failed"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One call of a model, with all its attempts.

    ``cost`` is None where no price was set. ``requests`` is how often the server was asked. ``estimated`` says that the
    server did not tell the tokens of every one of them; what it left out is there with the most it can have been.
    """

    id: str
    at: datetime
    feature: str
    model: str
    session: SessionId | None = None
    project: ProjectId | None = None
    input_tokens: int
    output_tokens: int
    cost: int | None = None
    duration: timedelta = timedelta()
    requests: int = 1
    outcome: Outcome = Outcome.OK
    estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a million tokens cost, in millionths; nothing has a cost unless both are known."""

    input: int | None = None
    output: int | None = None

    def cost(self, *, input_tokens: int, output_tokens: int) -> int | None:
        """The cost of so many tokens, rounded up."""
        if self.input is None or self.output is None:
            return None
        return -(-(input_tokens * self.input + output_tokens * self.output) // MILLION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A sum of entries; those without a cost add nothing to it."""

    tokens: int = 0
    cost: int = 0


class Cap(StrEnum):
    """What a cap limits."""

    FEATURE = "feature"
    SESSION = "session"
    DAY_TOKENS = "day_tokens"
    DAY_COST = "day_cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The most that may be spent; None and a missing feature are without limit, 0 lets no call through.

    ``features`` are tokens a day. A session is counted over all its days.
    """

    day_tokens: int | None = None
    day_cost: int | None = None
    session_tokens: int | None = None
    features: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_set(self) -> bool:
        """Whether anything is limited."""
        return bool(self.features) or (self.day_tokens, self.day_cost, self.session_tokens) != (None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What was spent already: today by all, today by one feature, and by one session if there is one."""

    day: Spent = Spent()
    feature: Spent = Spent()
    session: Spent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A cap and what is spent of it, in tokens, or in millionths for ``Cap.DAY_COST``."""

    cap: Cap
    limit: int
    spent: int
    feature: str | None = None

    @property
    def left(self) -> int:
        """What is left, 0 at the least."""
        return max(0, self.limit - self.spent)

    @property
    def name(self) -> str:
        """What is capped, in words."""
        match self.cap:
            case Cap.FEATURE:
                return f"{self.limit:,} tokens a day for {self.feature}"
            case Cap.SESSION:
                return f"{self.limit:,} tokens a session"
            case Cap.DAY_TOKENS:
                return f"{self.limit:,} tokens a day"
            case Cap.DAY_COST:
                return f"{money(self.limit)} a day"

    @property
    def reason(self) -> str:
        """Why no model is asked, and until when; days end at midnight where the person is."""
        spent = money(self.spent) if self.cap is Cap.DAY_COST else f"{self.spent:,}"
        until = "for the rest of this session" if self.cap is Cap.SESSION else "until 00:00"
        return f"the cap of {self.name} is reached ({spent} spent); no model is asked {until}"


def allowances(feature: str, caps: Caps, standing: Standing) -> list[Allowance]:
    """The caps that bind a call of ``feature``, the narrowest first."""
    found = []
    if (limit := caps.features.get(feature)) is not None:
        found.append(Allowance(cap=Cap.FEATURE, limit=limit, spent=standing.feature.tokens, feature=feature))
    if caps.session_tokens is not None and standing.session is not None:
        found.append(Allowance(cap=Cap.SESSION, limit=caps.session_tokens, spent=standing.session.tokens))
    if caps.day_tokens is not None:
        found.append(Allowance(cap=Cap.DAY_TOKENS, limit=caps.day_tokens, spent=standing.day.tokens))
    if caps.day_cost is not None:
        found.append(Allowance(cap=Cap.DAY_COST, limit=caps.day_cost, spent=standing.day.cost))
    return found


def may_call(feature: str, caps: Caps, standing: Standing) -> Allowance | None:
    """None if a call may be made, else the cap that is reached.

    A call is let through while anything is left of every cap. ``standing`` counts calls that are under way with the
    most they can take. So as long as deciding and booking are one step, all callers together go beyond a cap by one
    call at the most: the last that was let through.
    """
    return next((each for each in allowances(feature, caps, standing) if not each.left), None)


# --- days -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A day where the person is, as two UTC moments; ``end`` is the first moment of the next."""

    start: datetime
    end: datetime


def day_of(moment: datetime, zone: tzinfo, *, back: int = 0) -> Day:
    """The day of a moment, or the one so many days before; 23 to 25 hours long where clocks change."""
    day = moment.astimezone(zone).date() - timedelta(days=back)
    return Day(start=_midnight(day, zone), end=_midnight(day + timedelta(days=1), zone))


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time_of_day(), zone).astimezone(UTC)


# --- sums for people --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The calls of a day for one feature by one model.

    ``failed`` are those that ended without an answer, ``unfinished`` those that did not end, ``estimated`` those whose
    tokens the server did not tell. ``cost`` sums the calls that have one, None if none has; ``unpriced`` have none.
    """

    day: date
    feature: str
    model: str
    calls: int
    failed: int
    unfinished: int
    estimated: int
    requests: int
    input_tokens: int
    output_tokens: int
    cost: int | None
    unpriced: int
    duration: timedelta


def lines(entries: Iterable[Entry], zone: tzinfo) -> list[Line]:
    """The entries by day, feature and model; the newest day first, then by name."""
    groups: dict[tuple[date, str, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry.at.astimezone(zone).date(), entry.feature, entry.model].append(entry)
    ordered = sorted(groups, key=lambda key: (-key[0].toordinal(), *key[1:]))
    return [_line(*key, groups[key]) for key in ordered]


def _line(day: date, feature: str, model: str, entries: list[Entry]) -> Line:
    costs = [entry.cost for entry in entries if entry.cost is not None]
    ends = [entry.outcome for entry in entries]
    unfinished = ends.count(Outcome.UNFINISHED)
    return Line(
        day=day,
        feature=feature,
        model=model,
        calls=len(entries),
        failed=len(entries) - ends.count(Outcome.OK) - unfinished,
        unfinished=unfinished,
        estimated=sum(entry.estimated for entry in entries),
        requests=sum(entry.requests for entry in entries),
        input_tokens=sum(entry.input_tokens for entry in entries),
        output_tokens=sum(entry.output_tokens for entry in entries),
        cost=sum(costs) if costs else None,
        unpriced=len(entries) - len(costs),
        duration=sum((entry.duration for entry in entries), timedelta()),
    )


# --- how people write it ----------------------------------------------------------------------------------------------


def money(millionths: int) -> str:
    """An amount as people write it: two decimals at least, six at most."""
    units, rest = divmod(millionths, MILLION)
    decimals = f"{rest:06d}".rstrip("0").ljust(2, "0")
    return f"{units:,}.{decimals}"


def read_money(text: str) -> int:
    """Millionths of an amount such as ``0.15``; below 10,000, with six decimals at most. Raises ValueError."""
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        raise ValueError("is not an amount")
    return int(found[1]) * MILLION + int((found[2] or "").ljust(6, "0"))


def read_feature_caps(text: str) -> dict[str, int]:
    """Caps such as ``rerank=20000``, with blanks between several. Raises ValueError with what is wrong."""
    caps: dict[str, int] = {}
    for word in text.split():
        found = _FEATURE_CAP.fullmatch(word)
        if found is None:
            raise ValueError("is not a list of features with a number of tokens each")
        if found[1] not in FEATURES:
            raise ValueError("names a feature that asks no model")
        if found[1] in caps:
            raise ValueError("names a feature twice")
        caps[found[1]] = int(found[2])
    return caps
