"""What calls of models cost, for people: sums by day, caps and what is left of them, and which feature is at one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from backstory.domain.ledger import Allowance, Cap, Caps, Line, Standing, allowances, day_of, lines, may_call
from backstory.errors import InputError
from backstory.ports.ledger import Ledger
from backstory.ports.system import Clock

MAX_DAYS = 366


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A feature that does without a model for now, the cap that is reached, and until when."""

    feature: str
    reached: Allowance
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What was booked since a moment, and how today's caps stand. A session's cap stands here with nothing spent."""

    since: datetime
    lines: Sequence[Line]
    allowances: Sequence[Allowance]
    stopped: Sequence[Stopped]


class Spending:
    """Reads the ledger. ``features`` are those that ask a model as things are set; ``zone`` is where days end."""

    def __init__(self, ledger: Ledger, *, caps: Caps, features: Sequence[str], clock: Clock, zone: tzinfo) -> None:
        self._ledger = ledger
        self._caps = caps
        self._features = features
        self._clock = clock
        self._zone = zone

    async def costs(self, *, days: int) -> Costs:
        """The last days, today included. Raises InputError unless ``days`` lies between 1 and ``MAX_DAYS``."""
        if not 1 <= days <= MAX_DAYS:
            raise InputError(f"days is {days}; it must lie between 1 and {MAX_DAYS}", field="days")
        since = day_of(self._clock.now(), self._zone, back=days - 1).start
        entries = await self._ledger.entries(since=since)
        return Costs(
            since=since,
            lines=lines(entries, self._zone),
            allowances=await self._allowances(),
            stopped=await self.stopped(),
        )

    async def stopped(self) -> list[Stopped]:
        """The features at a cap of today. One that only a session is at is not told: it goes on in the next."""
        if not self._caps.is_set:
            return []
        today = day_of(self._clock.now(), self._zone)
        found = [(feature, may_call(feature, self._caps, await self._standing(feature))) for feature in self._features]
        return [Stopped(feature=feature, reached=cap, until=today.end) for feature, cap in found if cap is not None]

    async def _allowances(self) -> list[Allowance]:
        """Every cap once, those of features first."""
        found: dict[tuple[Cap, str | None], Allowance] = {}
        for feature in self._caps.features or ("",):
            for each in allowances(feature, self._caps, await self._standing(feature)):
                found.setdefault((each.cap, each.feature), each)
        if self._caps.session_tokens is not None:
            found[Cap.SESSION, None] = Allowance(cap=Cap.SESSION, limit=self._caps.session_tokens, spent=0)
        return sorted(found.values(), key=lambda each: list(Cap).index(each.cap))

    async def _standing(self, feature: str) -> Standing:
        since = day_of(self._clock.now(), self._zone).start
        return Standing(
            day=await self._ledger.spent(since=since),
            feature=await self._ledger.spent(since=since, feature=feature),
        )
