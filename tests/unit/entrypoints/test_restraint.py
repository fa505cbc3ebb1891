"""An argument that asks for less to happen: done where the tool can, else refused; never passed over."""

from __future__ import annotations

from typing import Any

import pytest

from backstory.config.serving import Toolset
from backstory.domain.memory import Memory
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.entrypoints.drive import drive
from backstory.entrypoints.tools import TOOLSETS, Tool, tools_of
from backstory.entrypoints.tools.restraint import asks_for_less
from backstory.entrypoints.tools.tool import Effect
from tests.toolbox import HERE, Toolbox

RECORD = '{"ts":"2026-01-02T03:04:05Z","type":"decision","scope":"harbour","content":"Cranes are painted yellow."}'
WRITING = [(name, tool) for name in TOOLSETS for tool in tools_of(name) if tool.effect is not Effect.READS]
READING = [(name, tool) for name in TOOLSETS for tool in tools_of(name) if tool.effect is Effect.READS]
SWITCHES = ("dryRun", "dry_run", "dry-run", "DRY_RUN", "preview", "_dry_run")
Sent = dict[str, Any]  # Any: a model's arguments


def stored(box: Toolbox) -> list[Memory]:
    viewer = Viewer(project=HERE, audience=Audience.PERSON)
    selection = Selection(viewer=viewer, now=box.app.clock.now(), states=EVERY_STATE)
    return list(drive(box.app.backend.memories.select(selection, limit=100)))


def enough(tool: Tool) -> Sent:
    """What the tool needs at least, so that nothing else stops it."""
    texts: Sent = {
        "data": RECORD, "content": "The lock gates open at high water.", "fact": "The lock gates open at high water.",
        "type": "decision", "scope": "harbour", "reason": "asked", "verdict": "useful", "old": "a", "new": "b", "id": 1,
        "node_id": "n",
    }  # fmt: skip
    if tool.name == "memory_remember" and "issue" not in tool.arguments.model_fields:
        texts["type"] = "project_fact"
    return {name: texts[name] for name, field in tool.arguments.model_fields.items() if field.is_required()}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((switch, True) for switch in SWITCHES),
        ("dry run", "true"), ("dryRun", 1), ("dryRun", "maybe"), ("confirm", False), ("confirmed", "no"), ("apply", 0),
        ("limit", 5), ("maxRecords", 2), ("only", ["a"]), ("excludeTags", "x"), ("skip_existing", True),
        ("mode", "dry-run"), ("mode", "Preview"), ("sensitivity", "local-only"), ("visibility", "session"),
        ("private", True), ("ttl", 3600), ("expiresAt", "2027-01-01"), ("options", {"dryRun": True}),
        ("options", {"deep": {"preview": "yes"}}), ("tier", "temporary"), ("local_only", True), ("scope", "session"),
        ("confirm", "0"), ("limit", 0), ("source", "preview"), ("expires", "tomorrow"),
        ("filter", {"type": "fact"}),
    ],
)  # fmt: skip
def test_what_asks_for_less_is_seen(name: str, value: object) -> None:
    assert asks_for_less(name, value, of_many=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dryRun", False), ("dry_run", "false"), ("preview", 0), ("dryRun", None), ("dryRun", ""), ("confirm", True),
        ("confirm", None), ("limit", None), ("exclude", []), ("skip_existing", False), ("mode", "fast"),
        ("priority", 1), ("source", "chat"), ("importance", "high"), ("options", {"dryRun": False}), ("options", {}),
        ("unknown_field", 1), ("note", "a preview of what is to come"), ("_meta", {"progressToken": 1}),
        ("_meta", {"limit": 1}), ("private", False), ("private", "0"), ("timeout", 30), ("ttl", 0), ("skip", 0),
        ("expires", "never"), ("visibility", "Project"), ("sensitivity", "normal"), ("source", "session"),
        ("environment", "local"), ("global", False), ("limit", False),
    ],
)  # fmt: skip
def test_what_asks_for_nothing_of_the_kind_is_harmless(name: str, value: object) -> None:
    assert not asks_for_less(name, value, of_many=True)


def test_an_argument_without_a_bottom_is_looked_into_only_so_far() -> None:
    bottomless: Sent = {}
    bottomless["again"] = bottomless
    assert not asks_for_less("options", bottomless, of_many=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("limit", 10), ("top_k", 5), ("maxTokens", 1000), ("count", 1), ("metadata", {"count": 3, "source": "session"})],
)
def test_an_amount_bounds_nothing_where_there_is_but_one_thing(name: str, value: object) -> None:
    assert not asks_for_less(name, value, of_many=False)
    box = Toolbox("default")
    sent: Sent = {name: value}
    answer = box.answer("memory_remember", content="Tides are read at noon.", **sent)
    assert f"{name}.)" in answer.text
    assert [memory.content for memory in stored(box)] == ["Tides are read at noon."]


@pytest.mark.parametrize(("toolset", "tool"), WRITING, ids=lambda item: item if isinstance(item, str) else item.name)
@pytest.mark.parametrize("sent", [{"private": True}, {"confirm": False}, {"mode": "preview"}, {"expiresAt": "2030"}])
def test_a_call_that_is_refused_stores_nothing(toolset: Toolset, tool: Tool, sent: Sent) -> None:
    box = Toolbox(toolset)
    if next(iter(sent)) in tool.arguments.model_fields:
        pytest.skip(f"{tool.name} has that argument")
    before = stored(box)
    answer = box.answer(tool.name, **{**enough(tool), **sent})
    assert (answer.failed, stored(box)) == (True, before)


@pytest.mark.parametrize("switch", ["dryRun", "preview", "_dry_run"])
@pytest.mark.parametrize(
    ("toolset", "tool"), WRITING, ids=lambda item: item if isinstance(item, str) else getattr(item, "name", None)
)
def test_no_tool_of_any_set_does_anything_where_a_dry_run_is_asked_for(
    toolset: Toolset, tool: Tool, switch: str
) -> None:
    box = Toolbox(toolset)
    box.state("Buoys are counted on Fridays.")
    before = stored(box)
    answer = box.answer(tool.name, **{**enough(tool), switch: True})
    assert stored(box) == before
    if not any(name in tool.arguments.model_fields for name in ("dryRun", "dry_run")) or switch == "_dry_run":
        assert answer.failed
        assert f"{tool.name} has no argument {switch}" in answer.text
        assert all(name in answer.text for name in enough(tool))
    else:
        assert not answer.failed, answer.text


@pytest.mark.parametrize(("toolset", "tool"), READING, ids=lambda item: item if isinstance(item, str) else item.name)
def test_a_tool_that_only_reads_goes_on_and_says_what_it_passed_over(toolset: Toolset, tool: Tool) -> None:
    told = Toolbox(toolset).answer(tool.name, **{**enough(tool), "dryRun": True})
    assert "Ignored" in told.text
    assert "dryRun" in told.text


@pytest.mark.parametrize(
    "sent", [{"confirm": False}, {"limit": 1}, {"options": {"dry_run": True}}, {"mode": "preview"}]
)
def test_an_import_that_should_be_bounded_is_refused_whole(sent: Sent) -> None:
    box = Toolbox("git-memory")
    answer = box.answer("memory_import", data=RECORD, **sent)
    assert answer.failed
    assert f"no argument {next(iter(sent))} (it takes data, format, dryRun)" in answer.text
    assert not stored(box)


@pytest.mark.parametrize("switch", ["dryRun", "dry_run", "dry-run", "preview", "simulate"])
def test_an_import_is_tried_without_taking_anything_in(switch: str) -> None:
    box = Toolbox("git-memory")
    asked: Sent = {switch: "true"}
    assert box.say("memory_import", data=RECORD, **asked) == "Would import 1 memory(s)"
    assert not stored(box)
    assert box.say("memory_import", data=RECORD, **(asked | {switch: False})) == "Imported 1 memory(s)"
    assert "1 were here already" in box.say("memory_import", data=RECORD, **asked)


def test_of_two_spellings_of_a_dry_run_the_one_that_asks_for_it_counts() -> None:
    box = Toolbox("git-memory")
    assert box.say("memory_import", data=RECORD, dryRun=False, dry_run=True).startswith("Would import 1")


def test_harmless_names_are_still_passed_over_where_something_is_added() -> None:
    box = Toolbox("default")
    answer = box.answer("memory_remember", content="Tides are read at noon.", priority=3, dryRun=False)
    assert not answer.failed
    assert "priority, dryRun" in answer.text
