"""Look at which sessions wait to be distilled, and what failed there. Asks no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backstory.domain.dream_state import DreamState
from backstory.ports.dreams import DreamStore
from backstory.ports.system import Clock

MOST_WAITING = 200
"""Sessions that are told of at once."""
_FOR_EVER = timedelta(days=3_650)  # no lease and no pause is as long


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Sessions with something said that is not distilled yet, the latest first; ``now`` is the moment of the look."""

    states: Sequence[DreamState]
    now: datetime

    @property
    def problem(self) -> str | None:
        """What went wrong last, in the session that was looked at last, and is not made up for."""
        failed = [state for state in self.states if state.problem is not None]
        return max(failed, key=lambda state: state.updated_at).problem if failed else None


class DreamInspection:
    """Reads the journal of dreaming."""

    def __init__(self, dreams: DreamStore, *, clock: Clock) -> None:
        self._dreams = dreams
        self._clock = clock

    async def waiting(self) -> Waiting:
        """The sessions that are due, those too that rest or that a process is at; at most ``MOST_WAITING``."""
        now = self._clock.now()
        sessions = await self._dreams.due(now=now + _FOR_EVER, limit=MOST_WAITING)
        states = [await self._dreams.state(session) for session in sessions]
        return Waiting(states=[state for state in states if state is not None], now=now)
