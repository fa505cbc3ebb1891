"""The work behind a digest: one process at a time, whole or not at all, and again later when it failed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import anyio
import pytest

from backstory.domain.digest import DigestUpdate, Lease, SessionDigest
from backstory.domain.ids import MessageId
from backstory.domain.interchange import UNVOUCHED
from backstory.services.digesting import GIVE_UP_AFTER, LEASE, MAX_STEPS, PAUSES
from backstory.testing.fakes import START
from tests.unit.services.digests import SESSION, LongSession, Pairs, listed, message, texts

pytestmark = pytest.mark.anyio


async def digest_of(world: LongSession) -> SessionDigest:
    found = await world.backend.digests.digest(SESSION)
    assert found is not None
    return found


async def test_what_is_due_is_done_and_the_lease_given_back() -> None:
    world = LongSession()
    request = await world.say("u1", "a1", "u2", "a2", "u3")
    assert await world.digesting.work(SESSION, listed=request) == 2
    digest = await digest_of(world)
    assert texts(digest.pieces) == ["said u1 and said a1", "said u2 and said a2"]
    assert (digest.state.lease, digest.state.due) == (None, False)


async def test_nothing_is_written_when_nothing_is_due() -> None:
    world = LongSession()
    assert await world.digesting.work(SESSION, listed=await world.say("u1")) == 0
    assert await world.backend.digests.digest(SESSION) is None


async def test_the_archive_tells_what_is_due_when_no_request_did() -> None:
    world = LongSession()
    await world.say("u1", "a1", "u2")
    assert await world.digesting.work(SESSION) == 1


async def test_two_processes_do_not_do_the_same_work() -> None:
    world = LongSession()
    other = LongSession(world.backend, series=2)
    request = await world.say("u1", "a1", "u2")

    async def meanwhile() -> None:
        assert await other.digesting.work(SESSION, listed=request) == 0

    world.strategy.during.append(meanwhile)
    await world.digesting.work(SESSION, listed=request)
    assert (world.strategy.asked, other.strategy.asked) == (1, 0)


async def test_the_work_of_a_process_that_died_is_taken_over_once_its_lease_has_expired() -> None:
    world = LongSession()
    request = await world.say("u1", "a1", "u2")
    state = (await world.views.digest(SESSION)).state
    dead = Lease(token="another process", expires_at=START + LEASE)
    await world.backend.digests.apply(DigestUpdate(state=replace(state, lease=dead, due=True)))

    assert await world.digesting.work(SESSION, listed=request) == 0
    world.clock.advance(LEASE)
    assert await world.digesting.left_undone() == [SESSION]
    assert await world.digesting.work(SESSION, listed=request) == 1


async def test_who_lost_the_lease_writes_nothing() -> None:
    world = LongSession()
    request = await world.say("u1", "a1", "u2")

    async def takeover() -> None:
        digest = await digest_of(world)
        lease = Lease(token="another process", expires_at=START + 2 * LEASE)
        await world.backend.digests.apply(DigestUpdate(state=replace(digest.state, lease=lease)))

    world.strategy.during.append(takeover)
    await world.digesting.work(SESSION, listed=request)
    digest = await digest_of(world)
    assert not digest.pieces
    assert digest.state.lease is not None
    assert digest.state.lease.token == "another process"


async def test_a_change_of_what_is_shown_does_not_cost_the_work_in_flight() -> None:
    world = LongSession()
    request = await world.say("u1", "a1", "u2")

    async def shown() -> None:
        digest = await digest_of(world)
        await world.backend.digests.apply(DigestUpdate(state=replace(digest.state, shown_for=MessageId("u2"))))

    world.strategy.during.append(shown)
    assert await world.digesting.work(SESSION, listed=request) == 1
    assert (await digest_of(world)).state.shown_for == "u2"


async def test_a_failing_model_leaves_everything_and_is_left_alone_for_longer_each_time() -> None:
    world = LongSession(strategy=Pairs(failing=True))
    request = await world.say("u1", "a1", "u2")
    for attempt, pause in enumerate([*PAUSES, PAUSES[-1]], start=1):
        await world.digesting.work(SESSION, listed=request)
        assert world.strategy.asked == attempt
        digest = await digest_of(world)
        assert not digest.pieces
        assert digest.state.problem == "the model is down"
        world.clock.advance(pause - timedelta(milliseconds=1))
        await world.digesting.work(SESSION, listed=request)
        assert world.strategy.asked == attempt
        world.clock.advance(timedelta(milliseconds=1))


async def test_a_model_that_is_back_is_asked_again_and_the_problem_forgotten() -> None:
    world = LongSession(strategy=Pairs(failing=True))
    request = await world.say("u1", "a1", "u2")
    await world.digesting.work(SESSION, listed=request)
    world.strategy.failing = False
    world.clock.advance(PAUSES[0])
    assert await world.digesting.work(SESSION, listed=request) == 1
    state = (await digest_of(world)).state
    assert (state.problem, state.attempts, state.due) == (None, 0, False)


async def test_what_is_undone_while_it_is_digested_is_not_kept() -> None:
    world = LongSession()
    request = await world.say("u1", "a1", "u2")

    async def undo() -> None:
        await world.backend.conversations.mark_removed(MessageId("a1"), at=START)

    world.strategy.during.append(undo)
    await world.digesting.work(SESSION, listed=request)
    assert not (await digest_of(world)).pieces
    assert world.strategy.asked == 1


async def test_what_is_removed_from_the_archive_while_it_is_digested_is_not_kept() -> None:
    world = LongSession()
    request = await world.say("u1", "a1", "u2")

    async def expire() -> None:
        await world.backend.conversations.prune(START + timedelta(days=1), limit=100)

    world.strategy.during.append(expire)
    await world.digesting.work(SESSION, listed=request)
    digest = await world.backend.digests.digest(SESSION)
    assert digest is None or not digest.pieces


async def test_undoing_takes_out_what_was_made_of_it() -> None:
    world = LongSession()
    await world.digesting.work(SESSION, listed=await world.say("u1", "a1", "u2", "a2", "u3"))
    assert await world.digesting.undone(SESSION, [MessageId("a2")])
    assert texts((await digest_of(world)).pieces) == ["said u1 and said a1"]
    assert not await world.digesting.undone(SESSION, [MessageId("a2")])


async def test_a_compaction_digests_what_is_left_whatever_its_size() -> None:
    world = LongSession()
    request = await world.say("u1", "u2")
    await world.digesting.force(SESSION)
    assert await world.digesting.work(SESSION, listed=request) == 1
    assert not (await digest_of(world)).state.forced
    assert await world.digesting.work(SESSION, listed=request) == 0


async def test_a_long_history_is_digested_in_rounds() -> None:
    world = LongSession()
    names = [name for n in range(2 * MAX_STEPS) for name in (f"u{n}", f"a{n}")]
    request = await world.say(*names, "u999")
    assert await world.digesting.work(SESSION, listed=request) == MAX_STEPS
    assert (await digest_of(world)).state.due
    while await world.digesting.work(SESSION, listed=request):
        pass
    assert len((await digest_of(world)).pieces) == 2 * MAX_STEPS


async def test_work_that_is_stopped_can_be_taken_up_at_once() -> None:
    world = LongSession()
    request = await world.say("u1", "a1", "u2")
    with anyio.CancelScope() as scope:

        async def stop() -> None:
            scope.cancel()
            await anyio.sleep(1)

        world.strategy.during.append(stop)
        await world.digesting.work(SESSION, listed=request)
    digest = await digest_of(world)
    assert not digest.pieces
    assert (digest.state.lease, digest.state.due) == (None, True)


async def test_a_message_that_was_undone_unheard_is_not_digested() -> None:
    world = LongSession()
    request = await world.say("u1", "a1", "u2", "a2", "u3")
    await world.backend.conversations.mark_removed(MessageId("a1"), at=START)
    await world.digesting.work(SESSION, listed=request)
    assert texts((await digest_of(world)).pieces) == ["said u1 and said u2"]


async def test_a_session_that_is_still_being_told_is_digested_up_to_its_newest_message() -> None:
    world = LongSession()
    told, whole = listed("u1", "a1", "u2"), listed("u1", "a1", "u2", "a2", "u3")
    await world.say("u1", "a1")
    await world.backend.conversations.put_messages([replace(message("u2", 2), parts=())])
    assert await world.digesting.work(SESSION, listed=[*told, *listed("a2", "u3")]) == 1
    view = await world.views.view(await digest_of(world), whole, project=None)
    assert [item.id for item in view.messages] == ["u1", "a1"], "a message comes before its parts"
    await world.backend.conversations.put_messages([message("u2", 2), replace(message("a2", 3), parts=())])
    view = await world.views.view(await digest_of(world), whole, project=None)
    assert [item.id for item in view.messages] == ["u1", "a1", "u2"]
    await world.backend.conversations.put_messages([message("a2", 3)])
    assert await world.digesting.work(SESSION, listed=whole) == 1
    assert texts((await digest_of(world)).pieces)[-1] == "said u2 and said a2"


async def test_a_session_that_fails_again_and_again_is_not_tried_at_every_start() -> None:
    world = LongSession(strategy=Pairs(failing=True))
    request = await world.say("u1", "a1", "u2")
    for _ in range(GIVE_UP_AFTER):
        assert await world.digesting.left_undone() == ([SESSION] if world.strategy.asked else [])
        await world.digesting.work(SESSION, listed=request)
        world.clock.advance(PAUSES[-1])
    assert world.strategy.asked == GIVE_UP_AFTER
    assert await world.digesting.left_undone() == []


async def test_a_digest_that_nobody_vouched_for_stays_one_whatever_is_said_after_it() -> None:
    world = LongSession()
    await world.digesting.work(SESSION, listed=await world.say("u1", "a1", "u2"))
    digest = await digest_of(world)
    await world.backend.digests.apply(DigestUpdate(state=replace(digest.state, problem=UNVOUCHED, due=True)))
    request = await world.say("u1", "a1", "u2", "a2", "u3")
    for failing in (False, True):
        world.strategy.failing = failing
        assert await world.digesting.work(SESSION, listed=request) == 0
        assert (await digest_of(world)).state.problem == UNVOUCHED
    assert await world.digesting.left_undone() == []
