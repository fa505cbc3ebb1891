"""The plugin file in the real OpenCode, with a stub as its Python side: what reaches the model, and what never does."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from backstory.testing.opencode import OpenCode, wait_for
from backstory.testing.opencode_binary import OpenCodeMissing, find_opencode
from backstory.testing.opencode_server import Server
from backstory.testing.scripted_model import Request, ScriptedModel
from tests.e2e.stub import PLUGIN, UNAVAILABLE, Stub

pytestmark = pytest.mark.opencode

BIG_ATTACHMENT = "data:application/pdf;base64," + "A" * 200_000
HELPER_TITLE = f"backstory-helper rerank {'0123456789abcdef' * 2}"


@pytest.fixture(scope="module", autouse=True)
def binary() -> Path:
    try:
        return find_opencode()
    except OpenCodeMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Stub:
    return Stub(tmp_path_factory.mktemp("stub"))


@pytest.fixture(scope="module")
def opencode(tmp_path_factory: pytest.TempPathFactory, model: ScriptedModel, stub: Stub) -> OpenCode:
    opencode = OpenCode(tmp_path_factory.mktemp("opencode"), model.url, environ=_log_to(stub))
    opencode.install_plugin(PLUGIN, stub.sidecar())
    return opencode


@pytest.fixture(scope="module")
def project(opencode: OpenCode) -> Path:
    hostile = "raise SystemExit('imported from the project')"
    return opencode.project(files={"json.py": hostile, "pathlib.py": hostile})


@pytest.fixture(scope="module")
def shared_server(opencode: OpenCode, project: Path) -> Iterator[Server]:
    with opencode.serve(cwd=project) as server:
        yield server


@pytest.fixture
def server(shared_server: Server, model: ScriptedModel, stub: Stub) -> Iterator[Server]:
    """The one server most tests share, with a clean script and record."""
    model.forget_rules()
    model.forget_requests()
    stub.script()
    yield shared_server
    stub.script()


@pytest.fixture
def fresh(tmp_path: Path, model: ScriptedModel) -> Callable[..., tuple[OpenCode, Stub]]:
    """Makes an OpenCode of its own, with its own stub, for tests that need another installation."""

    def make(**sidecar: object) -> tuple[OpenCode, Stub]:
        (tmp_path / "stub").mkdir()
        stub = Stub(tmp_path / "stub")
        opencode = OpenCode(tmp_path / "opencode", model.url, environ=_log_to(stub))
        opencode.install_plugin(PLUGIN, stub.sidecar(**sidecar))  # type: ignore[arg-type]  # deadlines and a command
        return opencode, stub

    model.forget_rules()
    model.forget_requests()
    return make


def _log_to(stub: Stub) -> dict[str, str]:
    return {"BACKSTORY_PLUGIN_LOG": str(stub.folder / "plugin.log")}


def _blocks(request: Request) -> list[str]:
    return [text.partition("<memory>")[2].partition(" ")[0] for text in request.texts("user") if "<memory>" in text]


def _chat(model: ScriptedModel, session: str) -> list[Request]:
    return model.requests("chat", session=session)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_tools_appear_with_the_schema_of_the_manifest(server: Server, model: ScriptedModel) -> None:
    session = server.create_session()
    server.prompt(session, "hello")
    tools = _chat(model, session)[0].tools()
    parameters = tools["memory_recall"]["parameters"]
    assert tools["memory_recall"]["description"] == "Search what is remembered."
    assert parameters["required"] == ["query"]
    assert set(parameters["properties"]) == {"query", "limit"}
    assert "required" not in tools["memory_big"]["parameters"] or not tools["memory_big"]["parameters"]["required"]


def test_a_tool_call_carries_session_message_and_arguments_and_returns_the_output(
    server: Server, model: ScriptedModel, stub: Stub
) -> None:
    model.when(last_role="user").call("memory_recall", query="Größe \u2028 \\n")
    session = server.create_session()
    server.prompt(session, "look it up")
    call = stub.heard("tool", session=session)[-1]["params"]
    assert call["arguments"] == {"query": "Größe \u2028 \\n"}
    assert call["name"] == "memory_recall"
    assert call["message"].startswith("msg_")
    assert call["call"]
    assert call["agent"] == "build"
    assert _chat(model, session)[-1].texts("tool")[0].startswith('memory_recall got {"query"')
    part = next(p for m in server.messages(session) for p in m["parts"] if p["type"] == "tool")
    assert part["state"]["title"] == "Done"
    assert part["state"]["metadata"]["n"] == 1


def test_an_answer_of_more_than_a_megabyte_arrives(server: Server, model: ScriptedModel) -> None:
    model.when(last_role="user").call("memory_big")
    session = server.create_session()
    server.prompt(session, "say a lot")
    result = _chat(model, session)[-1].texts("tool")[0]
    assert "1500000 bytes truncated" in result, "all of it arrived, and OpenCode itself cut it for the model"


def test_a_tool_says_that_memory_is_away_when_the_bridge_fails(
    server: Server, model: ScriptedModel, stub: Stub
) -> None:
    model.when(last_role="user").call("memory_recall", query="x")
    stub.script(tool="error")
    session = server.create_session()
    assert server.say(session, "look it up") == "ok"
    assert _chat(model, session)[-1].texts("tool") == [UNAVAILABLE]


def test_a_block_stands_beside_its_message_only_and_is_repeated_byte_for_byte(
    server: Server, model: ScriptedModel, stub: Stub
) -> None:
    session = server.create_session()
    for text in ("recall apples", "nothing to see", "recall pears", "and now?"):
        server.prompt(session, text)
    requests = _chat(model, session)
    assert [_blocks(request) for request in requests] == [
        ["apples"],
        ["apples"],
        ["apples", "pears"],
        ["apples", "pears"],
    ]
    assert all(later.extends(earlier) for earlier, later in pairwise(requests))
    assert not stub.heard("blocks", session=session), "what the process knows is not asked for"
    stored = json.dumps(server.messages(session))
    assert "<memory>" not in stored, "the host's own history stays as it was"


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


def test_the_snapshot_is_one_system_text_asked_for_once_and_titles_get_nothing(
    server: Server, model: ScriptedModel, stub: Stub
) -> None:
    session = server.create_session(title=None)
    server.prompt(session, "recall plums")
    server.prompt(session, "go on")
    assert wait_for(lambda: model.requests("title"))
    assert all("SNAPSHOT" not in r.all_text() and "<memory>" not in r.all_text() for r in model.requests("title"))
    first, second = _chat(model, session)
    assert first.texts("system")[-1].startswith("SNAPSHOT")
    assert len(first.texts("system")) == 2
    assert second.extends(first)
    assert len(stub.heard("snapshot", session=session)) == 1


def test_compaction_reads_the_plain_conversation_and_then_the_snapshot_is_renewed(
    server: Server, model: ScriptedModel, stub: Stub
) -> None:
    session = server.create_session()
    server.prompt(session, "recall cherries")
    server.prompt(session, "recall grapes")
    before = _chat(model, session)[-1]
    server.compact(session)
    request = model.requests("compaction")[-1]
    assert "<memory>" not in request.all_text()
    assert "SNAPSHOT" not in request.all_text()
    assert request.all_text().rstrip().endswith("STUB CONTEXT")
    assert wait_for(lambda: stub.events(session, "session.compacted"))
    server.prompt(session, "recall figs")
    server.prompt(session, "and then")
    after, last = _chat(model, session)[-2:]
    assert "figs" in _blocks(after)
    assert last.extends(after)
    assert after.texts("system")[-1].startswith("SNAPSHOT")
    assert after.texts("system")[-1] != before.texts("system")[-1]


def test_the_snapshot_is_renewed_when_the_host_compacts_in_the_middle_of_a_turn(
    server: Server, model: ScriptedModel
) -> None:
    model.when(said="too much", times=1).say("a long answer", prompt_tokens=199_500)
    session = server.create_session()
    server.prompt(session, "recall apricots")
    server.prompt(session, "this is too much")
    server.prompt(session, "go on")
    requests = _chat(model, session)
    snapshots = [request.texts("system")[-1] for request in requests]
    assert model.requests("compaction", session=session)
    assert all(text.startswith("SNAPSHOT") for text in snapshots)
    assert len(set(snapshots)) == 2, "one before and one after"
    assert all("<memory>" not in r.all_text() for r in model.requests("compaction"))


def test_sub_agents_are_flagged_and_get_nothing(server: Server, model: ScriptedModel, stub: Stub) -> None:
    task = {"description": "look", "prompt": "recall melons", "subagent_type": "general"}
    model.when(said="delegate", last_role="user").call("task", **task)
    session = server.create_session()
    server.prompt(session, "please delegate")
    child = stub.heard("chat.message", child=True)[-1]["params"]
    assert child["parent"] == session
    assert child["session"] != session
    requests = _chat(model, child["session"])
    assert requests
    assert all("<memory>" not in r.all_text() and "SNAPSHOT" not in r.all_text() for r in requests)
    assert not stub.heard("snapshot", session=child["session"])
    assert all(event["child"] for event in stub.events(child["session"], "message.updated"))


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
        assert not any(_blocks(request) or "SNAPSHOT" in request.all_text() for request in _chat(model, session))
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
    assert _blocks(_chat(model, session)[0]) == ["walnuts"]


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


def test_without_a_strategy_nothing_is_asked_about_histories(server: Server, model: ScriptedModel, stub: Stub) -> None:
    session = server.create_session()
    for text in ("one", "two", "three"):
        server.prompt(session, text)
    assert "one" in _chat(model, session)[-1].all_text()
    assert stub.heard("snapshot", session=session)
    assert "system" not in stub.heard("snapshot", session=session)[0]["params"]
    assert not stub.heard("history"), "in none of the sessions so far"


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


def test_a_late_block_is_reported_as_dropped_and_never_shown(server: Server, model: ScriptedModel, stub: Stub) -> None:
    session = server.create_session()
    stub.script(chat_message="slow:1500")
    server.prompt(session, "recall dates")
    stub.script()
    assert wait_for(lambda: stub.heard("dropped", session=session))
    server.prompt(session, "go on")
    assert [_blocks(request) for request in _chat(model, session)] == [[], []]


def test_a_hanging_bridge_costs_no_more_than_the_deadlines(server: Server, model: ScriptedModel, stub: Stub) -> None:
    session = server.create_session()
    stub.script(chat_message="hang", snapshot="hang", blocks="hang")
    durations = []
    for text in ("recall one", "recall two", "recall three", "recall four"):
        started = time.monotonic()
        assert server.say(session, text) == "ok"
        durations.append(time.monotonic() - started)
    assert max(durations) < 20, durations
    stub.script()
    server.prompt(session, "recall five")
    last = _chat(model, session)[-1]
    assert _blocks(last) == ["five"]
    assert "SNAPSHOT" not in last.all_text(), "after three failures the session goes without, until a compaction"


def test_garbage_between_answers_does_no_harm(server: Server, model: ScriptedModel, stub: Stub) -> None:
    session = server.create_session()
    stub.script(snapshot="garbage")
    assert server.say(session, "recall limes") == "ok"
    assert "SNAPSHOT" not in _chat(model, session)[0].all_text()
    stub.script()
    server.prompt(session, "recall lemons")
    first, second = _chat(model, session)
    assert (_blocks(first), _blocks(second)) == (["limes"], ["limes", "lemons"])
    assert "SNAPSHOT" in second.all_text(), "no answer yet: it is asked for again"


def test_a_crashed_bridge_is_started_again_after_a_pause(server: Server, model: ScriptedModel, stub: Stub) -> None:
    for pause_s in (1.0, 5.0, 30.0):  # from one crash to the next they grow, so that a busy machine is in time at last
        session = server.create_session()
        server.prompt(session, "recall kiwis")
        stub.script(chat_message="crash")
        assert server.say(session, "recall never") == "ok"
        crashed_at = stub.heard("chat.message")[-1]["at"]
        stub.script()
        started = len(stub.heard("started"))
        assert server.say(session, "recall too soon") == "ok"
        if time.time() - crashed_at < pause_s:
            break
    time.sleep(pause_s + 0.1)
    assert server.say(session, "recall mangos") == "ok"
    assert len(stub.heard("started")) == started + 1
    assert [_blocks(request) for request in _chat(model, session)][-1] == ["kiwis", "mangos"]
    reborn = stub.heard("started")[-1]["pid"]
    assert [m for m in stub.heard("hello", directory=str(server.directory)) if m["pid"] == reborn]


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


def test_blocks_survive_a_restart_unchanged_and_the_child_never_outlives_the_host(
    opencode: OpenCode, project: Path, model: ScriptedModel, stub: Stub
) -> None:
    model.forget_rules()
    stub.script()
    with opencode.serve(cwd=project) as server:
        session = server.create_session()
        for text in ("recall sage", "without", "recall thyme"):
            server.prompt(session, text)
        pid = stub.heard("chat.message", session=session)[-1]["pid"]
        server.close(signal.SIGKILL)
    assert wait_for(lambda: not _is_running(pid)), "it ends when its input ends"
    stub.script(snapshot="error")  # a snapshot is the bridge's to repeat; here only blocks are compared
    done = opencode.run("recall mint", cwd=project, session=session)
    stub.script()
    assert done.exit_code == 0, done.stderr
    before, after = _chat(model, session)[-2:]
    assert [m for m in after.messages if m["role"] == "user"][:3] == [m for m in before.messages if m["role"] == "user"]
    assert _blocks(after) == ["sage", "thyme", "mint"]
    assert len(stub.heard("blocks", session=session)) == 1
    assert stub.heard()[-1]["method"] == "ended", "`run` disposes: the bridge sees goodbye and the end of input"
    assert stub.heard()[-2]["method"] == "goodbye"


def test_a_missing_program_leaves_opencode_as_it_is(
    fresh: Callable[..., tuple[OpenCode, Stub]], model: ScriptedModel
) -> None:
    opencode, _ = fresh(command=["/nowhere/python", "-m", "backstory", "bridge"])
    model.when(last_role="user").call("memory_recall", query="x")
    done = opencode.run("hello", cwd=opencode.project())
    assert (done.exit_code, done.text) == (0, "ok")
    assert model.requests("chat")[-1].texts("tool") == [UNAVAILABLE]


def test_two_copies_of_the_plugin_act_once(fresh: Callable[..., tuple[OpenCode, Stub]], model: ScriptedModel) -> None:
    opencode, stub = fresh()
    project = opencode.project()
    opencode.install_plugin(PLUGIN, stub.sidecar(), below=project / ".opencode", name="copy.js")
    done = opencode.run("recall twins", cwd=project)
    assert (done.exit_code, done.text) == (0, "ok")
    request = model.requests("chat")[-1]
    assert request.all_text().count("<memory>") == 1
    assert request.tool_names().count("memory_recall") == 1
    assert len(stub.heard("hello")) == len(stub.heard("started")) == len(stub.heard("chat.message")) == 1


def test_a_frozen_bridge_is_replaced_and_one_of_another_protocol_is_left_alone(
    fresh: Callable[..., tuple[OpenCode, Stub]], model: ScriptedModel
) -> None:
    opencode, stub = fresh(silence=600)
    with opencode.serve(cwd=opencode.project()) as server:
        session = server.create_session()
        stub.script(chat_message="freeze")
        assert server.say(session, "recall frost") == "ok"
        assert server.say(session, "recall ice") == "ok"
        frozen = stub.heard("started")[0]["pid"]
        assert wait_for(lambda: not _is_running(frozen))
        stub.script()
        time.sleep(1.1)
        assert server.say(session, "recall thaw") == "ok"
        assert "thaw" in _blocks(_chat(model, session)[-1])

        stub.script(protocol=2)
        os.kill(stub.heard("started")[-1]["pid"], signal.SIGKILL)
        time.sleep(5.1)
        for _ in range(2):
            assert server.say(session, "recall nothing") == "ok"
        assert "nothing" not in _blocks(_chat(model, session)[-1])
        assert len(stub.heard("started")) == 3, "it is not tried again"


def test_without_a_sidecar_the_plugin_does_nothing(tmp_path: Path, model: ScriptedModel) -> None:
    model.forget_rules()
    opencode = OpenCode(tmp_path, model.url)
    opencode.install_plugin(PLUGIN, None)
    done = opencode.run("hello", cwd=opencode.project(git=False))
    assert (done.exit_code, done.text) == (0, "ok")
    assert "memory_recall" not in model.requests("chat")[-1].tool_names()
