"""Evidence goes when a person says so, or daily where the settings say how long; memories never do."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from backstory.adapters.stores.memory.conversation import InMemoryConversations
from backstory.adapters.stores.memory.digests import InMemoryDigests
from backstory.domain.conversation import Message, Role
from backstory.domain.ids import MessageId, SessionId
from backstory.entrypoints.drive import drive
from backstory.errors import StoreBusy
from backstory.ports.conversation import Pruned
from backstory.services.retention import BATCH, Retention
from backstory.testing.fakes import START, FakeClock

DAY = timedelta(days=1)


def told(*days: float) -> InMemoryConversations:
    store = InMemoryConversations()
    for n, day in enumerate(days):
        at = START + day * DAY
        message = Message(id=MessageId(f"m{n}"), session=SessionId("s"), role=Role.USER, created_at=at)
        drive(store.put_messages([message]))
    return store


def test_a_preview_tells_what_pruning_removes_and_changes_nothing() -> None:
    store = told(0, 5, 9)
    retention = Retention(store, InMemoryDigests(), clock=FakeClock(START + 10 * DAY), days=None)
    planned = drive(retention.preview(timedelta(days=4)))
    assert planned == Pruned(messages=2)
    assert drive(store.count_messages()) == 3
    assert drive(retention.prune(timedelta(days=4))) == planned
    assert drive(store.count_messages()) == 1


def test_many_messages_go_a_few_at_a_time_and_others_get_their_turn() -> None:
    store = told(*(n / 1000 for n in range(2 * BATCH + 1)))
    turns: list[int] = []

    async def give_way() -> None:
        turns.append(await store.count_messages())

    retention = Retention(store, InMemoryDigests(), clock=FakeClock(START + 10 * DAY), days=None)
    assert drive(retention.prune(DAY, give_way=give_way)).messages == 2 * BATCH + 1
    assert turns == [2 * BATCH + 1, BATCH + 1, 1, 0]


def test_the_settings_are_kept_up_with_once_a_day() -> None:
    clock = FakeClock(START + 10 * DAY)
    store = told(0, 5)
    retention = Retention(store, InMemoryDigests(), clock=clock, days=7)
    assert drive(retention.keep_up()) == Pruned(messages=1)
    clock.advance(timedelta(hours=23))
    assert drive(retention.keep_up()) is None
    clock.advance(timedelta(days=4))
    assert drive(retention.keep_up()) == Pruned(messages=1)
    clock.advance(timedelta(days=-2))
    assert drive(retention.keep_up()) == Pruned()


def test_without_a_setting_everything_stays_for_ever() -> None:
    store = told(0)
    assert drive(Retention(store, InMemoryDigests(), clock=FakeClock(START + 9000 * DAY), days=None).keep_up()) is None
    assert drive(store.count_messages()) == 1


def test_a_clock_that_has_jumped_deletes_nothing_and_is_believed_again_once_it_is_put_right() -> None:
    clock = FakeClock(START + 200 * DAY)
    store = told(*range(100, 200))
    retention = Retention(store, InMemoryDigests(), clock=clock, days=60)
    assert drive(retention.keep_up()) == Pruned(messages=40)
    for days in (365, 1, 1):
        clock.advance(days * DAY)
        assert drive(retention.keep_up()) is None
    clock.advance(-366 * DAY)
    assert drive(retention.keep_up()) == Pruned(messages=1)


def test_at_the_first_start_after_a_jump_nothing_is_deleted_whatever_is_said_then() -> None:
    store = told(*range(100), 800)
    clock = FakeClock(START + 800 * DAY)
    retention = Retention(store, InMemoryDigests(), clock=clock, days=90)
    assert drive(retention.keep_up()) is None
    assert drive(store.count_messages()) == 101
    assert drive(retention.prune(90 * DAY)) == Pruned(messages=100)


def test_who_comes_back_after_a_long_time_is_believed_the_day_after() -> None:
    clock = FakeClock(START + 400 * DAY)
    store = told(*range(9), 399.9, 400)
    retention = Retention(store, InMemoryDigests(), clock=clock, days=90)
    assert drive(retention.keep_up()) is None
    clock.advance(DAY)
    assert drive(retention.keep_up()) == Pruned(messages=9)


def test_a_short_time_to_keep_messages_is_no_reason_to_doubt_the_clock() -> None:
    store = told(0, 1)
    retention = Retention(store, InMemoryDigests(), clock=FakeClock(START + 20 * DAY), days=2)
    assert drive(retention.keep_up()) == Pruned(messages=2)
    late = Retention(told(0, 1), InMemoryDigests(), clock=FakeClock(START + 40 * DAY), days=2)
    assert drive(late.keep_up()) is None


def test_a_process_that_runs_on_while_nothing_is_said_keeps_up() -> None:
    clock = FakeClock(START + 10 * DAY)
    store = told(0, 9)
    retention = Retention(store, InMemoryDigests(), clock=clock, days=90)
    removed = Pruned()
    for _ in range(5):
        removed += drive(retention.keep_up()) or Pruned()
        clock.advance(25 * DAY)
    assert removed == Pruned(messages=2)


class BusyOnce(InMemoryConversations):
    """A store that another process holds when it is first asked to remove something."""

    busy = True

    async def prune(self, before: datetime, *, limit: int) -> Pruned:
        if self.busy:
            self.busy = False
            raise StoreBusy("another process writes")
        return await super().prune(before, limit=limit)


def test_what_a_busy_store_did_not_allow_is_done_at_the_next_call() -> None:
    store = BusyOnce()
    drive(store.put_messages([Message(id=MessageId("m"), session=SessionId("s"), role=Role.USER, created_at=START)]))
    retention = Retention(store, InMemoryDigests(), clock=FakeClock(START + 10 * DAY), days=7)
    with pytest.raises(StoreBusy):
        drive(retention.keep_up())
    assert drive(retention.keep_up()) == Pruned(messages=1)
