"""What the Python side is told of prompts, events, files and directories, and what it may ask of the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backstory.testing.opencode import OpenCode, wait_for
from backstory.testing.opencode_server import Server
from backstory.testing.scripted_model import Request, ScriptedModel
from tests.e2e.stub import Stub, blocks_of

pytestmark = pytest.mark.opencode

BIG_ATTACHMENT = "data:application/pdf;base64," + "A" * 200_000
HELPER_TITLE = f"backstory-helper rerank {'0123456789abcdef' * 2}"


def _chat(model: ScriptedModel, session: str) -> list[Request]:
    return model.requests("chat", session=session)


def test_a_prompt_is_reported_with_its_text_and_its_parts(server: Server, stub: Stub) -> None:
    session = server.create_session()
    parts = [
        {"type": "text", "text": "first"},
        {"type": "text", "text": "not mine", "synthetic": True},
        {"type": "text", "text": "only for show", "ignored": True},
        {"type": "text", "text": "second"},
    ]
    server.prompt(session, "", parts=parts)
    heard = stub.heard("chat.message", session=session)[0]["params"]
    assert heard["text"] == "first\nsecond"
    assert heard["agent"] == "build"
    assert heard["directory"] == str(server.directory)
    assert [(p["text"], p.get("synthetic", False), p.get("ignored", False)) for p in heard["parts"]] == [
        ("first", False, False),
        ("not mine", True, False),
        ("only for show", False, True),
        ("second", False, False),
    ]
    assert "child" not in heard


def test_of_our_own_helper_sessions_python_is_told_nothing(server: Server, stub: Stub, model: ScriptedModel) -> None:
    marked = server.create_session(title=HELPER_TITLE)
    by_agent = server.create_session()
    for session in (marked, by_agent):
        server.prompt(session, "recall nuts", agent="backstory-helper")
    server.delete_session(marked)
    last = server.create_session()
    server.prompt(last, "recall nuts")
    assert wait_for(lambda: stub.events(last, "session.idle"))
    assert [m["params"]["session"] for m in stub.heard("chat.message") if "nuts" in m["params"]["text"]] == [last]
    for session in (marked, by_agent):
        assert {event["type"] for event in stub.events(session)} <= {"session.created", "session.updated"}
        assert not any(blocks_of(request) or "SNAPSHOT" in request.all_text() for request in _chat(model, session))
    assert not stub.events(marked)


@pytest.mark.parametrize("title", ["backstory-helper sessions: why is the sweep late?", HELPER_TITLE])
def test_a_session_is_the_user_s_by_what_is_said_in_it_whatever_its_title(
    server: Server, stub: Stub, model: ScriptedModel, title: str
) -> None:
    session = server.create_session(title=title)
    server.prompt(session, "recall walnuts")
    assert wait_for(lambda: stub.events(session, "session.idle"))
    assert stub.heard("chat.message", session=session)
    assert not stub.heard("chat.message", session=session, child=True)
    assert [event["type"] for event in stub.events(session)].count("message.updated") >= 2
    assert blocks_of(_chat(model, session)[0]) == ["walnuts"]


@pytest.mark.parametrize(
    "title", ["A backstory-helper of mine", "backstory-helper sessions: why is the sweep late?", HELPER_TITLE]
)
def test_a_session_of_the_user_is_never_discarded(server: Server, stub: Stub, title: str) -> None:
    answered = len(_discards(stub))
    session = server.create_session(title=title)
    server.prompt(session, "ask host.discard")
    server.prompt(session, "ask host.discard", agent="backstory-helper")
    server.prompt(session, "ask host.discard")
    assert wait_for(lambda: len(_discards(stub)) == answered + 3)
    assert all("not a stray session of ours" in answer["error"]["message"] for answer in _discards(stub)[answered:])
    assert server.messages(session)


def _discards(stub: Stub) -> list[dict[str, Any]]:
    return [message for message in stub.heard() if message.get("id") == "stub-host.discard"]


def test_events_arrive_once_settled_and_where_none_are_kept_without_attachments(
    server: Server, model: ScriptedModel, stub: Stub
) -> None:
    model.when(last_role="user").call("memory_recall", query="x")
    session = server.create_session()
    paper = {"type": "file", "mime": "application/pdf", "filename": "a.pdf", "url": BIG_ATTACHMENT}
    server.prompt(session, "", parts=[{"type": "text", "text": "look at this"}, paper])
    assert wait_for(lambda: stub.events(session, "session.idle"))
    parts = [event["properties"]["part"] for event in stub.events(session, "message.part.updated")]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    assert texts.count("ok") == 1, "an assistant's text comes when it has ended"
    assert "" not in texts
    assert texts.count("look at this") >= 1
    assert [part["state"]["status"] for part in parts if part["type"] == "tool"] == ["completed"]
    assert [(part["url"], part["cut"]) for part in parts if part["type"] == "file"] == [(None, True)]
    assert stub.events(session, "session.created")
    assert any(e["properties"]["info"]["role"] == "assistant" for e in stub.events(session, "message.updated"))
    server.delete_session(session)
    assert wait_for(lambda: stub.events(session, "session.deleted"))


def test_attachments_that_are_kept_arrive_and_what_does_not_fit_is_marked_in_events_and_histories(
    fresh: Callable[..., tuple[OpenCode, Stub]],
) -> None:
    opencode, stub = fresh()
    stub.script(attachment=3_000_000)
    head = "data:application/pdf;base64,"
    cut = (None, True)
    urls = [head + letter * 2_900_000 for letter in "ABCD"] + [head + "E" * 3_000_000, head + "F" * 900, head]
    files = [{"type": "file", "mime": "application/pdf", "filename": "a.pdf", "url": url} for url in urls]
    with opencode.serve(cwd=opencode.project()) as server:
        session = server.create_session()
        server.prompt(session, "", parts=[{"type": "text", "text": "look at this"}], noReply=True)
        for file in files:
            server.prompt(session, "", parts=[file], noReply=True)
        assert wait_for(lambda: len(_told_files(stub, session)) == len(files))
        assert _told_files(stub, session) == [*_whole(urls[:4]), cut, *_whole(urls[5:])], "an empty file is not cut"
        server.prompt(session, "ask host.messages", noReply=True)
        assert wait_for(lambda: [m for m in stub.heard() if m.get("id") == "stub-host.messages"])
    (answer,) = (message for message in stub.heard() if message.get("id") == "stub-host.messages")
    parts = [message["parts"][0] for message in answer["result"][1:8]]
    told = [*_whole(urls[:2]), cut, cut, cut, *_whole(urls[5:])]
    assert [(part["url"], part.get("cut", False)) for part in parts] == told


def _whole(urls: list[str]) -> list[tuple[str | None, bool]]:
    return [(url, False) for url in urls]


def _told_files(stub: Stub, session: str) -> list[tuple[str | None, bool]]:
    parts = [event["properties"]["part"] for event in stub.events(session, "message.part.updated")]
    return [(part["url"], part.get("cut", False)) for part in parts if part["type"] == "file"]


def test_a_file_that_a_tool_gave_is_marked_too(server: Server, project: Path, model: ScriptedModel, stub: Stub) -> None:
    (project / "plan.pdf").write_bytes(b"%PDF-1.4\n" + b"x" * 20_000)
    model.when(said="read the plan", times=1).call("read", filePath=str(project / "plan.pdf"))
    session = server.create_session()
    server.prompt(session, "read the plan")
    assert wait_for(lambda: stub.events(session, "session.idle"))
    parts = [event["properties"]["part"] for event in stub.events(session, "message.part.updated")]
    (call,) = (part for part in parts if part["type"] == "tool")
    assert [(file["url"], file["cut"]) for file in call["state"]["attachments"]] == [(None, True)]


def test_the_bridge_can_read_the_session_and_the_list_of_sessions(server: Server, stub: Stub) -> None:
    session = server.create_session()
    server.prompt(session, "first")
    methods = ("host.messages", "host.sessions", "host.nonsense")
    for method in methods:
        server.prompt(session, f"ask {method}")
    assert wait_for(lambda: {f"stub-{method}" for method in methods} <= {m.get("id") for m in stub.heard()})
    answers = {message["id"]: message for message in stub.heard() if "stub-" in str(message.get("id"))}
    assert answers["stub-host.messages"]["result"][0]["parts"][0]["text"] == "first"
    assert session in [info["id"] for info in answers["stub-host.sessions"]["result"]]
    assert answers["stub-host.nonsense"]["error"]["code"] == -32601


def test_two_directories_share_one_child_and_each_says_hello(
    server: Server, opencode: OpenCode, project: Path, stub: Stub
) -> None:
    other = opencode.worktree(project, "other")
    session = server.create_session(directory=other)
    server.prompt(session, "hello", directory=other)
    mine, theirs = (stub.heard("hello", directory=str(folder))[-1] for folder in (project, other))
    assert theirs["pid"] == stub.heard("chat.message", session=session)[0]["pid"] == stub.heard("started")[-1]["pid"]
    assert mine["params"]["project_id"] == theirs["params"]["project_id"]
    assert theirs["params"]["worktree"] == str(other)
    assert theirs["params"] | {"directory": "", "worktree": "", "project_id": "", "pid": 0} == {
        "protocol": 1,
        "plugin_version": "9.9.9",
        "api": 1,
        "directory": "",
        "worktree": "",
        "project_id": "",
        "pid": 0,
    }
    server.reload(directory=other)
    assert wait_for(lambda: stub.heard("goodbye", directory=str(other)))
    server.prompt(session, "again", directory=other)
    assert len(stub.heard("hello", directory=str(other))) == 2
    assert len(stub.heard("chat.message", session=session)) == 2


def test_the_bridge_imports_nothing_from_the_project(server: Server, project: Path, stub: Stub) -> None:
    server.prompt(server.create_session(), "hello")
    started = stub.heard("started")
    assert started
    assert all(start["safe_path"] and start["folder"] != str(project) for start in started)
