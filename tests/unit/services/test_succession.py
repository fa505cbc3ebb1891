"""What replaces another memory: what it keeps of it, whom it may replace, and what comes back when it is forgotten."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backstory.domain.history import Action, Change, Edit
from backstory.domain.ids import SessionId
from backstory.domain.lifecycle import supersede
from backstory.domain.memory import Memory, Sensitivity, Superseded, Tier, Visibility
from backstory.domain.provenance import Origin
from backstory.errors import InputError, OutOfScope
from backstory.testing.fakes import START, sample_change

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

HOUR = timedelta(hours=1)


def test_superseding_hides_the_old_and_loses_nothing(shop: Shop) -> None:
    shop.say("We use npm")
    done = shop.say("We use pnpm", supersedes="npm")
    assert done.superseded is not None
    assert (done.memory.n, done.superseded.n, done.change.action) == (2, 1, Action.SUPERSEDE)
    assert shop.stored(1).status == Superseded(by=done.memory.id, since=START)
    assert shop.stored(1).content == "We use npm"


def test_a_successor_keeps_readers_pin_and_tier(shop: Shop) -> None:
    shop.say("We use npm", visibility=Visibility.GLOBAL, pinned=True, tier=Tier.CORE)
    new = shop.say("We use pnpm", supersedes="#1").memory
    assert (new.visibility, new.pinned, new.tier) == (Visibility.GLOBAL, True, Tier.CORE)
    assert shop.found("which package manager do we use, pnpm?", viewer=shop.elsewhere) == ["We use pnpm"]
    newer = shop.say("We use bun", supersedes="#2", tier=Tier.ARCHIVAL).memory
    assert (newer.pinned, newer.tier) == (True, Tier.ARCHIVAL)


def test_a_successor_is_not_for_fewer_readers(shop: Shop) -> None:
    shop.say("We use npm", visibility=Visibility.GLOBAL)
    shop.say("We use make")
    for n, visibility in ((1, Visibility.PROJECT), (1, Visibility.SESSION), (2, Visibility.SESSION)):
        with pytest.raises(InputError, match=f"#{n} is for more readers") as caught:
            shop.say("We use pnpm", supersedes=f"#{n}", visibility=visibility)
        assert caught.value.field == "visibility"
    assert shop.say("We use just", supersedes="#2", visibility=Visibility.GLOBAL).memory.n == 3


def test_a_successor_of_a_sessions_memory_stays_in_that_session(shop: Shop) -> None:
    shop.say("on branch x", visibility=Visibility.SESSION)
    elsewhere = replace(shop.person, session=SessionId("ses-2"))
    new = shop.say("on branch y", viewer=elsewhere, supersedes="#1").memory
    assert (new.visibility, new.session) == (Visibility.SESSION, shop.person.session)


def test_a_successor_gives_nothing_away(shop: Shop) -> None:
    shop.say("the phone lies left", sensitivity=Sensitivity.LOCAL_ONLY)
    assert shop.say("the phone lies right", supersedes="#1").memory.sensitivity is Sensitivity.LOCAL_ONLY


def test_a_temporary_memorys_successor_is_temporary(shop: Shop) -> None:
    shop.say("the vpn is down", expires_in=HOUR)
    new = shop.say("the vpn is slow", supersedes="#1").memory
    assert (new.tier, new.expires_at) == (Tier.TEMPORARY, START + HOUR)
    shop.clock.advance(HOUR)
    assert shop.say("the vpn is up", supersedes="#2").memory.expires_at == START + HOUR + timedelta(hours=24)
    assert shop.say("the vpn is up for good", supersedes="#3", tier=Tier.ARCHIVAL).memory.expires_at is None


def test_superseding_what_was_superseded_leaves_one_current(shop: Shop) -> None:
    shop.say("a")
    shop.say("b", supersedes="#1")
    shop.say("c", supersedes="#2")
    done = shop.say("d", supersedes="#1")
    assert [shop.state(n) for n in (1, 2, 3, 4)] == ["superseded"] * 3 + ["active"]
    assert shop.stored(3).status == Superseded(by=done.memory.id, since=START)
    assert done.superseded is not None
    assert done.superseded.n == 3
    assert "#1 had been replaced by #3" in done.notes[0]


def test_the_heir_is_protected_as_what_it_replaced_was(shop: Shop) -> None:
    shop.say("a", origin=Origin.WEB)
    shop.say("b", supersedes="#1")
    with pytest.raises(OutOfScope, match="#2 was said by the user"):
        shop.say("c", supersedes="#1", origin=Origin.WEB)
    shop.say("d", supersedes="#2", sensitivity=Sensitivity.LOCAL_ONLY)
    with pytest.raises(OutOfScope, match="#1 was replaced already"):
        shop.say("e", supersedes="#1", origin=Origin.AGENT, viewer=shop.model)


def test_outside_text_never_replaces_the_users_words(shop: Shop) -> None:
    shop.say("We use npm")
    with pytest.raises(OutOfScope, match="said by the user"):
        shop.say("We use yarn", supersedes="#1", origin=Origin.WEB)
    assert shop.say("We use yarn", supersedes="#1", origin=Origin.AGENT).memory.n == 2


def test_forgetting_brings_back_all_that_was_replaced(shop: Shop) -> None:
    shop.say("a")
    shop.say("b")
    shop.say("c", supersedes="#1")
    new = shop.stored(3)
    shop.do(shop.backend.memories.commit(replace_by(shop, 2, new)))
    change = shop.forget(3)
    assert [shop.state(n) for n in (1, 2, 3)] == ["active", "active", "deleted"]
    assert {edit.after.n for edit in change.edits} == {1, 2, 3}
    shop.undo(change)
    assert [shop.state(n) for n in (1, 2, 3)] == ["superseded", "superseded", "active"]


def test_forgetting_the_middle_of_a_chain_does_not_bring_back_its_start(shop: Shop) -> None:
    shop.say("a")
    shop.say("b", supersedes="#1")
    third = shop.say("c", supersedes="#2").memory
    shop.forget(2)
    assert shop.stored(1).status == Superseded(by=third.id, since=START)
    assert shop.state(3) == "active"
    shop.forget(3)
    assert (shop.state(1), shop.state(2)) == ("active", "deleted")


def test_forgetting_a_whole_tail_brings_back_the_start(shop: Shop) -> None:
    shop.say("a")
    shop.say("b", supersedes="#1")
    shop.say("c", supersedes="#2")
    shop.forget(2, 3)
    assert [shop.state(n) for n in (1, 2, 3)] == ["active", "deleted", "deleted"]


def replace_by(shop: Shop, n: int, new: Memory) -> Change:
    old = shop.stored(n)
    return sample_change(99, Edit(before=old, after=supersede(old, by=new.id, now=START)))
