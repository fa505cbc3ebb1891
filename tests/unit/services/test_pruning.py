"""Faded facts go as one change that can be undone, and what a person had a hand in stays."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Deleted, Sensitivity, Source, Visibility
from backstory.domain.provenance import Origin
from backstory.domain.pruning import PruningPolicy
from backstory.domain.scope import Viewer
from backstory.services.feedback import Feedback, Verdict
from backstory.services.pruning import Pruning
from backstory.services.remember import Draft
from backstory.testing.fakes import sample_change

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

DAY = timedelta(days=1)


def pruning(shop: Shop, at_most: int = 400) -> Pruning:
    return Pruning(shop.backend.memories, clock=shop.clock, ids=shop.ids, policy=PruningPolicy(at_most=at_most))


def dreamed(shop: Shop, content: str, *, viewer: Viewer | None = None, **fields: Any) -> None:
    """Store a derived fact, as a dream does. Any: the fields of Draft."""
    draft = replace(Draft(content=content, origin=Origin.AGENT, source=Source.DREAMED), **fields)
    shop.do(shop.remember.remember(draft, viewer=viewer or shop.model, author=Author.SYSTEM))


def prune(shop: Shop, at_most: int = 400) -> Change | None:
    return shop.do(pruning(shop, at_most).prune(shop.model, author=Author.SYSTEM))


def test_faded_facts_go_with_their_reason_and_come_back_by_undo(shop: Shop) -> None:
    dreamed(shop, "the legacy build server is called otter")
    shop.say("releases are cut on Tuesdays")
    shop.clock.moment += 90 * DAY
    change = prune(shop)
    assert change is not None
    assert (change.action, change.author, change.reason) == (Action.PRUNE, Author.SYSTEM, "1 derived fact faded")
    gone = shop.stored(1).status
    assert isinstance(gone, Deleted)
    assert gone.reason == "pruned: worth 0.14, below 0.15"
    assert shop.found("legacy build server") == []
    shop.undo(change)
    assert shop.found("legacy build server") == ["the legacy build server is called otter"]


def test_what_stays_on_this_machine_is_not_listed_for_a_model_nor_pruned_by_one(shop: Shop) -> None:
    dreamed(shop, "the legacy build server is called otter")
    hidden = replace(shop.stored(1), sensitivity=Sensitivity.LOCAL_ONLY)
    edit = Edit(before=shop.stored(1), after=hidden)
    shop.do(shop.backend.memories.commit(sample_change(90, edit, author=Author.AGENT)))
    shop.clock.moment += 90 * DAY
    assert shop.do(pruning(shop).plan(shop.model)) == []
    assert prune(shop) is None
    assert [gone.memory.n for gone in shop.do(pruning(shop).plan(shop.person))] == [1]


def test_nothing_faded_is_no_change(shop: Shop) -> None:
    dreamed(shop, "the build server is called otter")
    assert prune(shop) is None
    assert len(shop.do(shop.inspection.history(shop.person))) == 1


def test_the_plan_is_what_is_done(shop: Shop) -> None:
    for number in range(5):
        dreamed(shop, f"fact number {number} of the orchard")
        shop.clock.moment += DAY
    plan = shop.do(pruning(shop, 2).plan(shop.model))
    assert [removal.memory.n for removal in plan] == [1, 2, 3]
    change = prune(shop, 2)
    assert change is not None
    assert [edit.before for edit in change.edits] == [removal.memory for removal in plan]


def test_what_a_person_brought_back_is_not_pruned_again(shop: Shop) -> None:
    dreamed(shop, "the build server is called otter")
    shop.clock.moment += 90 * DAY
    shop.undo(prune(shop))
    assert prune(shop) is None


def test_what_a_person_reworded_or_said_again_stays_and_does_not_count_for_the_cap(shop: Shop) -> None:
    dreamed(shop, "the build server is called otter")
    dreamed(shop, "the test server is called stoat")
    dreamed(shop, "the mail server is called heron")
    shop.do(
        shop.remember.update(
            "#1", Revision(content="the build server is ferret"), viewer=shop.person, author=Author.USER
        )
    )
    shop.say("the test server is called stoat")
    assert shop.stored(2).source is Source.EXPLICIT
    shop.clock.moment += DAY
    dreamed(shop, "the wiki is called adder")
    assert [removal.memory.n for removal in shop.do(pruning(shop, 1).plan(shop.model))] == [3]


def test_a_person_who_finds_a_fact_irrelevant_does_not_keep_it(shop: Shop) -> None:
    dreamed(shop, "the build server is called otter")
    shop.clock.moment += 85 * DAY
    assert prune(shop) is None
    feedback = Feedback(shop.backend.memories, shop.reference, clock=shop.clock, ids=shop.ids)
    shop.do(feedback.rate(["#1"], Verdict.IRRELEVANT, viewer=shop.person, author=Author.USER))
    assert prune(shop) is not None


def test_another_projects_facts_are_not_touched_and_global_ones_are(shop: Shop) -> None:
    dreamed(shop, "theirs", viewer=shop.elsewhere)
    dreamed(shop, "everywhere", viewer=shop.elsewhere, visibility=Visibility.GLOBAL)
    dreamed(shop, "ours")
    shop.clock.moment += 90 * DAY
    change = prune(shop)
    assert change is not None
    assert [edit.after.n for edit in change.edits] == [2, 3]


def test_what_a_pruned_fact_had_replaced_does_not_come_back(shop: Shop) -> None:
    dreamed(shop, "the port is 4000")
    dreamed(shop, "the port is 4100", supersedes="#1")
    shop.clock.moment += 90 * DAY
    change = prune(shop)
    assert change is not None
    assert {edit.after.n for edit in change.edits} == {1, 2}
    assert shop.found("port") == []


def test_many_that_were_changed_at_once_are_looked_up_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        dreamed(shop, f"fact number {number} of the orchard", tags=("old",))
    shop.do(shop.remember.retag("old", "new", viewer=shop.person, author=Author.USER))
    dreamed(shop, "only added")
    shop.clock.moment += 90 * DAY
    history = shop.backend.memories.history
    asked: list[Any] = []

    async def counted(**conditions: Any) -> list[Change]:
        asked.append(conditions)
        return await history(**conditions)

    monkeypatch.setattr(shop.backend.memories, "history", counted)
    assert len(shop.do(pruning(shop).plan(shop.model))) == 31
    assert len(asked) == 1
