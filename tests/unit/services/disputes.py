"""Memories in conflict, and what is decided about them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from backstory.domain.history import Author
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Conflicted, status_name
from backstory.domain.settlement import Settlement
from backstory.services.conflicts import Conflicts, Settled

if TYPE_CHECKING:
    from backstory.domain.history import Change
    from backstory.domain.memory import Memory
    from tests.unit.services.conftest import Shop


HOUR = timedelta(hours=1)
OLD, NEW = "The metrics port is 8080.", "The metrics port is 9090."


def conflicts(shop: Shop) -> Conflicts:
    return Conflicts(shop.backend, shop.reference, clock=shop.clock, ids=shop.ids, limits=shop.limits)


def resolve(shop: Shop, n: int, how: Settlement, **fields: Any) -> Settled:
    given: dict[str, Any] = {"viewer": shop.person, "author": Author.USER} | fields
    return shop.do(conflicts(shop).resolve(f"#{n}", how, **given))


def flag(shop: Shop, n: int, other: int | None, **fields: Any) -> Change | None:
    given: dict[str, Any] = {"viewer": shop.person, "author": Author.SYSTEM, "evidence": "“it is 9090 now”"} | fields
    return shop.do(conflicts(shop).flag(f"#{n}", None if other is None else f"#{other}", **given))


def update(shop: Shop, n: int, **fields: Any) -> None:
    shop.do(shop.remember.update(f"#{n}", Revision(**fields), viewer=shop.person, author=Author.USER))


def states(shop: Shop, *numbers: int) -> list[str]:
    return [status_name(shop.stored(n).status) for n in numbers]


def status(shop: Shop, n: int) -> Conflicted:
    found = shop.stored(n).status
    assert isinstance(found, Conflicted)
    return found


def disagreeing(shop: Shop) -> tuple[Memory, Memory]:
    return shop.say(OLD).memory, shop.say(NEW).memory
