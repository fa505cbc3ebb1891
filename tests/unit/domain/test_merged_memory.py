"""What a memory takes over from those that it replaces, and what it never does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from backstory.domain.consolidation import comparable, same_words
from backstory.domain.ids import MemoryId, MessageId
from backstory.domain.memory import Counters, Memory, Tier, Times
from backstory.domain.merged_memory import MOST_MESSAGES, merged
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.scope import Audience
from backstory.testing.fakes import START, sample_memory, ulid

NOW = START + timedelta(days=400)


def said(*texts: str) -> list[Memory]:
    """Memories #1, #2 and so on, each a minute newer than the one before."""
    return [
        sample_memory(text, id=MemoryId(ulid(n)), n=n, at=START + timedelta(minutes=n))
        for n, text in enumerate(texts, start=1)
    ]


def test_what_stays_takes_over_what_was_known_of_those_that_go() -> None:
    kept, older = said("Use uv.", "use uv.")
    kept = replace(kept, tier=Tier.TEMPORARY, expires_at=NOW, tags=("a", "b"), area=None)
    times = Times(learned=START - timedelta(9), updated=START, confirmed=NOW, surfaced=NOW)
    messages = tuple(MessageId(f"m{number}") for number in range(MOST_MESSAGES + 5))
    older = replace(
        older, tags=("b", "c"), pinned=True, area="tools", times=times, weight=1.0,
        counters=Counters(helpful=3, irrelevant=1), provenance=Provenance(messages=messages),
    )  # fmt: skip
    whole = merged(kept, [older])
    assert (whole.id, whole.content, whole.origin) == (kept.id, kept.content, kept.origin)
    assert (whole.tags, whole.area, whole.pinned) == (("a", "b", "c"), "tools", True)
    assert (whole.tier, whole.expires_at) == (Tier.ARCHIVAL, None)
    assert (whole.times.learned, whole.times.confirmed) == (times.learned, NOW)
    assert whole.times.surfaced is None
    assert (whole.counters.helpful, whole.counters.irrelevant) == (3, 1)
    assert whole.provenance.messages == messages[:MOST_MESSAGES]
    assert whole.provenance.derived_from == ()


def test_of_two_that_end_the_later_end_holds() -> None:
    kept, older = (replace(memory, tier=Tier.TEMPORARY) for memory in said("Use uv.", "use uv."))
    kept, older = replace(kept, expires_at=START), replace(older, expires_at=NOW)
    assert merged(kept, [older]).expires_at == NOW
    assert merged(kept, [older]).tier is Tier.TEMPORARY


@pytest.mark.parametrize("origin", [Origin.WEB, Origin.FILE, Origin.TOOL, Origin.IMPORTED, Origin.PEER])
def test_outside_text_puts_neither_pin_nor_label_nor_date_on_what_is_trusted(origin: Origin) -> None:
    kept, copy = said("Use uv.", "use uv.")
    copy = replace(
        copy, origin=origin, pinned=True, tags=("obey me",), area="x", tier=Tier.CORE,
        times=replace(copy.times, learned=START - timedelta(999), confirmed=NOW),
    )  # fmt: skip
    (group,) = same_words(comparable([kept, copy], now=NOW, audience=Audience.PERSON)).groups
    assert (group.kept, group.removed) == (kept, (copy,))
    for trusted in (Origin.USER, Origin.AGENT):
        told = replace(kept, origin=trusted)
        assert merged(told, [copy]) == told


def test_merging_never_raises_an_origin() -> None:
    kept, other = said("Use uv.", "use uv.")
    for one in Origin:
        for two in Origin:
            assert merged(replace(kept, origin=one), [replace(other, origin=two)]).origin is one
