"""What a tool part tells, and whose tool it was."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from backstory.domain.conversation import Part
from backstory.domain.ids import PartId
from backstory.domain.tool_parts import is_own_tool, tool_use


def tool_part(state: Mapping[str, object], text: str = "", *, kind: str = "tool", tool: str | None = "bash") -> Part:
    return Part(id=PartId("prt_1"), kind=kind, text=text, tool=tool, detail=json.dumps({"state": state}))


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("memory_recall", True),
        ("backstory_memory_remember", True),
        ("mcp__backstory__memory_recall", True),
        ("Session_Recall", True),
        ("om_search", True),
        ("search_memory_tree", True),
        ("check_memory_usage", False),
        ("memory", False),
        ("zoom_in", False),
        ("bash", False),
    ],
)
def test_our_own_tools_are_known_by_their_names(name: str, ours: bool) -> None:
    assert is_own_tool(name) is ours


def test_a_part_of_another_kind_is_no_use_of_a_tool() -> None:
    assert tool_use(tool_part({}, kind="text", tool=None)) is None


@pytest.mark.parametrize(
    ("state", "unfinished", "failed"),
    [
        ({"status": "pending"}, True, False),
        ({"status": "running"}, True, False),
        ({"status": "completed", "metadata": {"exit": 0}}, False, False),
        ({"status": "completed", "metadata": {"exit": 2}}, False, True),
        ({"status": "completed", "metadata": {"exit": True}}, False, False),
        ({"status": "error", "error": "aborted"}, False, True),
        ({}, False, False),
    ],
)
def test_how_a_call_ended_is_told(state: dict[str, object], unfinished: bool, failed: bool) -> None:
    use = tool_use(tool_part(state))
    assert use is not None
    assert (use.unfinished, use.failed) == (unfinished, failed)


def test_an_error_that_stands_for_the_output_is_told_once() -> None:
    use = tool_use(tool_part({"status": "error", "error": "aborted"}, "aborted"))
    assert use is not None
    assert (use.output, use.error) == ("", "aborted")
