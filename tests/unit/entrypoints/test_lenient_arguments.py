"""Arguments as clients send them: what they mean is read, what can mean nothing is refused, and nothing is guessed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar, Literal

import pytest
from pydantic import Field

from backstory.entrypoints.tools.lenient import as_meant
from backstory.entrypoints.tools.tool import Arguments
from backstory.errors import InputError


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Order(Arguments):
    older_names: ClassVar[Mapping[str, str]] = {"note": "text", "maxCount": "count"}

    text: str
    id: int | str | list[int | str] | None = None
    count: int = Field(default=3, ge=1, le=50)
    weight: float | None = None
    wrapped: bool = False
    labels: list[str] | None = None
    size: Size | None = None
    colour: Literal["red", "dark-blue"] | None = None
    by_day_of_week: str | None = None
    extra: dict[str, int] | None = None


def read(given: object) -> dict[str, Any]:
    meant = as_meant(given, Order.model_fields, Order.older_names)
    return Order.model_validate(meant.values).model_dump(exclude_unset=True)


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({"count": "7"}, {"count": 7}),
        ({"count": " 7 "}, {"count": 7}),
        ({"count": "2.9"}, {"count": 2}),
        ({"count": 2.9}, {"count": 2}),
        ({"count": 0}, {"count": 1}),
        ({"count": -(10**30)}, {"count": 1}),
        ({"count": 10**30}, {"count": 50}),
        ({"count": None}, {}),
        ({"count": ""}, {}),
        ({"maxCount": "9"}, {"count": 9}),
        ({"max_count": 9}, {"count": 9}),
        ({"weight": "1.5"}, {"weight": 1.5}),
        ({"wrapped": "Yes"}, {"wrapped": True}),
        ({"wrapped": 0}, {"wrapped": False}),
        ({"wrapped": "false"}, {"wrapped": False}),
        ({"labels": "oak, elm\nash"}, {"labels": ["oak", "elm", "ash"]}),
        ({"labels": '["oak", "elm"]'}, {"labels": ["oak", "elm"]}),
        ({"labels": "['oak', 'elm']"}, {"labels": ["oak", "elm"]}),
        ({"labels": [3, None, "", "oak", {"a": 1}, True]}, {"labels": ["3", "oak", "true"]}),
        ({"labels": 8}, {"labels": ["8"]}),
        ({"labels": []}, {"labels": []}),
        ({"labels": [""]}, {}),
        ({"id": "#12"}, {"id": "#12"}),
        ({"id": 12.0}, {"id": 12}),
        ({"id": "#12, 14"}, {"id": ["#12", "14"]}),
        ({"id": "[12, 14]"}, {"id": [12, 14]}),
        ({"id": "apples, pears"}, {"id": "apples, pears"}),
        ({"id": ["#12", 14.0]}, {"id": ["#12", 14]}),
        ({"size": "LARGE"}, {"size": Size.LARGE}),
        ({"colour": " Dark-Blue "}, {"colour": "dark-blue"}),
        ({"byDayOfWeek": "friday"}, {"by_day_of_week": "friday"}),
        ({"by-day-of-week": 5}, {"by_day_of_week": "5"}),
        ({"extra": '{"a": 1}'}, {"extra": {"a": 1}}),
        ({"_meta": {"progressToken": 1}}, {}),
    ],
)
def test_what_is_meant_is_read(sent: dict[str, object], meant: dict[str, object]) -> None:
    assert read({"text": "x", **sent}) == {"text": "x", **meant}


@pytest.mark.parametrize("text", ['["a", "b"]', "42", '{"a": 1}', "null", "true", " padded "])
def test_a_text_that_looks_like_something_else_stays_a_text(text: str) -> None:
    assert read({"text": text}) == {"text": text}


@pytest.mark.parametrize(
    "sent", ['{"text": "x"}', '"{\\"text\\": \\"x\\"}"', {"arguments": {"text": "x"}}, {"input": '{"text": "x"}'}]
)
def test_a_whole_object_may_be_wrapped(sent: object) -> None:
    assert read(sent) == {"text": "x"}


@pytest.mark.parametrize("sent", ["no object", [1], 7, "[]", "[" * 100_000, '{"text": '])
def test_what_is_no_object_is_refused(sent: object) -> None:
    with pytest.raises(InputError, match="must be an object"):
        read(sent)


@pytest.mark.parametrize("sent", [{"id": True}, {"id": [True]}, {"count": False}])
def test_true_and_false_are_no_numbers(sent: dict[str, object]) -> None:
    with pytest.raises(InputError, match="a number is wanted"):
        read({"text": "x", **sent})


@pytest.mark.parametrize(
    "sent",
    [{"count": "many"}, {"count": float("inf")}, {"count": float("nan")}, {"text": ["a"]}, {"wrapped": "perhaps"},
     {"colour": "pink"}, {"count": "9" * 5000}, {"text": None}, {"extra": "[1]"}],
)  # fmt: skip
def test_what_can_mean_nothing_is_left_for_the_check(sent: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(sent))):
        read({"text": "x", **sent})


def test_of_two_spellings_the_one_that_says_something_counts_and_our_own_comes_first() -> None:
    assert read({"note": "older", "text": "ours"}) == {"text": "ours"}
    assert read({"note": "older", "text": ""}) == {"text": "older"}


def test_names_that_are_none_of_ours_are_told() -> None:
    meant = as_meant({"text": "x", "priority": 1, "_meta": {}, "Text ": 2}, Order.model_fields, Order.older_names)
    assert meant.ignored == ("priority", "Text ")


def test_a_huge_argument_costs_little() -> None:
    began = time.process_time()
    read({"text": "a," * 500_000, "labels": "[" * 200_000, "id": "1," * 200_000})
    read({"text": "x", "id": "1" + " " * 200_000 + "x"})
    assert time.process_time() - began < 8
