"""What comes from outside waits for a person, and nothing but a person's word raises an origin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backstory.codecs.jsonl import encode_lines
from backstory.domain.history import Action, Author
from backstory.domain.ids import MemoryId
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Active, Conflicted, Deleted, Sensitivity
from backstory.domain.provenance import Origin, Provenance, lowest
from backstory.errors import InputError, NotFound, OutOfScope
from backstory.ports.backend import Backend
from backstory.services.remember import Draft
from backstory.services.review import REJECTED, Review
from backstory.testing.fakes import add_memories, sample_memory
from tests.stores import open_file, open_in_memory

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

OUTSIDE = [Origin.TOOL, Origin.FILE, Origin.WEB, Origin.IMPORTED, Origin.PEER]


def review(shop: Shop) -> Review:
    return Review(
        shop.backend.memories, shop.reference, shop.remember, clock=shop.clock, ids=shop.ids, text=shop.backend.text
    )


def queued(shop: Shop) -> list[int]:
    """The numbers of those that wait; counting them gives as many."""
    assert shop.do(review(shop).count(shop.person)) == len(shop.do(review(shop).queue(shop.person)))
    return [memory.n for memory in shop.do(review(shop).queue(shop.person))]


@pytest.mark.parametrize("opened", [open_in_memory, open_file])
def test_what_is_below_agent_waits_newest_first(shop: Shop, opened: Callable[[Path], Backend], tmp_path: Path) -> None:
    shop.backend = opened(tmp_path)
    for n, origin in enumerate([*OUTSIDE, Origin.USER, Origin.AGENT]):
        shop.clock.advance(timedelta(minutes=1))
        private = Sensitivity.PRIVATE if n in (2, 6) else Sensitivity.NORMAL
        shop.say(f"statement {n}", origin=origin, sensitivity=private)
    assert queued(shop) == [5, 4, 3, 2, 1]
    assert [memory.n for memory in shop.do(review(shop).queue(shop.person, limit=3))] == [5, 4, 3]
    assert [memory.n for memory in shop.do(review(shop).queue(shop.person, limit=2))] == [5, 4]
    shop.forget(5)
    shop.say("statement 3 anew", supersedes="4")
    assert queued(shop) == [3, 2, 1]


def test_other_projects_wait_in_their_own_queue(shop: Shop) -> None:
    shop.say("from a page", origin=Origin.WEB, viewer=shop.elsewhere)
    assert queued(shop) == []
    reader = replace(shop.person, all_projects=True)
    assert shop.do(review(shop).queue(reader)) == []
    with pytest.raises(OutOfScope):
        shop.do(review(shop).accept(["#1"], viewer=reader))


def test_accepting_makes_it_the_users_word_and_undo_lowers_it_again(shop: Shop) -> None:
    shop.say("deploy on Mondays", origin=Origin.WEB)
    shop.say("deploy by hand", origin=Origin.FILE)
    change = shop.do(review(shop).accept(["#1", "2", "#1"], viewer=shop.person))
    assert (change.action, change.author, len(change.edits)) == (Action.TRUST, Author.USER, 2)
    assert [shop.stored(n).origin for n in (1, 2)] == [Origin.USER, Origin.USER]
    assert queued(shop) == []
    assert shop.stored(1).times == change.edits[0].before.times  # type: ignore[union-attr]  # it was not added
    shop.undo(change)
    assert [shop.stored(n).origin for n in (1, 2)] == [Origin.WEB, Origin.FILE]


def test_accepting_flags_what_the_accepted_one_contradicts_and_undo_takes_both_back(shop: Shop) -> None:
    shop.say("The orchard service listens on port 8080")
    # as an import leaves it: nobody compared it with what is known here
    brought = sample_memory("The orchard service listens on port 9090", origin=Origin.IMPORTED)
    shop.do(add_memories(shop.backend.memories, brought))
    change = shop.do(review(shop).accept(["#2"], viewer=shop.person))
    assert [isinstance(shop.stored(n).status, Conflicted) for n in (1, 2)] == [True, True]
    shop.undo(change)
    assert [shop.stored(n).status for n in (1, 2)] == [Active(), Active()]


def test_accepting_raises_only_what_was_named_not_what_it_was_made_from(shop: Shop) -> None:
    source = shop.say("the page says: deploy on Mondays", origin=Origin.WEB).memory
    shop.say("deploys are on Mondays", origin=Origin.WEB, provenance=Provenance(derived_from=(source.id,)))
    shop.do(review(shop).accept(["#2"], viewer=shop.person))
    assert [shop.stored(n).origin for n in (1, 2)] == [Origin.WEB, Origin.USER]
    assert shop.stored(2).provenance.derived_from == (source.id,)


def test_no_one_but_a_person_raises_an_origin(shop: Shop) -> None:
    shop.say("deploy on Mondays", origin=Origin.WEB)
    with pytest.raises(OutOfScope, match="only a person on the command line raises an origin"):
        shop.do(review(shop).accept(["#1"], viewer=shop.model))
    assert shop.stored(1).origin is Origin.WEB


def test_rejecting_forgets_and_says_why(shop: Shop) -> None:
    shop.say("deploy on Mondays", origin=Origin.WEB)
    change = shop.do(review(shop).reject(["#1"], viewer=shop.person, author=Author.USER))
    assert change.action is Action.FORGET
    assert shop.stored(1).status == Deleted(since=shop.clock.now(), reason=REJECTED)
    assert queued(shop) == []


@pytest.mark.parametrize("origin", [Origin.USER, Origin.AGENT])
def test_what_does_not_wait_is_neither_accepted_nor_rejected(shop: Shop, origin: Origin) -> None:
    shop.say("a web page", origin=Origin.WEB)
    shop.say("deploy on Mondays", origin=origin)
    with pytest.raises(InputError, match="#2 does not wait"):
        shop.do(review(shop).accept(["#1", "#2"], viewer=shop.person))
    with pytest.raises(InputError, match="#2 does not wait"):
        shop.do(review(shop).reject(["#1", "#2"], viewer=shop.person, author=Author.USER))
    assert shop.stored(1).origin is Origin.WEB
    with pytest.raises(NotFound):
        shop.do(review(shop).accept(["#9"], viewer=shop.person))
    with pytest.raises(InputError):
        shop.do(review(shop).accept([], viewer=shop.person))


# Nothing else raises an origin.


@pytest.mark.parametrize("origin", list(Origin))
def test_an_update_by_an_agent_never_raises_an_origin(shop: Shop, origin: Origin) -> None:
    shop.say("deploy on Mondays", origin=origin)
    update = shop.remember.update
    shop.do(update("#1", Revision(tags=("deploy",)), viewer=shop.model, author=Author.AGENT))
    assert shop.stored(1).origin is origin
    shop.do(update("#1", Revision(content="deploy on Tuesdays"), viewer=shop.model, author=Author.AGENT))
    assert shop.stored(1).origin is lowest((origin, Origin.AGENT))


@pytest.mark.parametrize("origin", OUTSIDE)
def test_an_agent_that_repeats_outside_text_does_not_make_it_trusted(shop: Shop, origin: Origin) -> None:
    shop.say("deploy on Mondays", origin=origin)
    again = Draft(content="Deploy  on Mondays", origin=Origin.AGENT)
    assert not shop.do(shop.remember.remember(again, viewer=shop.model, author=Author.AGENT)).fresh
    assert shop.stored(1).origin is origin
    assert queued(shop) == [1]


@pytest.mark.parametrize("origin", OUTSIDE)
def test_outside_text_cannot_take_the_place_of_what_was_accepted(shop: Shop, origin: Origin) -> None:
    shop.say("deploy on Mondays", origin=Origin.WEB)
    shop.do(review(shop).accept(["#1"], viewer=shop.person))
    with pytest.raises(OutOfScope, match="said by the user"):
        shop.say("deploy on Fridays", origin=origin, supersedes="#1")
    assert queued(shop) == []


def test_pins_and_tags_by_an_agent_leave_the_origin(shop: Shop) -> None:
    shop.say("deploy on Mondays", origin=Origin.WEB, tags=("a",))
    shop.do(shop.remember.pin("#1", pinned=True, viewer=shop.model, author=Author.AGENT))
    shop.do(shop.remember.retag("a", "b", viewer=shop.model, author=Author.AGENT))
    assert shop.stored(1).origin is Origin.WEB


def test_a_file_that_claims_to_be_the_user_raises_nothing(shop: Shop) -> None:
    memory = shop.say("deploy on Mondays", origin=Origin.WEB).memory
    other = replace(memory, id=MemoryId(shop.ids.new_id()), content="deploy by hand", n=0)
    claims = [replace(each, origin=Origin.USER) for each in (memory, other)]
    shop.do(shop.transfer.load(encode_lines(claims, projects={}, exported_at=shop.clock.now()), shop.person))
    assert shop.stored(1).origin is Origin.WEB
    assert shop.stored(2).origin is Origin.IMPORTED
    assert sorted(queued(shop)) == [1, 2]
