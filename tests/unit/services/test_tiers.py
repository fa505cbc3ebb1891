"""When a memory is offered: always, when it is relevant, or until its time runs out."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from backstory.domain.history import Author
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.memory import Source, Tier
from backstory.domain.pruning import PruningPolicy
from backstory.domain.selection import Selection
from backstory.services.pruning import Pruning

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

DAY = timedelta(days=1)
SERVERS = ("heron", "otter", "stoat", "adder", "finch")


def snapshot(shop: Shop, session: str = "ses-1") -> str:
    return shop.do(shop.blocks.snapshot(shop.model, session=SessionId(session))) or ""


def beside(shop: Shop, prompt: str) -> str:
    return shop.do(shop.blocks.for_prompt(prompt, shop.model)).text or ""


def test_at_most_three_core_memories_stand_beside_an_unrelated_prompt(shop: Shop) -> None:
    for server in SERVERS:
        shop.say(f"the server {server} holds the {server} tables", tier=Tier.CORE)
        shop.clock.moment += DAY
    assert beside(shop, "rename the login button") == ""
    offered = snapshot(shop)
    assert [server for server in SERVERS if server in offered] == ["stoat", "adder", "finch"]
    assert "heron" in beside(shop, "which server holds the heron tables?")


def test_an_archival_memory_is_offered_only_to_a_prompt_it_answers(shop: Shop) -> None:
    shop.say("the invoice service runs on port 8443")
    assert snapshot(shop) == ""
    assert beside(shop, "rename the login button") == ""
    assert "8443" in beside(shop, "on which port does the invoice service run?")


def test_a_temporary_memory_is_gone_from_everywhere_the_moment_it_expires(shop: Shop) -> None:
    memory = shop.say("staging is frozen until the load test ends", tier=Tier.TEMPORARY, pinned=True).memory
    assert memory.expires_at == shop.clock.now() + timedelta(hours=24)
    shop.clock.moment = memory.expires_at - timedelta(microseconds=1)
    assert shop.found("is staging frozen") == [memory.content]
    assert "staging" in snapshot(shop)
    shop.clock.moment = memory.expires_at
    for viewer in (shop.model, shop.person):
        assert shop.found("is staging frozen", viewer=viewer, with_superseded=True) == []
        listed = Selection(viewer=viewer, now=shop.clock.now())
        assert shop.do(shop.backend.memories.select(listed, limit=9)) == []
        assert shop.do(shop.inspection.statistics(viewer)).current == 0
    assert beside(shop, "is staging frozen until the load test ends") == ""
    assert snapshot(shop, "ses-2") == ""


def test_saying_it_again_gives_a_temporary_memory_its_time_again(shop: Shop) -> None:
    text = "staging is frozen"
    shop.say(text, expires_in=timedelta(hours=24))
    shop.clock.moment += timedelta(hours=20)
    again = shop.say("Staging is  frozen", expires_in=timedelta(hours=24)).memory
    assert (again.n, again.expires_at) == (1, shop.clock.now() + timedelta(hours=24))
    shop.clock.moment += timedelta(hours=23)
    assert shop.found("staging frozen") == [text]


def test_a_pinned_fact_survives_age_and_cap(shop: Shop) -> None:
    shop.say("the oldest guess", source=Source.DREAMED, pinned=True)
    for number in range(4):
        shop.say(f"guess number {number}", source=Source.DREAMED)
    shop.clock.moment += 1000 * DAY
    pruning = Pruning(shop.backend.memories, clock=shop.clock, ids=shop.ids, policy=PruningPolicy(at_most=1))
    change = shop.do(pruning.prune(shop.person, author=Author.SYSTEM))
    assert change is not None
    assert [edit.after.n for edit in change.edits] == [2, 3, 4, 5]
    assert "the oldest guess" in snapshot(shop)


def test_being_shown_a_hundred_times_moves_no_date(shop: Shop) -> None:
    before = shop.say("the invoice service runs on port 8443").memory
    for number in range(100):
        shop.clock.moment += timedelta(hours=1)
        context = shop.do(shop.blocks.for_prompt("invoice service port", shop.model))
        message, session = MessageId(f"m{number}"), SessionId("ses-1")
        assert shop.do(shop.blocks.freeze(context, notes=(), message=message, session=session))
    after = shop.stored(1)
    assert after.counters.surfaced == 100
    assert (after.times.learned, after.times.updated, after.times.confirmed) == (before.times.learned,) * 3
    assert (after.weight, after.counters.helpful, after.counters.irrelevant) == (before.weight, 0, 0)
