"""The invariants of dream states, summaries and doubts in Postgres, as checks."""

from __future__ import annotations

from collections.abc import Iterator

from backstory.adapters.stores.postgres.doubts import SETTLED, unreadable_doubts
from backstory.adapters.stores.postgres.dreams import UNFIT_SOURCES, unreadable_states, unreadable_summaries
from backstory.adapters.stores.postgres.looking import Look, Rule
from backstory.adapters.stores.sqlite.verified_dreams import doubt_trouble, dream_trouble
from backstory.ports.upkeep import Invariant, Severity


def _dreams(look: Look) -> Iterator[str]:
    unfit = {project for (project,) in look.raw.execute(UNFIT_SOURCES).fetchall()}
    yield from dream_trouble(unreadable_states(look.raw), unreadable_summaries(look.raw), unfit)


def _doubts(look: Look) -> Iterator[str]:
    settled = [memory for (memory,) in look.raw.execute(SETTLED).fetchall()]
    yield from doubt_trouble(unreadable_doubts(look.raw), settled)


DREAM_RULES = (
    Rule(invariant=Invariant.DREAMS, severity=Severity.OUT_OF_STEP, check=_dreams),
    Rule(invariant=Invariant.DOUBTS, severity=Severity.OUT_OF_STEP, check=_doubts),
)
