"""Which sessions a start finds left undone, and which it leaves alone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from backstory.domain.digest import Lease
from backstory.domain.dream_state import DreamState
from backstory.domain.ids import SessionId
from backstory.domain.interchange import HISTORY_HOST
from backstory.services.dreaming import GIVE_UP_AFTER, LEASE, LOOKS_BACK, MISSED_AFTER
from backstory.services.dreaming_outcome import Outcome
from backstory.testing.fakes import ORCHARD
from tests.dreams import SESSION, Night, answer, fact
from tests.unit.services.dreaming_talks import KETTLE, NOW, TALK

pytestmark = pytest.mark.anyio


async def test_a_start_finds_what_was_left_and_what_nobody_noted_but_nothing_old() -> None:
    night = Night([answer()])
    await night.tell(*TALK)
    within = timedelta(seconds=90)
    ((session, due),) = await night.dreaming.left_undone(ORCHARD, limit=8, within=within)
    assert session == SESSION
    assert night.clock.now() <= due <= night.clock.now() + within
    night.clock.advance(LOOKS_BACK)
    assert await night.dreaming.left_undone(ORCHARD, limit=8, within=within) == []
    assert len(await night.dreaming.left_undone(ORCHARD, limit=8, within=within, by_person=True)) == 1
    await night.dreaming.note_idle(SESSION, delay=timedelta(seconds=60))
    ((_, due),) = await night.dreaming.left_undone(ORCHARD, limit=8, within=within)
    assert due == night.clock.now() + timedelta(seconds=60)


async def test_a_session_of_the_persons_history_is_distilled_only_when_a_person_asks() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*TALK, host=f"{HISTORY_HOST}opencode")
    within = timedelta(seconds=90)
    assert await night.dreaming.left_undone(ORCHARD, limit=8, within=within) == []
    assert len(await night.dreaming.left_undone(ORCHARD, limit=8, within=within, by_person=True)) == 1
    assert (await night.dreaming.work(SESSION, at_once=True)).outcome is Outcome.DONE
    assert await night.texts() == [KETTLE]


async def test_a_session_that_nobody_noted_is_left_alone_while_it_may_be_in_the_middle_of_a_turn() -> None:
    night = Night([answer()])
    await night.tell(*TALK, updated_at=night.clock.now())
    ((_, due),) = await night.dreaming.left_undone(ORCHARD, limit=8, within=NOW)
    assert due == night.clock.now() + MISSED_AFTER


async def test_a_start_soon_after_a_crash_waits_for_the_lease_of_the_process_that_died() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*TALK)
    held = Lease(token="dead", expires_at=night.clock.now() + LEASE)
    died = DreamState(session=SESSION, project=ORCHARD, due=True, lease=held, updated_at=night.clock.now())
    assert await night.backend.dreams.apply(died)
    left = await night.dreaming.left_undone(ORCHARD, limit=8, within=timedelta(seconds=1))
    assert left == [(SESSION, held.expires_at)]
    night.clock.advance(LEASE)
    assert (await night.dreaming.work(SESSION)).outcome is Outcome.DONE


async def test_sessions_that_failed_too_often_keep_no_other_from_its_turn() -> None:
    night = Night([answer()])
    await night.tell(*TALK)
    await night.dreaming.note_idle(SESSION, delay=NOW)
    night.clock.advance(timedelta(minutes=1))
    for number in range(3):
        stuck = DreamState(
            session=SessionId(f"ses_stuck_{number}"),
            project=ORCHARD,
            due=True,
            attempts=GIVE_UP_AFTER,
            updated_at=night.clock.now(),
        )
        assert await night.backend.dreams.apply(stuck)
    assert [session for session, _ in await night.dreaming.left_undone(ORCHARD, limit=2, within=NOW)] == [SESSION]


async def test_a_start_takes_no_more_sessions_than_it_may() -> None:
    night = Night([answer()])
    await night.tell(*TALK)
    assert await night.dreaming.left_undone(ORCHARD, limit=0, within=NOW) == []


async def test_what_a_file_told_is_never_found_left_undone() -> None:
    night = Night([answer(fact(KETTLE, 1))])
    await night.tell(*TALK, host="import:opencode")
    for by_person in (False, True):
        within = timedelta(days=1)
        assert await night.dreaming.left_undone(ORCHARD, limit=9, within=within, by_person=by_person) == []
