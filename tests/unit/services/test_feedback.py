"""What a verdict on a memory changes, and what it never does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from backstory.domain.history import Action, Author, Change
from backstory.domain.memory import Memory, Sensitivity, Source, Tier
from backstory.domain.provenance import Origin
from backstory.domain.worth import worth
from backstory.errors import Conflict, InputError, NotFound, OutOfScope
from backstory.ports.backend import Backend
from backstory.ports.store import Use
from backstory.services.feedback import Feedback, Verdict
from tests.stores import open_file, open_in_memory

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

DAY = timedelta(days=1)


def rate(shop: Shop, verdict: Verdict, *refs: str, author: Author = Author.AGENT) -> Change:
    service = Feedback(shop.backend.memories, shop.reference, clock=shop.clock, ids=shop.ids)
    viewer = shop.model if author is Author.AGENT else shop.person
    return shop.do(service.rate(refs, verdict, viewer=viewer, author=author))


def later(shop: Shop, days: int = 45) -> None:
    shop.clock.moment += days * DAY


def test_useful_confirms_and_raises(shop: Shop) -> None:
    before = shop.say("the port is 4000").memory
    later(shop)
    change = rate(shop, Verdict.USEFUL, "#1")
    after = shop.stored(1)
    assert (change.action, change.author, change.reason) == (Action.FEEDBACK, Author.AGENT, "useful")
    assert after.times == replace(before.times, confirmed=shop.clock.now())
    assert after.counters.helpful == 1
    assert worth(after, shop.clock.now()) == pytest.approx(3.6)


def test_irrelevant_only_lowers_and_moves_no_date(shop: Shop) -> None:
    before = shop.say("the port is 4000").memory
    later(shop)
    rate(shop, Verdict.IRRELEVANT, "#1")
    after = shop.stored(1)
    assert after.times == before.times
    assert after.counters == replace(before.counters, irrelevant=1)
    assert worth(after, shop.clock.now()) < worth(before, shop.clock.now())


def test_repeating_a_verdict_is_bounded(shop: Shop) -> None:
    shop.say("the port is 4000")
    for _ in range(12):
        rate(shop, Verdict.USEFUL, "#1")
    assert worth(shop.stored(1), shop.clock.now()) == 4.0
    for _ in range(12):
        rate(shop, Verdict.IRRELEVANT, "#1")
    assert worth(shop.stored(1), shop.clock.now()) == pytest.approx(3.25)


def test_a_verdict_touches_neither_trust_nor_tier_pin_or_expiry(shop: Shop) -> None:
    before = shop.say("from a page", origin=Origin.WEB, source=Source.DREAMED, expires_in=DAY, tier=Tier.TEMPORARY)
    later(shop, days=0)
    for verdict in Verdict:
        rate(shop, verdict, "#1")

    def untouched(memory: Memory) -> tuple[object, ...]:
        return (memory.origin, memory.source, memory.tier, memory.pinned, memory.expires_at, memory.status)

    assert untouched(shop.stored(1)) == untouched(before.memory)


def test_being_shown_a_hundred_times_is_no_verdict(shop: Shop) -> None:
    before = shop.say("the port is 4000").memory
    later(shop)
    for _ in range(50):
        for surfaced in (True, False):
            use = Use(memories=(before.id,), at=shop.clock.now(), session=shop.model.session, surfaced=surfaced)
            shop.do(shop.backend.memories.record_use(use))
    after = shop.stored(1)
    assert (after.counters.surfaced, after.counters.recalled) == (50, 50)
    assert after.times.confirmed == before.times.confirmed
    assert worth(after, shop.clock.now()) == worth(before, shop.clock.now())


def test_several_are_one_change_and_each_counts_once(shop: Shop) -> None:
    shop.say("the port is 4000")
    shop.say("the host is heron")
    change = rate(shop, Verdict.USEFUL, "#1", "heron", "1")
    assert [edit.after.n for edit in change.edits] == [1, 2]
    assert [shop.stored(n).counters.helpful for n in (1, 2)] == [1, 1]


def test_a_verdict_can_be_undone(shop: Shop) -> None:
    before = shop.say("the port is 4000").memory
    later(shop)
    shop.undo(rate(shop, Verdict.USEFUL, "#1", author=Author.USER))
    restored = shop.stored(1)
    assert replace(restored, revision=before.revision) == before


def test_a_verdict_keeps_the_use_counted_since(shop: Shop) -> None:
    memory = shop.say("the port is 4000").memory
    change = rate(shop, Verdict.USEFUL, "#1")
    use = Use(memories=(memory.id,), at=shop.clock.now(), session=None, surfaced=True)
    shop.do(shop.backend.memories.record_use(use))
    shop.undo(change)
    assert (shop.stored(1).counters.helpful, shop.stored(1).counters.surfaced) == (0, 1)


def test_only_what_may_be_changed_from_here_is_rated(shop: Shop) -> None:
    shop.say("theirs", viewer=shop.elsewhere)
    shop.say("mine alone", sensitivity=Sensitivity.LOCAL_ONLY)
    with pytest.raises(OutOfScope):
        rate(shop, Verdict.USEFUL, "#1")
    for ref in ("#2", "mine alone", "#77"):
        with pytest.raises(NotFound):
            rate(shop, Verdict.USEFUL, ref)
    for refs in ((), ("#1",) * 101):
        with pytest.raises(InputError):
            rate(shop, Verdict.USEFUL, *refs)


def test_one_that_lost_a_race_looks_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.say("the port is 4000")
    commit = shop.backend.memories.commit
    lost: list[Change] = []

    async def slow(change: Change) -> Change:
        if not lost:
            lost.append(change)
            raise Conflict("somebody was first")
        return await commit(change)

    monkeypatch.setattr(shop.backend.memories, "commit", slow)
    rate(shop, Verdict.USEFUL, "#1")
    assert shop.stored(1).counters.helpful == 1


@pytest.mark.parametrize("opened", [open_in_memory, open_file])
def test_verdicts_are_kept_by_the_store(shop: Shop, opened: Callable[[Path], Backend], tmp_path: Path) -> None:
    shop.backend = opened(tmp_path)
    shop.say("the port is 4000")
    rate(shop, Verdict.USEFUL, "#1")
    change = rate(shop, Verdict.IRRELEVANT, "#1")
    assert (shop.stored(1).counters.helpful, shop.stored(1).counters.irrelevant) == (1, 1)
    shop.undo(change)
    assert (shop.stored(1).counters.helpful, shop.stored(1).counters.irrelevant) == (1, 0)
    anyio.run(shop.backend.memories.close)
