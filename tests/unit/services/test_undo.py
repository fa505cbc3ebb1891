"""Taking changes back: step by step, never over a later one, and never making a text more trusted but for a person."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId
from backstory.domain.memory import Deleted
from backstory.domain.provenance import Origin
from backstory.errors import Conflict, NotFound, OutOfScope
from backstory.services.query import Query

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

HOUR = timedelta(hours=1)


def test_no_undo_makes_a_duplicate(shop: Shop) -> None:
    shop.say("fact one")
    forgotten = shop.forget(1)
    shop.say("fact one")
    with pytest.raises(Conflict, match="#2 says so already"):
        shop.undo(forgotten)
    shop.forget(2)
    shop.undo(forgotten)
    assert [shop.state(n) for n in (1, 2)] == ["active", "deleted"]


def test_undoing_step_by_step_walks_all_the_way_back(shop: Shop) -> None:
    shop.say("a")
    shop.update(1, content="b")
    shop.update(1, content="c")
    assert shop.undo().edits[0].after.content == "b"
    assert shop.undo().edits[0].after.content == "a"
    assert isinstance(shop.undo().edits[0].after.status, Deleted)
    with pytest.raises(NotFound, match="nothing to undo"):
        shop.undo()


def test_what_was_undone_may_be_done_again_and_undone_again(shop: Shop) -> None:
    shop.say("a")
    shop.update(1, content="b")
    undo = shop.undo()
    shop.undo(undo)
    assert shop.stored(1).content == "b"
    assert shop.undo().edits[0].after.content == "a"
    assert shop.stored(1).content == "a"


def test_a_change_with_a_later_one_on_it_is_not_undone(shop: Shop) -> None:
    shop.say("a")
    middle = shop.do(shop.remember.pin("#1", pinned=True, viewer=shop.person, author=Author.USER))
    shop.update(1, content="b")
    with pytest.raises(Conflict, match="#1"):
        shop.undo(middle)
    assert shop.stored(1).content == "b"


def test_undo_takes_the_newest_change_of_this_project(shop: Shop) -> None:
    shop.say("ours")
    theirs = shop.say("theirs", viewer=shop.elsewhere)
    shop.undo()
    assert (shop.state(1), shop.state(2)) == ("deleted", "active")
    with pytest.raises(OutOfScope):
        shop.undo(theirs.change)
    with pytest.raises(NotFound):
        shop.do(shop.remember.undo(theirs.memory.id, viewer=shop.person, author=Author.USER))  # type: ignore[arg-type]


def test_undo_looks_past_many_changes_of_other_projects(shop: Shop) -> None:
    shop.say("ours")
    for number in range(60):
        shop.clock.advance(HOUR)
        shop.say(f"theirs {number}", viewer=shop.elsewhere)
    shop.undo()
    assert shop.state(1) == "deleted"


def test_counting_does_not_stand_in_the_way_of_undo(shop: Shop) -> None:
    shop.say("a")
    shop.do(shop.recall.recall_and_count(Query(text="", viewer=shop.person)))
    shop.undo()
    assert (shop.state(1), shop.stored(1).counters.recalled) == ("deleted", 1)


def test_a_forgotten_memory_names_the_change_that_brings_it_back(shop: Shop) -> None:
    shop.say("a")
    shop.say("b")
    undone = shop.do(shop.remember.undo(None, viewer=shop.person, author=Author.USER))
    with pytest.raises(NotFound, match=f"backstory undo {undone.id}"):
        shop.do(shop.reference.find("#2", shop.person))
    shop.do(shop.remember.undo(undone.id, viewer=shop.person, author=Author.USER))
    assert shop.do(shop.reference.find("#2", shop.person)).content == "b"


def with_origin(shop: Shop, origin: Origin, *, content: str | None = None) -> Change:
    """Change the origin of memory #1, and its text if one is given."""
    before = shop.stored(1)
    after = replace(before, origin=origin, content=content or before.content)
    change = Change(
        id=ChangeId(shop.ids.new_id()),
        at=shop.clock.now(),
        author=Author.USER,
        action=Action.UPDATE,
        edits=(Edit(before=before, after=after),),
    )
    return shop.do(shop.backend.memories.commit(change))


@pytest.mark.parametrize("named", [True, False])
def test_only_a_person_makes_a_text_more_trusted_again(shop: Shop, named: bool) -> None:
    shop.say("The deploy key is in the vault.")
    lowered = with_origin(shop, Origin.WEB)
    with pytest.raises(OutOfScope, match="only a person raises an origin"):
        shop.undo(lowered if named else None, viewer=shop.model)
    assert shop.stored(1).origin is Origin.WEB
    shop.undo(lowered, viewer=shop.person)
    assert shop.stored(1).origin is Origin.USER


def test_who_is_no_person_may_make_a_text_less_trusted_again(shop: Shop) -> None:
    shop.say("The deploy key is in the vault.", origin=Origin.WEB)
    raised = with_origin(shop, Origin.USER)
    shop.undo(raised, viewer=shop.model)
    assert shop.stored(1).origin is Origin.WEB


def test_another_text_comes_back_with_the_origin_it_had(shop: Shop) -> None:
    shop.say("The deploy key is in the vault.")
    reworded = with_origin(shop, Origin.AGENT, content="The deploy key is in the safe.")
    shop.undo(reworded, viewer=shop.model)
    assert (shop.stored(1).content, shop.stored(1).origin) == ("The deploy key is in the vault.", Origin.USER)
