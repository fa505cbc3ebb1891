"""What the memory that stays takes over from those that say the same and go.

Which of them stays is ``consolidation.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backstory.domain.admission import MAX_TAGS
from backstory.domain.memory import Memory, Tier
from backstory.domain.provenance import is_injectable, trust

MOST_MESSAGES = 50
"""Messages that a memory can name as where it comes from, after it took over those of others."""


def merged(kept: Memory, removed: Sequence[Memory]) -> Memory:
    """The memory that stays, with what it takes over: labels, pin, the longer life, the earliest learned and the latest
    confirmed date, the messages behind them, and the feedback.

    Its text, and so its origin, is its own. From outside text (below ``agent``) nothing is taken over by what is
    trusted more: a page that repeats what the user said must not pin it, or put a label on it.
    """
    for other in removed:
        if is_injectable(other.origin) or trust(other.origin) >= trust(kept.origin):
            kept = _with_what_is_known_of(other, kept)
    return kept


def _with_what_is_known_of(other: Memory, kept: Memory) -> Memory:
    times = replace(
        kept.times,
        learned=min(kept.times.learned, other.times.learned),
        confirmed=max(kept.times.confirmed, other.times.confirmed),
    )
    counters = replace(
        kept.counters,
        helpful=max(kept.counters.helpful, other.counters.helpful),
        irrelevant=max(kept.counters.irrelevant, other.counters.irrelevant),
    )
    messages = dict.fromkeys((*kept.provenance.messages, *other.provenance.messages))
    lasts = kept.expires_at is None or other.expires_at is None
    return replace(
        kept,
        tags=tuple(dict.fromkeys((*kept.tags, *other.tags)))[:MAX_TAGS],
        area=kept.area or other.area,
        issue=kept.issue or other.issue,
        pinned=kept.pinned or other.pinned,
        tier=_lasting_tier(kept.tier, other.tier),
        expires_at=None if lasts else max(filter(None, (kept.expires_at, other.expires_at))),
        weight=max(kept.weight, other.weight),
        provenance=replace(kept.provenance, messages=tuple(messages)[:MOST_MESSAGES]),
        times=times,
        counters=counters,
    )


def _lasting_tier(tier: Tier, other: Tier) -> Tier:
    """Core before archival before temporary."""
    return min(tier, other, key=list(Tier).index)
