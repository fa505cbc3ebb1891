"""How a conflict between memories is settled: what may be decided, by whom, and what becomes of each side.

Finding the sides, and writing what was decided, is ``services/conflicts.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from backstory.domain.change_plan import ChangePlan
from backstory.domain.contradiction import resolved, stands_firm
from backstory.domain.history import Author
from backstory.domain.lifecycle import confirm, supersede
from backstory.domain.memory import Memory, narrower
from backstory.domain.provenance import Origin, Provenance
from backstory.errors import InputError, OutOfScope


@dataclass(frozen=True, slots=True)
class KeepThis:
    """The one that is named holds; the other is superseded by it."""


@dataclass(frozen=True, slots=True)
class KeepBoth:
    """Both hold, and the two are not flagged again while they say the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SayInstead:
    """Neither holds; ``text`` takes the place of both."""

    text: str
    provenance: Provenance = field(default_factory=Provenance)


Settlement = KeepThis | KeepBoth | SayInstead


def keep_one(kept: Memory, others: Sequence[Memory], plan: ChangePlan, *, author: Author, now: datetime) -> None:
    """Plan that one is confirmed and takes the place of the others; whoever decides stands for what stays.

    Raises InputError where readers would lose what they know.
    """
    for other in others:
        if narrower(kept.visibility, other.visibility) is not other.visibility:
            raise InputError(
                f"#{other.n} is for more readers than #{kept.n}; they would lose it",
                field="id",
                hint="change the scope first, or keep both",
            )
    origin = Origin.USER if author is Author.USER else kept.origin
    plan.plan(kept, replace(confirm(resolved(kept), now=now), origin=origin))
    for other in others:
        plan.plan(other, supersede(other, by=kept.id, now=now))


def check_may_decide(against: Sequence[Memory], author: Author) -> None:
    """Only a person decides against what the user stated or confirmed."""
    for memory in against:
        if author is not Author.USER and stands_firm(memory):
            raise OutOfScope(
                f"memory #{memory.n} was said by the user, so only the user decides against it:"
                f" `backstory resolve {memory.n}`"
            )
