"""A conversation as utterances: who said what, and where it came from."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from backstory.domain.conversation import Message, Part, Role
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.provenance import Origin
from backstory.domain.utterance import utterances

START = datetime(2026, 3, 2, 8, tzinfo=UTC)


def message(number: int, role: Role, *parts: Part, agent: str | None = None, removed: bool = False) -> Message:
    at = START + timedelta(minutes=number)
    return Message(
        id=MessageId(f"msg_{number}"),
        session=SessionId("ses_mill"),
        role=role,
        agent=agent,
        created_at=at,
        completed_at=at,
        removed_at=at if removed else None,
        parts=parts,
    )


def text(words: str, *, synthetic: bool = False, kind: str = "text") -> Part:
    return Part(id=PartId("prt_text"), kind=kind, text=words, synthetic=synthetic)


def tool(name: str, output: str, *, status: str = "completed", **given: object) -> Part:
    detail = json.dumps({"tool": name, "state": {"status": status, "input": given, "output": output}})
    return Part(id=PartId("prt_tool"), kind="tool", tool=name, text=output, detail=detail)


def told(*messages: Message) -> list[tuple[str, Origin, str]]:
    return [(one.message, one.origin, one.text) for one in utterances(messages)]


def test_a_users_typing_is_theirs_and_their_paste_is_a_files() -> None:
    said = told(message(1, Role.USER, text("grind finer\n```\nalways grind coarse\n```")))
    assert said == [
        ("msg_1", Origin.USER, "grind finer"),
        ("msg_1", Origin.FILE, "```\nalways grind coarse\n```"),
    ]


def test_an_assistants_fences_are_its_own_and_marked_as_code() -> None:
    found = utterances([message(1, Role.ASSISTANT, text("Set the gap:\n```\ngap = 3\n```\nDone."))])
    assert [(one.text, one.is_code) for one in found] == [("Set the gap:", False), ("gap = 3", True), ("Done.", False)]
    assert {one.origin for one in found} == {Origin.AGENT}


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        ("bash", Origin.TOOL),
        ("read", Origin.FILE),
        ("grep", Origin.FILE),
        ("webfetch", Origin.WEB),
        ("mcp_http_get", Origin.WEB),
        ("browser_navigate", Origin.WEB),
        ("threads_list", Origin.TOOL),
    ],
)
def test_what_a_tool_answers_is_outside_text(name: str, origin: Origin) -> None:
    found = utterances([message(1, Role.ASSISTANT, tool(name, "gap is 3"))])
    assert [(one.origin, one.text, one.tool) for one in found] == [(origin, "gap is 3", name)]


def test_what_a_tool_is_given_is_the_assistants() -> None:
    found = utterances([message(1, Role.ASSISTANT, tool("edit", "ok", filePath="mill.toml", newString="gap = 3", n=2))])
    assert [(one.origin, one.text, one.is_code) for one in found] == [
        (Origin.AGENT, "mill.toml\ngap = 3\n2", True),
        (Origin.TOOL, "ok", False),
    ]


def test_answers_of_our_own_tools_are_echoes_and_what_they_were_told_is_left_out() -> None:
    found = utterances([message(1, Role.ASSISTANT, tool("memory_recall", "gap is 3", query="gap"))])
    assert [(one.text, one.is_echo, one.origin) for one in found] == [("gap is 3", True, Origin.TOOL)]


def test_what_a_program_put_in_is_an_echo_of_outside_origin() -> None:
    found = utterances([message(1, Role.USER, text("Read mill.md: always grind coarse", synthetic=True), text("why?"))])
    assert [(one.origin, one.is_echo) for one in found] == [(Origin.FILE, True), (Origin.USER, False)]


def test_a_summary_that_the_host_wrote_is_an_echo() -> None:
    found = utterances([message(1, Role.ASSISTANT, text("The user wants gap 3."), agent="compaction")])
    assert [one.is_echo for one in found] == [True]


def test_our_blocks_are_gone() -> None:
    said = told(message(1, Role.USER, text("<backstory-memories>gap is 9</backstory-memories>grind finer")))
    assert said == [("msg_1", Origin.USER, "grind finer")]


def test_reasoning_unfinished_tools_and_messages_taken_back_are_left_out() -> None:
    assert not told(
        message(1, Role.USER, text("grind finer"), removed=True),
        message(2, Role.ASSISTANT, text("hm", kind="reasoning"), tool("bash", "", status="running")),
    )


def test_turns_are_counted_by_what_users_typed() -> None:
    found = utterances(
        [
            message(1, Role.ASSISTANT, text("hello")),
            message(2, Role.USER, text("grind")),
            message(3, Role.ASSISTANT, text("ground")),
            message(4, Role.USER, text("go on", synthetic=True)),
            message(5, Role.USER, text("again")),
        ]
    )
    assert [one.turn for one in found] == [0, 1, 1, 1, 2]


def test_in_a_sub_agents_session_another_agent_speaks_for_the_user() -> None:
    found = utterances([message(1, Role.USER, text("grind"))], typed_by=Origin.AGENT)
    assert [(one.origin, one.role) for one in found] == [(Origin.AGENT, Role.USER)]
