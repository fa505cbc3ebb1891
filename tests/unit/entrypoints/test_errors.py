"""The table of errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backstory.entrypoints.errors import RULES, failure_of, rule_for
from backstory.errors import AmbiguousMatch, BackstoryError, ConfigError, InputError, NotFound, StoreDamaged


def _tree(cls: type[BackstoryError]) -> Iterator[type[BackstoryError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _tree(child)


def test_every_error_that_is_raised_on_purpose_ends_with_more_than_1() -> None:
    for cls in _tree(BackstoryError):
        rule = next(rule for base in cls.__mro__ for rule in RULES if rule.error is base)
        assert rule.exit_code > 1 or cls is BackstoryError, cls


def test_the_nearest_class_decides() -> None:
    class Torn(StoreDamaged):
        """A special case."""

    assert rule_for(Torn("x")).exit_code == 8
    assert rule_for(AmbiguousMatch("x", field="f", candidates=())).exit_code == 5
    assert rule_for(InputError("x", field="f")).exit_code == 2


def test_a_hint_of_the_error_outweighs_the_advice_of_the_table() -> None:
    assert failure_of(InputError("x", field="f", hint="do this")).hint == "do this"
    assert failure_of(InputError("x", field="f")).hint is None
    assert "backstory list" in (failure_of(NotFound("x")).hint or "")


@pytest.mark.parametrize(
    ("error", "field"),
    [(InputError("x", field="tags"), "tags"), (ConfigError("x", option="recall.limit"), "recall.limit"),
     (NotFound("x"), None)],
)  # fmt: skip
def test_what_is_at_fault_is_named(error: BackstoryError, field: str | None) -> None:
    assert failure_of(error).as_json()["field"] == field


def test_only_an_ambiguous_match_has_candidates() -> None:
    told = failure_of(AmbiguousMatch("x", field="ref", candidates=["a", "b"])).as_json()
    assert told["candidates"] == ["a", "b"]
    assert "candidates" not in failure_of(NotFound("x")).as_json()
