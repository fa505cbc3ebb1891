"""The shared rows of broken model answers, each read as its task reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backstory.domain.answers import Finish, Unusable
from backstory.domain.digest_answers import ObservedText, read_observations, read_summary
from backstory.domain.memory import Kind, Visibility
from backstory.domain.proposals import Proposals, ProposedFact, ProposedFacts, read_facts, read_proposals

CASES = Path(__file__).parents[4] / "shared" / "cases" / "llm-output-repair.jsonl"
Row = dict[str, Any]  # a row of the file, whatever its task


def rows() -> list[Row]:
    if not CASES.exists():
        pytest.skip(f"the shared cases are not here: {CASES.name}")
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


def read(row: Row) -> ProposedFacts | Proposals | ObservedText | str | Unusable:
    raw, finish = row["raw"], Finish(row.get("finish_reason", "unknown"))
    match row["task"]:
        case "facts":
            return read_facts(raw, finish=finish)
        case "consolidate":
            return read_proposals(raw, known=row["known_ids"], finish=finish)
        case "observations":
            return read_observations(raw, finish=finish)
        case _:
            return read_summary(raw, source=row["source"], finish=finish)


def in_the_words_of_the_file(answer: ProposedFacts | Proposals | ObservedText | str | Unusable) -> Row:
    if isinstance(answer, Unusable):
        return {"ok": False, "retryable": answer.can_retry}
    if isinstance(answer, ProposedFacts):
        return {"ok": True, "facts": [fact(item) for item in answer.facts]}
    if isinstance(answer, ObservedText):
        return {
            "ok": True,
            "observations": answer.observations,
            "current_task": answer.current_task,
            "suggested_response": answer.suggested_response,
        }
    if isinstance(answer, str):
        return {"ok": True, "summary": answer}
    return {
        "ok": True,
        "new": [new(item) for item in answer.new],
        "update": [{"id": key, "text": text} for key, text in answer.update],
        "delete": list(answer.delete),
        "summary": answer.summary,
    }


def fact(item: ProposedFact) -> Row:
    return (
        {"text": item.text} | ({"type": item.type} if item.type else {}) | ({"tags": [*item.tags]} if item.tags else {})
    )


def new(item: ProposedFact) -> Row:
    kind = item.kind() if item.type else Kind.OTHER
    return {"text": item.text, "scope": item.visibility(Visibility.PROJECT).value, "category": kind.value}


def fits(row: Row) -> bool:
    answer = read(row)
    if row.get("accept_any"):
        return True
    got = in_the_words_of_the_file(answer)
    wanted = [row["expect"], *row.get("accept", [])]
    compared = [
        {key: value for key, value in want.items() if key not in ("reason", "consume_input")} for want in wanted
    ]
    if got not in compared:
        return False
    dropped = answer.dropped if isinstance(answer, ProposedFacts) else None
    skipped = answer.skipped if isinstance(answer, Proposals) else None
    return dropped in (None, row.get("dropped", dropped)) and skipped in (None, row.get("skipped", skipped))


def test_every_core_row_is_read_as_it_should_be() -> None:
    core = [row for row in rows() if row["tier"] == "core"]
    assert len(core) > 70
    assert [row["id"] for row in core if not fits(row)] == []


def test_every_extended_row_is_read_too() -> None:
    assert [row["id"] for row in rows() if row["tier"] == "extended" and not fits(row)] == []
