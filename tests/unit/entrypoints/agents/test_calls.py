"""What agents tell by their hooks: read strictly where it decides something, and never further than needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory.entrypoints.agents.calls import Event, GenericFormat, event_of
from backstory.entrypoints.agents.claude_code import ClaudeCodeFormat
from backstory.errors import InputError

# The shapes that Claude Code documents, filled with a session of our own.
COMMON = {
    "session_id": "5b0c1c1e-77d0-4a3e-9d20-0e2f6f4b9a11",
    "transcript_path": "/home/ann/.claude/projects/-home-ann-orchard/5b0c1c1e-77d0-4a3e-9d20-0e2f6f4b9a11.jsonl",
    "cwd": "/home/ann/orchard",
    "permission_mode": "default",
}
PROMPT = {**COMMON, "hook_event_name": "UserPromptSubmit", "prompt": "When is the press cleaned?"}


def test_a_prompt_of_claude_code_is_read() -> None:
    call = ClaudeCodeFormat().read(Event.PROMPT, PROMPT)
    assert (call.agent, call.session, call.text) == ("claude-code", COMMON["session_id"], PROMPT["prompt"])
    assert call.directory == Path("/home/ann/orchard")
    assert call.transcript == Path(COMMON["transcript_path"])
    assert not call.is_subagent


def test_a_prompt_has_the_same_id_each_time_it_is_told_and_another_has_another(tmp_path: Path) -> None:
    told = ClaudeCodeFormat()
    first = told.read(Event.PROMPT, {**PROMPT, "prompt_id": "a"}).message
    assert told.read(Event.PROMPT, {**PROMPT, "prompt_id": "a"}).message == first
    assert told.read(Event.PROMPT, {**PROMPT, "prompt_id": "b"}).message != first
    transcript = tmp_path / "t.jsonl"
    transcript.write_text("{}\n")
    grown = {**PROMPT, "transcript_path": str(transcript)}
    second = told.read(Event.PROMPT, grown).message
    assert told.read(Event.PROMPT, grown).message == second
    transcript.write_text("{}\n{}\n")
    assert told.read(Event.PROMPT, grown).message != second


def test_the_project_that_claude_code_names_wins_over_where_its_shell_went() -> None:
    assert ClaudeCodeFormat("/home/ann").read(Event.PROMPT, PROMPT).directory == Path("/home/ann")
    assert ClaudeCodeFormat("ann").read(Event.PROMPT, PROMPT).directory == Path("/home/ann/orchard")


@pytest.mark.parametrize(
    ("source", "renewed"), [("startup", False), ("resume", False), ("clear", True), ("compact", True)]
)
def test_a_session_that_starts_again_after_a_compaction_is_told_apart(source: str, renewed: bool) -> None:
    payload = {**COMMON, "hook_event_name": "SessionStart", "source": source, "model": "m"}
    assert ClaudeCodeFormat().read(Event.SESSION_START, payload).is_renewed is renewed


def test_a_sub_agents_prompt_is_told_apart() -> None:
    payload = {**PROMPT, "agent_id": "a1", "agent_type": "Explore"}
    assert ClaudeCodeFormat().read(Event.PROMPT, payload).is_subagent
    named = {**PROMPT, "agent_type": "reviewer"}  # a session that was started as this agent, by a person
    assert not ClaudeCodeFormat().read(Event.PROMPT, named).is_subagent


@pytest.mark.parametrize(
    "wrong",
    [
        {"session_id": None},
        {"session_id": 7},
        {"session_id": ""},
        {"session_id": "x" * 201},
        {"session_id": "a\nb"},
        {"prompt": ["x"]},
        {"cwd": "relative"},
        {"cwd": "/nul\0"},
        {"transcript_path": {"a": 1}},
        {"transcript_path": "relative.jsonl"},
        {"prompt_id": 3},
    ],
)
def test_what_is_wrong_is_refused_by_its_name(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError) as refused:
        ClaudeCodeFormat().read(Event.PROMPT, {**PROMPT, **wrong})
    assert refused.value.field == next(iter(wrong))


def test_half_a_character_is_replaced() -> None:
    assert ClaudeCodeFormat().read(Event.PROMPT, {**PROMPT, "prompt": "a\ud83d"}).text == "a?"


def test_the_answer_to_claude_code_adds_or_says_nothing() -> None:
    told = ClaudeCodeFormat()
    assert told.write(Event.PROMPT, "block") == {
        "hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "block"}
    }
    assert told.write(Event.SESSION_START, None) == {}
    assert told.write(Event.STOP, "block") == {}


def test_the_generic_form_names_what_it_needs() -> None:
    call = GenericFormat().read(
        Event.STOP, {"session": "s", "directory": "/p", "agent": "my-agent", "answer": "done", "subagent": True}
    )
    assert (call.agent, call.answer, call.is_subagent) == ("my-agent", "done", True)
    assert GenericFormat().read(Event.PROMPT, {"session": "s", "message": "m"}).message == "m"
    with pytest.raises(InputError, match="session"):
        GenericFormat().read(Event.PROMPT, {"prompt": "x"})
    with pytest.raises(InputError, match="agent"):
        GenericFormat().read(Event.PROMPT, {"session": "s", "agent": "import:x"})


def test_an_unknown_event_is_refused_with_those_that_there_are() -> None:
    assert event_of("pre-compact") is Event.PRE_COMPACT
    with pytest.raises(InputError, match="session-start"):
        event_of("UserPromptSubmit")
