"""What a person is told of digests: how far they are, what is being done, what failed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from backstory.domain.digest import DigestUpdate, Lease, Strategy
from backstory.domain.ids import SessionId
from backstory.services.digest_inspection import DigestInspection
from tests.unit.services.digests import SESSION, LongSession

pytestmark = pytest.mark.anyio
OTHER = SessionId("ses_2")


def inspection(world: LongSession) -> DigestInspection:
    return DigestInspection(world.backend.digests, clock=world.clock)


async def test_a_session_without_a_digest_has_no_card() -> None:
    world = LongSession()
    await world.say("u1", "a1", "u2")
    assert await inspection(world).card(SESSION) is None
    assert await inspection(world).cards([SESSION, OTHER]) == []
    assert not await inspection(world).exists(SESSION)


async def test_a_card_counts_the_pieces_and_those_that_are_shown() -> None:
    world = LongSession()
    request = await world.say("u1", "a1", "u2", "a2", "u3")
    await world.digesting.work(SESSION, listed=request)
    [card] = await inspection(world).cards([OTHER, SESSION])
    assert (card.pieces, card.shown, card.problem, card.strategy) == (2, 0, None, Strategy.TREE)
    await world.requests.outlook(request, session=SESSION, project=None)
    [card] = await inspection(world).cards([SESSION])
    assert (card.pieces, card.shown) == (2, 2)


async def test_pieces_of_a_former_strategy_count_for_nothing() -> None:
    world = LongSession()
    await world.digesting.work(SESSION, listed=await world.say("u1", "a1", "u2"))
    digest = await world.backend.digests.digest(SESSION)
    assert digest is not None
    await world.backend.digests.apply(DigestUpdate(state=replace(digest.state, strategy=Strategy.OBSERVATIONS)))
    card = await inspection(world).card(SESSION)
    assert card is not None
    assert (card.strategy, card.pieces) == (Strategy.OBSERVATIONS, 0)


async def test_work_that_failed_is_told_with_when_it_is_tried_again() -> None:
    world = LongSession()
    world.strategy.failing = True
    await world.digesting.work(SESSION, listed=await world.say("u1", "a1", "u2"))
    [card] = await inspection(world).waiting()
    now = world.clock.now()
    assert card.problem is not None
    assert "the model is down" in card.problem
    assert card.resting_until(now) == now + timedelta(seconds=2)
    assert card.resting_until(now + timedelta(seconds=3)) is None
    assert card.worked_on_until(now) is None


async def test_work_that_another_process_has_taken_is_told_too() -> None:
    world = LongSession()
    await world.digesting.work(SESSION, listed=await world.say("u1", "a1", "u2"))
    digest = await world.backend.digests.digest(SESSION)
    assert digest is not None
    until = world.clock.now() + timedelta(minutes=3)
    leased = replace(digest.state, due=True, lease=Lease(token="theirs", expires_at=until))
    await world.backend.digests.apply(DigestUpdate(state=leased))
    [card] = await inspection(world).waiting()
    assert card.worked_on_until(world.clock.now()) == until
    assert card.worked_on_until(until) is None


async def test_what_is_done_does_not_wait() -> None:
    world = LongSession()
    await world.digesting.work(SESSION, listed=await world.say("u1", "a1", "u2"))
    assert await inspection(world).waiting() == []


async def test_messages_in_no_piece_are_counted_without_those_taken_back() -> None:
    world = LongSession()
    await world.digesting.work(SESSION, listed=await world.say("u1", "a1", "u2"))
    names = await world.say("u1", "a1", "u2", "a2", "u3")
    await world.backend.conversations.mark_removed(names[3].id, at=world.clock.now())
    assert await inspection(world).undigested(world.backend.conversations, SESSION) == (4, 2)
    assert await inspection(world).undigested(world.backend.conversations, OTHER) == (0, 0)


async def test_a_forgotten_digest_is_made_anew() -> None:
    world = LongSession()
    request = await world.say("u1", "a1", "u2")
    await world.digesting.work(SESSION, listed=request)
    assert await inspection(world).forget(SESSION)
    assert not await inspection(world).forget(SESSION)
    assert await world.digesting.work(SESSION, listed=request) == 1
