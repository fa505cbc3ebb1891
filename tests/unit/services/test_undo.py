"""Taking a change back never makes a text more trusted, unless a person does it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId
from backstory.domain.provenance import Origin
from backstory.errors import OutOfScope

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop


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
