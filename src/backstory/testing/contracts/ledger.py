"""The contract of the Ledger."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from backstory.domain.ids import ProjectId, SessionId
from backstory.domain.ledger import Allowance, Cap, Caps, Entry, Outcome, Spent
from backstory.ports.ledger import Ledger
from backstory.testing.contracts.checks import Checks, MakeBackend
from backstory.testing.fakes import ORCHARD, START, ulid

LEDGER_CHECKS = Checks()
HOUR = timedelta(hours=1)
S1, S2 = SessionId("ses-1"), SessionId("ses-2")
FULL = Entry(
    id=ulid(1, series=9),
    at=datetime(2026, 3, 2, 12, 0, 0, 123456, tzinfo=UTC),
    feature="rerank",
    model="openai:größe-1",
    session=S1,
    project=ORCHARD,
    input_tokens=2_000_000_000,
    output_tokens=3,
    cost=5_000_000_000_000,
    duration=timedelta(days=1, microseconds=7),
    requests=4,
    outcome=Outcome.TIMEOUT,
    estimated=True,
)
"""An entry with no field at its default."""


def entry(number: int, tokens: int = 100, *, at: datetime = START, **fields: object) -> Entry:
    """A call of ``rerank`` that took ``tokens``."""
    plain = Entry(
        id=ulid(number, series=9), at=at, feature="rerank", model="m", input_tokens=tokens, output_tokens=0, cost=tokens
    )
    return replace(plain, **fields)  # type: ignore[arg-type]  # fields of Entry


async def admitted(ledger: Ledger, call: Entry, caps: Caps) -> bool:
    """Whether a call is let through on the day that began at START."""
    return await ledger.admit(call, caps=caps, since=START) is None


@LEDGER_CHECKS
async def an_entry_comes_back_as_it_was_booked(make: MakeBackend) -> None:
    ledger = make().ledger
    bare = Entry(id=ulid(2, series=9), at=START, feature="f", model="m", input_tokens=0, output_tokens=0)
    await ledger.book(FULL)
    await ledger.book(bare)
    assert list(await ledger.entries(since=START)) == [bare, FULL]


@LEDGER_CHECKS
async def entries_come_oldest_first_from_a_moment_on(make: MakeBackend) -> None:
    ledger = make().ledger
    for number, hours in ((1, 2), (3, 1), (2, 1), (4, 0)):
        await ledger.book(entry(number, at=START + hours * HOUR))
    found = await ledger.entries(since=START + HOUR)
    assert [each.id for each in found] == [ulid(n, series=9) for n in (2, 3, 1)]
    assert list(await ledger.entries(since=START + 3 * HOUR)) == []


@LEDGER_CHECKS
async def booking_again_replaces_and_withdrawing_removes(make: MakeBackend) -> None:
    ledger = make().ledger
    begun = entry(1, 900, outcome=Outcome.UNFINISHED, estimated=True)
    assert await admitted(ledger, begun, Caps())
    done = entry(1, 40, duration=HOUR)
    for _ in range(2):
        await ledger.book(done)
    assert list(await ledger.entries(since=START)) == [done]
    for _ in range(2):
        await ledger.withdraw(done.id)
    assert list(await ledger.entries(since=START)) == []


@LEDGER_CHECKS
async def sums_are_of_what_fits_all_that_is_given(make: MakeBackend) -> None:
    ledger = make().ledger
    assert await ledger.spent() == Spent()
    await ledger.book(entry(1, 1, at=START - HOUR, session=S1))
    await ledger.book(entry(2, 10, session=S1, cost=None))
    await ledger.book(entry(3, 100, session=S2, output_tokens=1000))
    await ledger.book(entry(4, 10_000, feature="dream"))
    assert await ledger.spent() == Spent(tokens=11_111, cost=10_101)
    assert await ledger.spent(since=START) == Spent(tokens=11_110, cost=10_100)
    assert await ledger.spent(since=START, feature="rerank") == Spent(tokens=1_110, cost=100)
    assert await ledger.spent(session=S1) == Spent(tokens=11, cost=1)
    assert await ledger.spent(session=SessionId("ses-3")) == Spent()
    assert await ledger.spent(since=START, feature="rerank", session=S1) == Spent(tokens=10, cost=0)


@LEDGER_CHECKS
async def a_call_is_let_through_until_nothing_is_left(make: MakeBackend) -> None:
    ledger = make().ledger
    caps = Caps(day_tokens=150)
    assert await admitted(ledger, entry(1), caps)
    assert await admitted(ledger, entry(2), caps)
    reached = await ledger.admit(entry(3), caps=caps, since=START)
    assert reached == Allowance(cap=Cap.DAY_TOKENS, limit=150, spent=200)
    assert len(await ledger.entries(since=START)) == 2
    await ledger.book(entry(2, 10))  # it took less than it might have
    assert await admitted(ledger, entry(4), caps)


@LEDGER_CHECKS
async def yesterday_counts_for_the_session_alone_and_tomorrow_for_today(make: MakeBackend) -> None:
    ledger = make().ledger
    await ledger.book(entry(1, at=START - timedelta(microseconds=1), session=S1))
    assert await admitted(ledger, entry(2, 1), Caps(day_tokens=50, day_cost=50, features={"rerank": 50}))
    assert await admitted(ledger, entry(3, 1, session=S2), Caps(session_tokens=50))
    assert await admitted(ledger, entry(4, 1), Caps(session_tokens=0))
    assert not await admitted(ledger, entry(5, 1, session=S1), Caps(session_tokens=50))
    await ledger.book(entry(6, at=START + 48 * HOUR))
    assert not await admitted(ledger, entry(7), Caps(day_tokens=100))


@LEDGER_CHECKS
async def each_cap_looks_at_its_own_sum(make: MakeBackend) -> None:
    ledger = make().ledger
    await ledger.book(entry(1, 100, feature="dream", cost=7))
    assert await admitted(ledger, entry(2, 1, cost=0), Caps(features={"rerank": 100}))
    assert not await admitted(ledger, entry(3, 1, feature="dream"), Caps(features={"dream": 100}))
    assert await admitted(ledger, entry(4, 1, cost=0), Caps(day_cost=8))
    assert not await admitted(ledger, entry(5, 1), Caps(day_cost=7))
    assert not await admitted(ledger, entry(6, 1), Caps(day_tokens=0))


@LEDGER_CHECKS
async def a_session_is_found_again_whatever_its_id_holds(make: MakeBackend) -> None:
    ledger = make().ledger
    for number, odd in enumerate(
        (SessionId("a\x00b"), SessionId("' OR 1=1 --"), SessionId("日本 🚀"), SessionId("")), 1
    ):
        assert await admitted(ledger, entry(number, session=odd), Caps(session_tokens=50))
        assert not await admitted(ledger, entry(9, session=odd), Caps(session_tokens=50))
        assert await ledger.spent(session=odd) == Spent(tokens=100, cost=100)


@LEDGER_CHECKS
async def asking_twice_for_one_call_books_it_once(make: MakeBackend) -> None:
    ledger = make().ledger
    caps = Caps(day_tokens=50)
    assert await admitted(ledger, entry(1), caps)
    assert await admitted(ledger, entry(1), caps)
    assert await ledger.spent() == Spent(tokens=100, cost=100)


@LEDGER_CHECKS
async def callers_at_one_moment_go_beyond_a_cap_by_one_call_at_most(make: MakeBackend) -> None:
    import anyio

    ledger = make().ledger
    caps = Caps(day_tokens=350)
    through: list[int] = []

    async def ask(number: int) -> None:
        if await admitted(ledger, entry(number), caps):
            through.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(1, 13):
            tasks.start_soon(ask, number)
    assert len(through) == 4
    assert await ledger.spent() == Spent(tokens=400, cost=400)


@LEDGER_CHECKS
async def stores_do_not_share_what_they_booked(make: MakeBackend) -> None:
    ours, theirs = make().ledger, make().ledger
    await ours.book(entry(1, project=ProjectId(ulid(1, series=2))))
    await theirs.book(entry(1, 7))
    assert await ours.spent() == Spent(tokens=100, cost=100)
    assert await theirs.spent() == Spent(tokens=7, cost=7)
