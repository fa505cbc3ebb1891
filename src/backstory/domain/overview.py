"""What there is, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from backstory.domain.memory import Memory, Sensitivity

_CHARS_PER_TOKEN = 4  # of English text; an estimate that depends on no model


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Counts of memories: the most frequent first in each mapping, then by name; what is not there is left out.

    ``private`` are those never offered unasked by a person's wish, ``surfaced`` those that stood in a block at least
    once. ``tokens`` is about what all texts together would cost.
    """

    memories: int
    by_source: Mapping[str, int]
    by_visibility: Mapping[str, int]
    by_tier: Mapping[str, int]
    by_kind: Mapping[str, int]
    pinned: int
    private: int
    surfaced: int
    tokens: int


def overview(memories: Iterable[Memory]) -> Overview:
    """Count memories."""
    counted = list(memories)
    return Overview(
        memories=len(counted),
        by_source=_counts(memory.source.value for memory in counted),
        by_visibility=_counts(memory.visibility.value for memory in counted),
        by_tier=_counts(memory.tier.value for memory in counted),
        by_kind=_counts(memory.kind.value for memory in counted),
        pinned=sum(memory.pinned for memory in counted),
        private=sum(memory.sensitivity is not Sensitivity.NORMAL for memory in counted),
        surfaced=sum(memory.counters.surfaced > 0 for memory in counted),
        tokens=-(-sum(len(memory.content) for memory in counted) // _CHARS_PER_TOKEN),
    )


def _counts(names: Iterable[str]) -> Mapping[str, int]:
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))
