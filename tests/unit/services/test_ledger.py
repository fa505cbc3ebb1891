"""What people are told about costs and caps."""

from __future__ import annotations

from datetime import UTC, timedelta

import anyio
import pytest

from backstory.adapters.stores.memory import open_memory_store
from backstory.domain.ledger import Cap, Caps
from backstory.errors import InputError
from backstory.services.ledger import Costs, Spending, Stopped
from backstory.testing.contracts.ledger import S1, entry
from backstory.testing.fakes import START, FakeClock

CAPS = Caps(day_tokens=1_000, day_cost=500, session_tokens=50, features={"rerank": 300})


class Books:
    """A ledger with some calls in it: 100 tokens today, 100 yesterday, unless told otherwise."""

    def __init__(self) -> None:
        self.ledger = open_memory_store().ledger
        self.clock = FakeClock()
        self.book(1, at=START)
        self.book(2, at=START - timedelta(days=1))

    def book(self, number: int, tokens: int = 100, **fields: object) -> None:
        anyio.run(self.ledger.book, entry(number, tokens, **fields))  # type: ignore[arg-type]  # fields of Entry

    def spending(self, caps: Caps = CAPS, *, features: tuple[str, ...] = ("rerank",)) -> Spending:
        return Spending(self.ledger, caps=caps, features=features, clock=self.clock, zone=UTC)

    def costs(self, days: int = 1, caps: Caps = CAPS) -> Costs:
        return anyio.run(lambda: self.spending(caps).costs(days=days))

    def stopped(self, caps: Caps = CAPS, *, features: tuple[str, ...] = ("rerank",)) -> list[Stopped]:
        return anyio.run(self.spending(caps, features=features).stopped)


@pytest.fixture
def books() -> Books:
    return Books()


@pytest.mark.parametrize(("days", "lines"), [(1, 1), (2, 2), (366, 2)])
def test_costs_are_of_the_last_days_today_included(books: Books, days: int, lines: int) -> None:
    assert len(books.costs(days).lines) == lines


@pytest.mark.parametrize("days", [0, -1, 367])
def test_days_beyond_a_year_are_refused(books: Books, days: int) -> None:
    with pytest.raises(InputError, match="between 1 and 366"):
        books.costs(days)


def test_every_cap_is_told_once_with_what_is_left_today(books: Books) -> None:
    books.book(3, 40, feature="dream", session=S1)
    told = [(each.cap, each.feature, each.left) for each in books.costs().allowances]
    assert told == [
        (Cap.FEATURE, "rerank", 200),
        (Cap.SESSION, None, 50),
        (Cap.DAY_TOKENS, None, 860),
        (Cap.DAY_COST, None, 360),
    ]
    assert [each.cap for each in books.costs(caps=Caps(day_tokens=5)).allowances] == [Cap.DAY_TOKENS]
    assert list(books.costs(caps=Caps()).allowances) == []


def test_a_feature_at_its_cap_is_told_until_midnight_and_not_after(books: Books) -> None:
    assert books.stopped() == []
    books.book(3, 200)
    [stopped] = books.stopped()
    assert (stopped.feature, stopped.reached.cap) == ("rerank", Cap.FEATURE)
    assert stopped.until == START.replace(hour=0) + timedelta(days=1)
    assert list(books.costs().stopped) == [stopped]
    books.clock.moment = stopped.until
    assert books.stopped() == []


def test_a_feature_that_asks_no_model_is_not_told(books: Books) -> None:
    assert books.stopped(Caps(day_tokens=0), features=()) == []


def test_a_session_at_its_cap_stops_no_feature(books: Books) -> None:
    books.book(3, 60, session=S1)
    assert books.stopped() == []
