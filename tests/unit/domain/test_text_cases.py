"""The analyser and the date filters on the shared rows of hard inputs, with a scorer of a few lines."""

from __future__ import annotations

import json
import math
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from backstory.domain.dates import parse_range, parse_stored
from backstory.domain.text import analyse, analyse_query
from backstory.errors import InputError

CASES = Path(__file__).parents[4] / "shared" / "cases"


def rows(name: str) -> list[dict[str, Any]]:
    path = CASES / name
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def need(name: str) -> None:
    if not (CASES / name).exists():
        pytest.skip(f"{name} is not beside this checkout")


def ranked(query: str, documents: dict[str, list[str]]) -> list[str]:
    """Ids of the documents that hold a term of the query, by the sum of the terms' rarity, best first."""
    scores: dict[str, float] = {}
    for term in analyse_query(query):
        holders = [name for name, tokens in documents.items() if term.token in tokens]
        for name in holders:
            scores[name] = scores.get(name, 0.0) + term.weight * math.log(1 + len(documents) / len(holders))
    return sorted(scores, key=lambda name: (-scores[name], name))


def test_every_row_of_the_search_queries_finds_what_it_must() -> None:
    need("fts-queries.jsonl")
    documents = {row["id"]: analyse(row["content"]) for row in rows("fts-corpus.jsonl")}
    failed = []
    for row in rows("fts-queries.jsonl"):
        query = row["query"] if "query" in row else "".join(part["s"] * part["n"] for part in row["query_gen"])
        found = ranked(query, documents)
        good = set(row["must_match"]) <= set(found[:10]) and set(row["must_not_match"]).isdisjoint(found)
        if not good or len(found) > len(documents) // 4:
            failed.append((row["tier"], row["id"], found[:10]))
    assert failed == []


def outcome(row: dict[str, Any]) -> list[str] | str:
    wanted = row["filter"]
    try:
        found = parse_range(
            since=wanted.get("since"),
            until=wanted.get("until"),
            phrase=wanted.get("phrase"),
            now=datetime.fromisoformat(row["now"]),
            zone=ZoneInfo(row["tz"]),
        )
    except InputError as error:
        return error.field
    return sorted(memory["id"] for memory in row["memories"] if found.contains(parse_stored(memory["ts"])))


@pytest.mark.parametrize("row", rows("date-filters.jsonl"), ids=lambda row: row["id"])
def test_every_row_of_the_date_filters_selects_what_it_must(row: dict[str, Any]) -> None:
    if "reversed range" in row["note"]:  # "empty or a clear error": ours is an error
        assert outcome(row) in ([], "until")
    else:
        assert outcome(row) == row.get("expect_error", row["expect_ids"])
