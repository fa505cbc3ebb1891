"""Settling a conflict: who may, what stays, what goes, and what is remembered of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from backstory.domain.history import Action, Author
from backstory.domain.memory import Superseded, status_name
from backstory.domain.provenance import Origin
from backstory.domain.settlement import KeepBoth, KeepThis, SayInstead
from backstory.errors import InputError, NotFound, OutOfScope
from backstory.testing.fakes import START

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

from tests.unit.services.disputes import HOUR, NEW, OLD, conflicts, disagreeing, flag, resolve, states, status, update


def test_keeping_one_side_replaces_the_other_and_confirms_it(shop: Shop) -> None:
    old, new = disagreeing(shop)
    shop.clock.advance(HOUR)
    settled = resolve(shop, 2, KeepThis())
    assert settled.change is not None
    assert settled.change.action is Action.RESOLVE
    assert shop.stored(1).status == Superseded(by=new.id, since=START + HOUR)
    assert (states(shop, 2), shop.stored(2).times.confirmed) == (["active"], START + HOUR)
    assert shop.do(conflicts(shop).conflicts(shop.person)) == []
    shop.undo(settled.change)
    assert (status(shop, 1).against, status(shop, 2).against) == (new.id, old.id)


def test_a_person_who_keeps_an_agents_word_makes_it_their_own(shop: Shop) -> None:
    shop.say(OLD, origin=Origin.AGENT)
    shop.say(NEW, origin=Origin.AGENT)
    resolve(shop, 1, KeepThis())
    assert shop.stored(1).origin is Origin.USER


def test_keeping_both_is_remembered_until_one_says_something_else(shop: Shop) -> None:
    disagreeing(shop)
    resolve(shop, 1, KeepBoth())
    assert states(shop, 1, 2) == ["active", "active"]
    assert flag(shop, 1, 2) is None
    update(shop, 2, content="The metrics port is 9091.")
    assert states(shop, 1, 2) == ["conflicted", "conflicted"]


def test_keeping_both_taken_back_flags_them_again(shop: Shop) -> None:
    disagreeing(shop)
    resolve(shop, 1, KeepBoth())
    shop.undo()
    assert states(shop, 1, 2) == ["conflicted", "conflicted"]
    shop.forget(2)
    shop.undo()
    resolve(shop, 2, KeepThis())
    assert states(shop, 1, 2) == ["superseded", "active"]


def test_keeping_both_counts_where_only_one_was_flagged(shop: Shop) -> None:
    shop.say(OLD)
    shop.say(NEW, origin=Origin.WEB)
    resolve(shop, 2, KeepBoth())
    assert states(shop, 1, 2) == ["active", "active"]
    assert flag(shop, 2, 1) is None


def test_a_new_text_takes_the_place_of_both(shop: Shop) -> None:
    shop.say(OLD, pinned=True)
    shop.say(NEW)
    settled = resolve(shop, 1, SayInstead(text="The metrics port is 8080 in staging and 9090 in production."))
    assert states(shop, 1, 2, 3) == ["superseded", "superseded", "active"]
    assert (shop.stored(3).pinned, shop.stored(3).origin) == (True, Origin.USER)
    assert len(settled.edits) == 3
    shop.undo()
    assert states(shop, 1, 2, 3) == ["conflicted", "conflicted", "deleted"]


def test_a_new_text_that_one_side_says_keeps_that_side(shop: Shop) -> None:
    disagreeing(shop)
    resolve(shop, 1, SayInstead(text="the metrics PORT is 9090."))
    assert states(shop, 1, 2) == ["superseded", "active"]


def test_a_dry_run_tells_what_would_be_done_and_does_nothing(shop: Shop) -> None:
    disagreeing(shop)
    planned = resolve(shop, 2, KeepThis(), dry_run=True)
    assert planned.change is None
    assert [(edit.after.n, status_name(edit.after.status)) for edit in planned.edits] == [
        (2, "active"),
        (1, "superseded"),
    ]
    assert states(shop, 1, 2) == ["conflicted", "conflicted"]


def test_an_agent_decides_between_guesses_but_not_against_the_user(shop: Shop) -> None:
    shop.say(OLD)
    shop.say(NEW, origin=Origin.AGENT)
    as_agent: dict[str, Any] = {"viewer": shop.model, "author": Author.AGENT}
    for how in (KeepThis(), KeepBoth(), SayInstead(text="The metrics port is 1.")):
        with pytest.raises(OutOfScope, match="#1 was said by the user"):
            resolve(shop, 2, how, **as_agent)
    resolve(shop, 1, KeepThis(), **as_agent)
    assert states(shop, 1, 2) == ["active", "superseded"]
    assert shop.stored(1).origin is Origin.USER


def test_settling_needs_a_conflict_in_reach(shop: Shop) -> None:
    shop.say(OLD)
    with pytest.raises(InputError, match="#1 is in no conflict"):
        resolve(shop, 1, KeepThis())
    with pytest.raises(NotFound):
        resolve(shop, 9, KeepThis())
    shop.say(NEW)
    with pytest.raises(OutOfScope):
        resolve(shop, 1, KeepThis(), viewer=replace(shop.elsewhere, all_projects=True))
    with pytest.raises(InputError, match="private"):
        resolve(shop, 1, SayInstead(text="<private>x</private>"))
