"""What a request shows of its session's history: the same within a turn, and never the current turn's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backstory.domain.digest import DigestUpdate
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.interchange import UNVOUCHED
from backstory.services.session_digest import MAX_RAW, Replaced
from tests.unit.services.digests import SESSION, LongSession, listed

pytestmark = pytest.mark.anyio


async def outlook(world: LongSession, *names: str, session: SessionId = SESSION) -> tuple[Replaced | None, bool]:
    found = await world.requests.outlook(listed(*names), session=session, project=None)
    return found.replaced, found.due


async def test_a_short_session_is_left_alone() -> None:
    world = LongSession()
    await world.say("u1")
    assert await outlook(world, "u1") == (None, False)


async def test_work_is_found_at_the_first_request_of_a_turn_only() -> None:
    world = LongSession()
    await world.say("u1", "a1", "u2")
    assert await outlook(world, "u1", "a1", "u2") == (None, True)
    assert await outlook(world, "u1", "a1", "u2", "a2") == (None, False)


async def test_what_was_digested_during_a_turn_is_shown_from_the_next_one() -> None:
    world = LongSession()
    request = await world.say("u1", "a1", "u2")
    await outlook(world, "u1", "a1", "u2")
    await world.digesting.work(SESSION, listed=request)
    assert await outlook(world, "u1", "a1", "u2", "a2") == (None, False)

    await world.say("u3")
    replaced, _ = await outlook(world, "u1", "a1", "u2", "a2", "u3")
    assert replaced is not None
    assert replaced.count == 2
    assert "said u1 and said a1" in replaced.text


async def test_a_turn_shows_the_same_text_at_each_step_and_after_a_restart() -> None:
    world = LongSession()
    await world.digesting.work(SESSION, listed=await world.say("u1", "a1", "u2"))
    first = await outlook(world, "u1", "a1", "u2")
    await world.say("a2", "u3")
    await world.digesting.work(SESSION, listed=listed("u1", "a1", "u2", "a2", "u3"))
    again = LongSession(world.backend, series=2)
    assert await outlook(world, "u1", "a1", "u2", "a2x") == first
    assert (await outlook(again, "u1", "a1", "u2", "a2x"))[0] == first[0]


async def test_what_was_digested_during_a_turn_is_not_shown_in_it_by_another_process_either() -> None:
    world = LongSession()
    request = await world.say("u1", "a1", "u2")
    assert await outlook(world, "u1", "a1", "u2") == (None, True)
    await world.digesting.work(SESSION, listed=request)
    again = LongSession(world.backend, series=2)
    assert (await outlook(again, "u1", "a1", "u2", "a2"))[0] is None


async def test_what_was_undone_in_the_current_turn_is_shown_no_longer() -> None:
    world = LongSession()
    await world.digesting.work(SESSION, listed=await world.say("u1", "a1", "u2", "a2", "u3"))
    await outlook(world, "u1", "a1", "u2", "a2", "u3")
    await world.digesting.undone(SESSION, [MessageId("a2")])
    replaced, _ = await outlook(world, "u1", "a1", "u2", "a2", "u3", "a3")
    assert replaced is not None
    assert replaced.count == 2
    assert "said a2" not in replaced.text


async def test_sessions_do_not_see_each_other() -> None:
    world = LongSession()
    await world.digesting.work(SESSION, listed=await world.say("u1", "a1", "u2"))
    other = SessionId("ses_2")
    await world.say("u7", "a7", "u8", session=other)
    assert await outlook(world, "u7", "a7", "u8", session=other) == (None, True)


async def test_a_history_too_long_to_read_within_a_request_is_left_to_the_background() -> None:
    world = LongSession()
    names = [f"a{n}" for n in range(MAX_RAW + 1)]
    assert await outlook(world, *names, "u1") == (None, True)


async def test_a_host_that_summarises_is_told_of_the_digest() -> None:
    world = LongSession()
    assert await world.requests.compaction_note(SESSION) is None
    await world.digesting.work(SESSION, listed=await world.say("u1", "a1", "u2"))
    await outlook(world, "u1", "a1", "u2")
    note = await world.requests.compaction_note(SESSION)
    assert note is not None
    assert "backstory-digest" in note


async def test_after_a_compaction_only_what_came_since_is_digested_and_numbers_go_on() -> None:
    world = LongSession()
    await world.digesting.work(SESSION, listed=await world.say("u1", "a1", "u2", "a2", "u3"))
    request = await world.say("u-summary", "a3", "u4")
    await world.digesting.work(SESSION, listed=request)
    digest = await world.backend.digests.digest(SESSION)
    assert digest is not None
    assert [(piece.start, piece.end) for piece in digest.pieces] == [(0, 1), (2, 3), (4, 5)]
    replaced, _ = await outlook(world, "u-summary", "a3", "u4")
    assert replaced is not None
    assert "said u1" not in replaced.text


async def test_before_a_host_drops_messages_the_newest_turn_is_digested_too() -> None:
    world = LongSession()
    request = await world.say("u1", "a1", "u2", "a2")
    await outlook(world, "u1", "a1", "u2", "a2")
    assert not world.requests.is_dropping(SESSION)
    past = world.requests.about_to_drop(SESSION, request)
    assert world.requests.is_dropping(SESSION)
    seen = world.requests.last_request(SESSION)
    assert seen is not None
    assert seen.listed == past
    await world.digesting.force(SESSION)
    await world.digesting.work(SESSION, listed=past)
    digest = await world.backend.digests.digest(SESSION)
    assert digest is not None
    assert [piece.sources for piece in digest.pieces] == [("u1", "a1"), ("u2", "a2")]

    await world.say("u3")
    await outlook(world, "u3")
    assert not world.requests.is_dropping(SESSION)


async def test_a_host_takes_the_digest_as_its_own_summary_only_where_it_stands_for_everything() -> None:
    world = LongSession()
    await world.digesting.work(SESSION, listed=await world.say("u1", "a1", "u2", "a2", "u3"))
    whole = await world.requests.compaction_summary(SESSION, listed("u1", "a1", "u2", "a2", "u-own"))
    assert whole is not None
    assert "said u1 and said a1" in whole
    assert "said u2 and said a2" in whole
    for names in (["u1", "a1", "u2", "a2", "u3", "a3", "u-own"], ["u1", "a1", "u2", "u-own"], ["u-own"], ["u1"], []):
        assert await world.requests.compaction_summary(SESSION, listed(*names)) is None, names
    assert await world.requests.compaction_summary(SessionId("ses_2"), listed("u1", "a1", "u-own")) is None


async def test_a_list_that_others_have_changed_within_a_turn_loses_nothing_more() -> None:
    world = LongSession()
    names = ("u1", "a1", "u2", "a2", "u3", "a3")
    await world.digesting.work(SESSION, listed=await world.say(*names, "u4"))
    replaced, _ = await outlook(world, *names, "u4")
    assert replaced is not None
    assert replaced.count == 6
    replaced, _ = await outlook(world, *names[2:], "u4", "a4")
    assert replaced is None or replaced.count <= 4


async def test_what_the_archive_never_got_stays_in_the_list() -> None:
    world = LongSession()
    await world.say("u3", "a3", "u4", "a4", "u5")
    request = listed("u1", "a1", "u2", "a2", "u3", "a3", "u4", "a4", "u5")
    assert await world.digesting.work(SESSION, listed=request) == 0
    assert (await world.requests.outlook(request, session=SESSION, project=None)).replaced is None


async def test_an_undo_that_only_the_archive_was_told_of_is_made_up_for_at_the_next_turn() -> None:
    world = LongSession()
    await world.digesting.work(SESSION, listed=await world.say("u1", "a1", "u2", "a2", "u3"))
    await world.backend.conversations.mark_removed(MessageId("a2"), at=world.clock.now())
    await world.say("u4")
    replaced, _ = await outlook(world, "u1", "a1", "u2", "u4")
    assert replaced is not None
    assert replaced.count == 2
    digest = await world.backend.digests.digest(SESSION)
    assert digest is not None
    assert [piece.text for piece in digest.pieces] == ["said u1 and said a1"]


async def test_a_digest_from_a_file_that_nobody_vouched_for_is_shown_in_no_request() -> None:
    world = LongSession()
    await world.digesting.work(SESSION, listed=await world.say("u1", "a1", "u2"))
    digest = await world.backend.digests.digest(SESSION)
    assert digest is not None
    await world.backend.digests.apply(DigestUpdate(state=replace(digest.state, problem=UNVOUCHED)))
    assert await outlook(world, "u1", "a1", "u2") == (None, False)
