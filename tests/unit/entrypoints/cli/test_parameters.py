"""What options hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
import pytest

from backstory.domain.memory import Kind
from backstory.domain.vocabulary import Classified
from backstory.entrypoints.cli.parameters import DURATION, KIND, KINDS_TOLD, WholeNumber, kinds_of, learned_range
from backstory.errors import InputError

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "hours"), [("90m", 1.5), ("24h", 24), ("7d", 168), ("2w", 336), ("1D", 24), ("3 h", 3), ("3660d", 87_840)]
)
def test_a_length_of_time_is_a_number_and_a_unit(text: str, hours: float) -> None:
    assert DURATION.convert(text, None, None) == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["", "h", "24", "soon", "-3h", "1.5h", "0h", "3661d", "9" * 30 + "d", "٣h"])
def test_anything_else_is_no_length_of_time(text: str) -> None:
    with pytest.raises(click.BadParameter):
        DURATION.convert(text, None, None)


def test_a_kind_goes_by_any_of_its_names() -> None:
    assert KIND.convert("stack_fact", None, None).kind is Kind.FACT
    with pytest.raises(InputError):
        KIND.convert("thing", None, None)


def test_no_kind_is_not_any_kind() -> None:
    with pytest.raises(click.BadParameter):
        KIND.convert(" ", None, None)


def test_the_help_names_every_kind() -> None:
    assert KINDS_TOLD.replace(" or ", ", ").split(", ") == [kind.value for kind in Kind]


@pytest.mark.parametrize(("text", "number"), [("1", 1), (" 7 ", 7), ("+3", 3), ("10", 10), (5, 5)])
def test_a_whole_number_lies_within_its_limits(text: object, number: int) -> None:
    assert WholeNumber(1, 10).convert(text, None, None) == number


@pytest.mark.parametrize("text", ["", "0", "11", "-1", "1.5", "1e3", "1_0", "ten", "9" * 5000])
def test_what_lies_outside_of_the_limits_is_told_what_is_allowed(text: str) -> None:
    with pytest.raises(click.BadParameter, match="allowed: 1 to 10"):
        WholeNumber(1, 10).convert(text, None, None)


def test_kinds_are_collected_once() -> None:
    assert kinds_of([Classified(kind=Kind.FACT), Classified(kind=Kind.FACT), Classified()]) == {Kind.FACT}


def test_no_dates_are_no_range() -> None:
    assert learned_range(None, None, now=NOW) is None


def test_a_date_bounds_the_range_on_its_side() -> None:
    found = learned_range("7d", None, now=NOW)
    assert found is not None
    assert (found.since, found.until) == (NOW - timedelta(days=7), None)
    with pytest.raises(InputError) as caught:
        learned_range(None, "whenever", now=NOW)
    assert caught.value.field == "until"
