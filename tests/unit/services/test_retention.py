"""Evidence goes when a person says so, or daily where the settings say how long; memories never do."""

from __future__ import annotations

from datetime import timedelta

from backstory.adapters.stores.memory.conversation import InMemoryConversations
from backstory.adapters.stores.memory.digests import InMemoryDigests
from backstory.domain.conversation import Message, Role
from backstory.domain.ids import MessageId, SessionId
from backstory.entrypoints.drive import drive
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
