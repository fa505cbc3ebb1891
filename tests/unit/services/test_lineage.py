"""What becomes of a memory when those that it was made from go."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backstory.domain.history import Edit
from backstory.domain.lifecycle import supersede
from backstory.domain.memory import Source, Visibility, status_name
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.settlement import KeepThis
from backstory.errors import Conflict
from backstory.services.repercussions import Repercussions
from backstory.testing.fakes import START, sample_change

if TYPE_CHECKING:
    from backstory.domain.memory import Memory
    from tests.unit.services.conftest import Shop

from tests.unit.services.disputes import HOUR, disagreeing, resolve, states, status, update


def derive(shop: Shop, text: str, *sources: int) -> Memory:
    derived_from = tuple(shop.stored(n).id for n in sources)
    provenance = Provenance(derived_from=derived_from)
    return shop.say(text, origin=Origin.AGENT, source=Source.DREAMED, provenance=provenance).memory


def test_what_was_made_from_a_memory_that_goes_is_put_in_question_however_far(shop: Shop) -> None:
    shop.say("We deploy to heron.")
    shop.say("Heron has four nodes.")
    derive(shop, "Deploys reach four nodes.", 1, 2)
    derive(shop, "A deploy takes a while.", 3)
    derive(shop, "Nodes are many.", 2)
    change = shop.forget(1)
    assert status(shop, 3).evidence == "made from #1, which was forgotten"
    assert status(shop, 4).evidence == "made from #3, which was made from #1, which was forgotten"
    assert states(shop, 5) == ["active"]
    assert {edit.after.n for edit in change.edits} == {1, 3, 4}
    shop.undo(change)
    assert states(shop, 1, 3, 4) == ["active", "active", "active"]


def test_a_replaced_or_reworded_source_is_as_good_as_gone(shop: Shop) -> None:
    shop.say("We deploy to heron.")
    derive(shop, "Heron is where releases go.", 1)
    shop.say("We deploy to osprey.", supersedes="#1")
    assert status(shop, 2).evidence == "made from #1, which was replaced"
    resolve(shop, 2, KeepThis())
    derive(shop, "Osprey is where releases go.", 3)
    update(shop, 3, content="We deploy to Osprey")
    assert states(shop, 4) == ["active"]
    update(shop, 3, content="We deploy to kestrel.")
    assert status(shop, 4).evidence == "made from #3, which was changed"


def test_what_takes_the_place_of_its_own_sources_is_not_questioned(shop: Shop) -> None:
    shop.say("We deploy to heron.")
    provenance = Provenance(derived_from=(shop.stored(1).id,))
    shop.say("We deploy to heron on Fridays.", supersedes="#1", provenance=provenance)
    assert states(shop, 1, 2) == ["superseded", "active"]


def test_taking_back_a_memory_questions_what_was_made_from_it(shop: Shop) -> None:
    added = shop.say("We deploy to heron.")
    derive(shop, "Heron is where releases go.", 1)
    shop.undo(added.change)
    assert status(shop, 2).evidence == "made from #1, which was taken back"
    shop.clock.advance(HOUR)
    with pytest.raises(Conflict):
        shop.undo(added.change)


def test_another_projects_memories_are_not_changed_from_here(shop: Shop) -> None:
    shop.say("We deploy to heron.", visibility=Visibility.GLOBAL)
    provenance = Provenance(derived_from=(shop.stored(1).id,))
    shop.say("Heron it is.", viewer=shop.elsewhere, provenance=provenance)
    shop.forget(1)
    assert states(shop, 2) == ["active"]


def test_a_circle_of_sources_ends(shop: Shop) -> None:
    shop.say("We deploy to heron.")
    second = derive(shop, "Heron is where releases go.", 1)
    first = shop.stored(1)
    looped = replace(first, provenance=Provenance(derived_from=(second.id, first.id)))
    shop.do(shop.backend.memories.commit(sample_change(77, Edit(before=first, after=looped))))
    shop.forget(1)
    assert states(shop, 1, 2) == ["deleted", "conflicted"]


def test_a_duplicate_that_is_merged_hands_its_conflict_on_and_questions_nothing(shop: Shop) -> None:
    old, _ = disagreeing(shop)
    derive(shop, "Dashboards read 8080.", 1)
    kept = shop.say("The metrics port is  8080", visibility=Visibility.GLOBAL).memory
    edits = [Edit(before=kept, after=replace(kept, tags=("merged",)))]
    first = shop.stored(1)
    edits.append(Edit(before=first, after=supersede(first, by=kept.id, now=START)))
    followed = shop.do(Repercussions(shop.backend.memories).followed(edits, viewer=shop.person, now=START))
    assert [(edit.after.n, status_name(edit.after.status)) for edit in followed] == [
        (4, "active"),
        (1, "superseded"),
        (2, "conflicted"),
    ]
    assert followed[2].after.status == replace(status(shop, 2), against=kept.id)
    assert old.id != kept.id
