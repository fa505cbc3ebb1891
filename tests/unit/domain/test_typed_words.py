"""Tokens are shown as the words they were typed as."""

from __future__ import annotations

import pytest

from backstory.domain.text import analyse
from backstory.domain.typed_words import AS_TOKENS, wording_of


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("migrations run", ["migrations", "run"]),
        ("“Retries”, (uploads)!", ["Retries", "uploads"]),
        ("computeDewPoint", ["computeDewPoint"]),
        ("useLive and kebab-case-name", ["useLive", "and", "kebab-case-name"]),
        ("red,green apples", ["red", "green", "apples"]),
        ("ERR_VALVE_STUCK config/setpoints.toml", ["ERR_VALVE_STUCK", "config/setpoints.toml"]),
        ("Bewässerung", ["Bewässerung"]),
        ("retry retries", ["retry"]),
        ("温室の鍵", ["温室", "室の", "の鍵"]),
        ("", []),
        ("?! …", []),
    ],
)
def test_tokens_are_shown_as_they_were_typed_and_names_whole(asked: str, shown: list[str]) -> None:
    assert wording_of(asked).of(analyse(asked)) == shown


def test_a_part_that_matched_alone_is_shown_as_that_part() -> None:
    assert wording_of("computeDewPoint").of(["dew", "point"]) == ["dew", "point"]


@pytest.mark.parametrize(("asked", "held"), [("compute_dew_point", "computeDewPoint"), ("useLive()", "use_live")])
def test_a_name_is_shown_as_it_was_typed_where_the_memory_writes_it_otherwise(asked: str, held: str) -> None:
    shared = [token for token in analyse(asked) if token in analyse(held)]
    assert wording_of(asked).of(shared) == [asked.strip("()")]


def test_what_the_query_does_not_have_is_shown_as_it_is() -> None:
    assert wording_of("when").of(["migrat"]) == ["migrat"]
    assert AS_TOKENS.of(["migrat", "run"]) == ["migrat", "run"]
    assert wording_of("x " * 5000 + "migrations").of(["migrat"]) == ["migrat"]
