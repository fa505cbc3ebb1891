"""What came of a look at a session that was to be distilled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from backstory.domain.dreaming_plan import Plan
from backstory.domain.history import Change
from backstory.domain.ids import SessionId
from backstory.services.dreaming_work import Distilled


class Outcome(StrEnum):
    """What came of a look at a session."""

    DONE = "done"
    NOTHING = "nothing new"
    UNFINISHED = "more to come"
    BUSY = "another process is at it"
    RESTING = "waits until a later moment"
    FAILED = "failed"
    LEFT_OUT = "not distilled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dreamt:
    """What was done in a session. ``changes`` are as they were stored; ``plans`` all that was decided, by stretch, also
    where nothing came of it. ``again_at`` is when another look is worth it; ``because`` says why there is nothing."""

    session: SessionId
    outcome: Outcome
    distilled: tuple[Distilled, ...] = ()
    changes: tuple[Change, ...] = ()
    again_at: datetime | None = None
    because: str | None = None

    @property
    def plans(self) -> tuple[Plan, ...]:
        """What was decided, by stretch."""
        return tuple(made.plan for made in self.distilled)


Told = Callable[[Distilled], None]
