"""What a memory is worth over time: how firmly it was said, how useful it was, and how long ago it was last confirmed.

It decides what is pruned and which core memories come first. How well a memory answers a query is ``ranking.py``'s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from backstory.domain.memory import Memory, Source

# The formula and its figures are opencode-memory's, whose weights run from 0 to 4 where ours run from 0 to 1.
WEIGHT_SCALE = 4.0
STATED_BONUS = 0.5
HELPFUL, IRRELEVANT = 0.1, 0.15
MOST_COUNTED = 5
LEAST_USEFULNESS = -0.5
MOST_WORTH = WEIGHT_SCALE + STATED_BONUS + HELPFUL * MOST_COUNTED
DECAY = timedelta(days=45)

STATED = frozenset({Source.EXPLICIT, Source.CAPTURED})
"""What somebody asked to be remembered."""

DERIVED = frozenset({Source.DREAMED, Source.OBSERVED})
"""What nobody asked to be remembered: it was distilled from what was said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """The parts of a memory's worth.

    ``base`` lies in [0, 4], ``stated`` is 0 or 0.5, ``usefulness`` lies in [-0.5, 0.5], and ``decay`` in (0, 1] is what
    ``age`` since the last confirmation left of them: 1 for a pinned memory.
    """

    base: float
    stated: float
    usefulness: float
    decay: float
    age: timedelta

    @property
    def total(self) -> float:
        """The worth, in [-0.5, 5]."""
        return (self.base + self.stated + self.usefulness) * self.decay


def parts(memory: Memory, now: datetime) -> Worth:
    """What a memory is worth at ``now``, part by part. Being shown or recalled counts for nothing."""
    age = max(now - memory.times.confirmed, timedelta(0))
    return Worth(
        base=memory.weight * WEIGHT_SCALE,
        stated=STATED_BONUS if memory.source in STATED else 0.0,
        usefulness=usefulness(memory),
        decay=1.0 if memory.pinned else math.exp(-(age / DECAY)),
        age=age,
    )


def worth(memory: Memory, now: datetime) -> float:
    """What a memory is worth at ``now``: the total of its parts."""
    return parts(memory, now).total


def usefulness(memory: Memory) -> float:
    """What feedback adds or takes, in [-0.5, 0.5]: the first five of each kind count."""
    helpful = HELPFUL * min(MOST_COUNTED, memory.counters.helpful)
    irrelevant = IRRELEVANT * min(MOST_COUNTED, memory.counters.irrelevant)
    return max(LEAST_USEFULNESS, helpful - irrelevant)
