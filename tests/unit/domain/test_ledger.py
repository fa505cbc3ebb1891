"""What calls cost, when no more may be made, and how it is summed for people."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

import pytest

from backstory.domain.ids import SessionId
from backstory.domain.ledger import (
    Allowance,
    Cap,
    Caps,
    Entry,
    Outcome,
    Prices,
    Spent,
    Standing,
    allowances,
    day_of,
    lines,
    may_call,
    money,
    read_feature_caps,
    read_money,
)

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
EAST = timezone(timedelta(hours=13))


class SpringForward(tzinfo):
    """One hour ahead of UTC until 2 o'clock on 29 March 2026, two hours from then on."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        assert moment is not None
        return timedelta(hours=1 if moment.replace(tzinfo=None) < datetime(2026, 3, 29, 2) else 2)

    def dst(self, moment: datetime | None) -> None:
        return None

    def tzname(self, moment: datetime | None) -> str:
        return "spring"

    def fromutc(self, moment: datetime) -> datetime:
        ahead = 1 if moment.replace(tzinfo=None) < datetime(2026, 3, 29, 1) else 2
        return moment + timedelta(hours=ahead)


def entry(**fields: object) -> Entry:
    plain = Entry(id="1", at=NOON, feature="rerank", model="m", input_tokens=10, output_tokens=1)
    return replace(plain, **fields)  # type: ignore[arg-type]  # fields of Entry


# --- prices -----------------------------------------------------------------------------------------------------------


def test_a_cost_is_rounded_up_to_a_millionth() -> None:
    prices = Prices(input=read_money("0.15"), output=read_money("0.60"))
    assert prices.cost(input_tokens=1_000_000, output_tokens=1_000_000) == read_money("0.75")
    assert prices.cost(input_tokens=1, output_tokens=0) == 1
    assert prices.cost(input_tokens=0, output_tokens=0) == 0


@pytest.mark.parametrize("prices", [Prices(), Prices(input=1), Prices(output=1)])
def test_nothing_has_a_cost_until_both_prices_are_known(prices: Prices) -> None:
    assert prices.cost(input_tokens=5, output_tokens=5) is None


@pytest.mark.parametrize(
    ("text", "millionths", "shown"),
    [
        ("0.15", 150_000, "0.15"),
        ("3", 3_000_000, "3.00"),
        (" 0.000001 ", 1, "0.000001"),
        ("9999.999999", 9_999_999_999, "9,999.999999"),
        ("00.50", 500_000, "0.50"),
    ],
)
def test_an_amount_is_read_and_shown_without_loss(text: str, millionths: int, shown: str) -> None:
    assert read_money(text) == millionths
    assert money(millionths) == shown


@pytest.mark.parametrize("text", ["", ".5", "5.", "-1", "1e3", "0,15", "10000", "0.0000001", "1 2", "٣", "NaN", "$1"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an amount"):
        read_money(text)


# --- caps -------------------------------------------------------------------------------------------------------------


def test_caps_of_features_are_read() -> None:
    assert read_feature_caps("") == {}
    assert read_feature_caps("  rerank=20000 ") == {"rerank": 20_000}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rerank", "is not a list"),
        ("rerank=", "is not a list"),
        ("rerank=-1", "is not a list"),
        ("rerank=1,dream=2", "is not a list"),
        ("rerank = 1", "is not a list"),
        ("rernak=1", "asks no model"),
        ("rerank=1 rerank=2", "twice"),
    ],
)
def test_a_cap_that_would_protect_nobody_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_feature_caps(text)


def test_without_caps_every_call_may_be_made() -> None:
    everything = Spent(tokens=10**15, cost=10**15)
    assert not Caps().is_set
    assert may_call("rerank", Caps(), Standing(day=everything, feature=everything, session=everything)) is None


@pytest.mark.parametrize(
    ("caps", "cap"),
    [
        (Caps(features={"rerank": 10}), Cap.FEATURE),
        (Caps(session_tokens=20), Cap.SESSION),
        (Caps(day_tokens=30), Cap.DAY_TOKENS),
        (Caps(day_cost=5), Cap.DAY_COST),
    ],
)
def test_a_call_may_be_made_while_anything_is_left(caps: Caps, cap: Cap) -> None:
    below = Standing(day=Spent(tokens=29, cost=4), feature=Spent(tokens=9), session=Spent(tokens=19))
    at = Standing(day=Spent(tokens=30, cost=5), feature=Spent(tokens=10), session=Spent(tokens=20))
    assert caps.is_set
    assert may_call("rerank", caps, below) is None
    reached = may_call("rerank", caps, at)
    assert reached is not None
    assert (reached.cap, reached.left) == (cap, 0)


def test_a_cap_of_nothing_lets_no_call_through() -> None:
    assert may_call("rerank", Caps(day_tokens=0), Standing()) is not None
    assert may_call("rerank", Caps(features={"rerank": 0}), Standing()) is not None


def test_a_cap_of_another_feature_does_not_bind() -> None:
    assert may_call("rerank", Caps(features={"dream": 0}), Standing()) is None


def test_a_call_without_a_session_is_bound_by_no_cap_of_sessions() -> None:
    assert may_call("rerank", Caps(session_tokens=0), Standing()) is None


def test_the_narrowest_cap_is_told_first() -> None:
    caps = Caps(day_tokens=0, day_cost=0, session_tokens=0, features={"rerank": 0})
    assert [each.cap for each in allowances("rerank", caps, Standing(session=Spent()))] == list(Cap)


def test_a_reason_says_which_cap_how_much_and_until_when() -> None:
    by_feature = Allowance(cap=Cap.FEATURE, limit=20_000, spent=20_113, feature="rerank")
    by_session = Allowance(cap=Cap.SESSION, limit=500, spent=500)
    by_cost = Allowance(cap=Cap.DAY_COST, limit=500_000, spent=501_200)
    by_day = Allowance(cap=Cap.DAY_TOKENS, limit=1, spent=2)
    assert by_feature.reason == (
        "the cap of 20,000 tokens a day for rerank is reached (20,113 spent); no model is asked until 00:00"
    )
    assert by_session.reason.endswith("500 tokens a session is reached (500 spent); no model is asked for the rest of "
                                      "this session")  # fmt: skip
    assert by_cost.reason.startswith("the cap of 0.50 a day is reached (0.5012 spent)")
    assert by_day.reason.startswith("the cap of 1 tokens a day is reached (2 spent)")


# --- days -------------------------------------------------------------------------------------------------------------


def test_a_day_begins_and_ends_at_midnight_where_the_person_is() -> None:
    late = day_of(datetime(2026, 3, 2, 10, 59, tzinfo=UTC), EAST)
    next_day = day_of(datetime(2026, 3, 2, 11, 0, tzinfo=UTC), EAST)
    assert late.end == next_day.start == datetime(2026, 3, 2, 11, 0, tzinfo=UTC)
    assert day_of(NOON, EAST, back=1) == late


def test_a_day_on_which_clocks_change_has_fewer_hours() -> None:
    day = day_of(datetime(2026, 3, 29, 12, 0, tzinfo=UTC), SpringForward())
    assert day.start == datetime(2026, 3, 28, 23, 0, tzinfo=UTC)
    assert day.end - day.start == timedelta(hours=23)


# --- sums -------------------------------------------------------------------------------------------------------------


def test_entries_are_summed_by_day_feature_and_model_the_newest_day_first() -> None:
    entries = [
        entry(at=NOON - timedelta(days=1)),
        entry(model="z"),
        entry(feature="dream"),
        entry(session=SessionId("ses-1")),
        entry(),
    ]
    found = [(line.day.day, line.feature, line.model, line.calls) for line in lines(entries, UTC)]
    assert found == [(2, "dream", "m", 1), (2, "rerank", "m", 2), (2, "rerank", "z", 1), (1, "rerank", "m", 1)]


def test_a_day_is_the_persons_own() -> None:
    assert [line.day for line in lines([entry()], EAST)] == [date(2026, 3, 3)]


def test_a_line_tells_how_calls_ended_and_what_is_not_known() -> None:
    [line] = lines(
        [
            entry(cost=5, duration=timedelta(seconds=2)),
            entry(outcome=Outcome.FAILED, requests=3, estimated=True, duration=timedelta(seconds=1)),
            entry(outcome=Outcome.REFUSED, input_tokens=0, output_tokens=0, cost=0),
            entry(outcome=Outcome.TIMEOUT),
            entry(outcome=Outcome.UNFINISHED, estimated=True),
        ],
        UTC,
    )
    assert (line.calls, line.failed, line.unfinished, line.estimated, line.requests) == (5, 3, 1, 2, 7)
    assert (line.input_tokens, line.output_tokens) == (40, 4)
    assert (line.cost, line.unpriced) == (5, 3)
    assert line.duration == timedelta(seconds=3)


def test_where_no_call_has_a_price_there_is_no_cost() -> None:
    [line] = lines([entry()], UTC)
    assert (line.cost, line.unpriced) == (None, 1)
    assert lines([], UTC) == []
