"""Claude Code's transcripts: what was said, by whom, in which session; whatever else stands in the files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.formats.claude_code.reader import ClaudeCodeTranscripts
from backstory.domain.conversation import Role, typed_text
from backstory.domain.interchange import ForeignMessages, ForeignRecord, Remark
from backstory.ports.formats import ReadLimits
from tests.unit.adapters.formats.foreign_records import messages, sessions, unreadable

Json = Any
MAIN = "0a6afc57-2f31-4cb4-8ff0-01247f50c64c"
FORK = "7c1f0d11-9c55-4f0e-a1aa-5be2b0a4c001"


def line(number: int, kind: str, content: Json, **more: Json) -> dict[str, Json]:
    """A line as Claude Code writes it; its uuid is made from its number."""
    message = {"role": kind, "content": content, **({"model": "m-1"} if kind == "assistant" else {})}
    return {
        "parentUuid": f"u{number - 1}" if number > 1 else None,
        "isSidechain": False,
        "type": kind,
        "uuid": f"u{number}",
        "sessionId": MAIN,
        "cwd": "/work/bakery",
        "timestamp": f"2026-03-01T10:00:{number:02d}.500Z",
        "message": message,
        **more,
    }


def text(said: str) -> Json:
    return [{"type": "text", "text": said}]


def call(number: str, name: str = "Bash") -> Json:
    return {"type": "tool_use", "id": number, "name": name, "input": {"command": "make test"}}


def result(number: str, said: Json, **more: Json) -> Json:
    return {"type": "tool_result", "tool_use_id": number, "content": said, **more}


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "own"))
    folder = tmp_path / "elsewhere" / "projects" / "-work-bakery"
    folder.mkdir(parents=True)
    return folder


def put(path: Path, *lines: Json) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    told = [each if isinstance(each, str) else json.dumps(each) for each in lines]
    path.write_text("\n".join(told) + "\n", encoding="utf-8")
    return path


def read(place: Path | str, limits: ReadLimits | None = None) -> list[ForeignRecord]:
    reader = ClaudeCodeTranscripts()
    limits = limits or ReadLimits()
    return [record for store in reader.find(str(place)) for record in reader.read(store, limits=limits)]


def remarks(records: list[ForeignRecord]) -> str:
    return "\n".join(record.text for record in records if isinstance(record, Remark))


def test_a_session_comes_with_its_folder_title_times_and_messages(projects: Path) -> None:
    put(
        projects / f"{MAIN}.jsonl",
        {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}},
        line(1, "user", "How hot is the oven?"),
        line(2, "assistant", [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]),
        line(3, "assistant", text("As hot as it gets.")),
        {"type": "summary", "summary": "The oven's heat", "leafUuid": "u3"},
    )
    records = read(projects.parent.parent)
    (session,) = sessions(records)
    assert (session.id, session.directory, session.title) == (MAIN, "/work/bakery", "The oven's heat")
    assert (session.created_at.second, session.updated_at.second, session.host) == (1, 3, "import:claude-code")
    asked, thought, answered = messages(records)
    assert (asked.role, typed_text(asked), asked.completed_at) == (Role.USER, "How hot is the oven?", asked.created_at)
    assert (thought.parts[0].kind, thought.parts[0].text, answered.model) == ("reasoning", "Hm.", "m-1")
    assert "1 file-history-snapshot" in remarks(records)
    assert not unreadable(records)


def test_a_tools_result_stands_beside_its_call(projects: Path) -> None:
    put(
        projects / f"{MAIN}.jsonl",
        line(1, "user", "Test it"),
        line(2, "assistant", [*text("Two at once."), call("a"), call("b", "Read")]),
        line(3, "user", [result("b", text("seven melons"))]),
        line(4, "user", [result("a", "2 failed", is_error=True)]),
        line(5, "user", [result("lost", "of a call that is nowhere"), *text("And now?")]),
        line(6, "assistant", [call("c")]),
    )
    records = messages(read(projects))
    assert [message.id for message in records] == ["u1", "u2", "u5", "u6"]
    _, first, second = records[1].parts
    assert (first.tool, first.text, json.loads(first.detail or "")["state"]["status"]) == ("Bash", "2 failed", "error")
    assert (second.tool, second.text) == ("Read", "seven melons")
    assert json.loads(second.detail or "")["state"]["input"] == {"command": "make test"}
    assert [part.text for part in records[2].parts] == ["of a call that is nowhere", "And now?"]
    assert typed_text(records[2]) == "And now?"
    assert records[3].completed_at is None, "its result may still come"


def test_what_a_program_put_there_is_nobodys_word(projects: Path) -> None:
    put(
        projects / f"{MAIN}.jsonl",
        line(1, "user", "Caveat: what follows is not for you", isMeta=True),
        line(2, "user", "<command-name>/clear</command-name>"),
        line(3, "user", text("[Request interrupted by user]")),
        {**line(4, "system", None), "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto"}},
        line(5, "user", "This session goes on from another.", isCompactSummary=True),
        line(6, "user", "Really typed"),
    )
    said = messages(read(projects))
    assert [typed_text(message) for message in said if message.role is Role.USER] == ["", "", "", "", "Really typed"]
    (boundary,) = [message for message in said if message.role is Role.SYSTEM]
    assert (boundary.parts[0].kind, boundary.parts[0].detail) == ("compaction", '{"trigger": "auto"}')


def test_sub_agents_are_sessions_of_their_own_wherever_their_lines_stand(projects: Path) -> None:
    put(
        projects / f"{MAIN}.jsonl",
        line(1, "user", "Ask somebody"),
        line(10, "user", "Count the melons", isSidechain=True, parentUuid=None),
        line(11, "assistant", text("Seven."), isSidechain=True),
        line(12, "assistant", text("They say seven.")),
    )
    put(projects / "agent-a1.jsonl", line(20, "user", "Weigh the flour", isSidechain=True, agentId="a1"))
    nested = projects / MAIN / "subagents" / "agent-b2.jsonl"
    put(nested, line(30, "user", "Taste the bread", isSidechain=True, agentId="b2"))
    records = read(projects)
    assert [(one.id, one.parent, one.title) for one in sessions(records)] == [
        (MAIN, None, "Ask somebody"),
        (f"{MAIN}.agent-u10", MAIN, "Count the melons"),
        (f"{MAIN}.agent-a1", MAIN, "Weigh the flour"),
        (f"{MAIN}.agent-b2", MAIN, "Taste the bread"),
    ]
    by_session = {message.session: message for message in messages(records)}
    assert len(messages(records)) == 6
    assert all(typed_text(by_session[one.id]) == "" for one in sessions(records)[2:]), "no person typed it"


def test_a_session_that_goes_on_from_another_repeats_nothing(projects: Path) -> None:
    shared = [line(1, "user", "Once"), line(2, "assistant", text("Only."))]
    old = put(projects / f"{MAIN}.jsonl", *shared)
    new = put(projects / f"{FORK}.jsonl", *shared, line(3, "user", "More"))
    os.utime(old, (1000, 1000))
    os.utime(new, (2000, 2000))
    records = read(projects)
    assert [(message.session, message.id) for message in messages(records)] == [
        (MAIN, "u1"),
        (MAIN, "u2"),
        (FORK, "u3"),
    ]
    assert "2 messages stand in two sessions" in remarks(records)


def test_only_transcripts_at_home_have_the_host_of_live_sessions(projects: Path, tmp_path: Path) -> None:
    put(tmp_path / "own" / "projects" / "-work" / f"{MAIN}.jsonl", line(1, "user", "Here"))
    put(projects / f"{FORK}.jsonl", line(1, "user", "There"))
    assert [(one.id, one.host) for one in sessions(read("claude-code"))] == [(MAIN, "claude-code")]
    assert [one.host for one in sessions(read(projects))] == ["import:claude-code"]


def test_damaged_and_hostile_lines_are_told_and_stop_nothing(projects: Path, tmp_path: Path) -> None:
    deep = '{"type": "user", "uuid": "u7", "message": ' + "[" * 100_000 + "]" * 100_000 + "}"
    path = put(
        projects / f"{MAIN}.jsonl",
        "",
        line(1, "user", "Kept"),
        "[1, 2]",
        "{broken",
        deep,
        line(2, "user", "x" * 300_000),
        {"type": "user", "uuid": "u\n3", "message": {"content": "odd id"}},
        {"type": "user", "uuid": "u4", "message": "no object", "timestamp": 5},
        {"type": "user", "uuid": "u5", "message": {"content": [None, 1, {"type": "hologram"}, {"type": "text"}]}},
        {"type": ["a"], "uuid": "u6"},
        {"type": "user", "uuid": "u8", "message": {"content": "undated"}, "timestamp": "yesterday"},
        '{"type": "user", "uuid": "u9", "mess',
    )
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    (projects / "notes.jsonl").write_text('{"a": 1}\n')
    (projects / f"{FORK}.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    before = path.read_bytes()
    records = read(projects, ReadLimits(record_bytes=250_000))
    assert [typed_text(message) for message in messages(records)] == ["Kept", "undated"]
    told = "\n".join(unreadable(records))
    assert len(unreadable(records)) == 5
    for number in (3, 4, 5, 6, 7):
        assert f"line {number}" in told
    assert "1 half-written last lines" in remarks(records)
    assert path.read_bytes() == before


def test_a_picture_is_a_file_that_holds_it(projects: Path) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    put(projects / f"{MAIN}.jsonl", line(1, "user", [{"type": "image", "source": source}, *text("See?")]))
    (message,) = messages(read(projects))
    assert json.loads(message.parts[0].detail or "") == {"mime": "image/png", "url": "data:image/png;base64,aGk="}


@pytest.mark.parametrize("content", ["", "{}\n", '{"type": "user"}\n', "words\n", '[{"type": "user"}]\n'])
def test_other_lines_of_json_are_no_transcript(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.jsonl").write_text(content)
    assert ClaudeCodeTranscripts().find(str(tmp_path)) == []
    assert ClaudeCodeTranscripts().find(str(tmp_path / "a.jsonl")) == []


def test_reading_twice_tells_the_same(projects: Path) -> None:
    put(projects / f"{MAIN}.jsonl", *(line(number, "user", f"Say {number}") for number in range(1, 60)))
    first = read(projects)
    assert first == read(projects)
    assert len(messages(first)) == 59
    assert [len(record.messages) for record in first if isinstance(record, ForeignMessages)] == [50, 9]
