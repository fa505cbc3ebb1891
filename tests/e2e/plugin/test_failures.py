"""What a bridge that is late, hangs, crashes or is not there costs the host: no answer, and few seconds."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backstory.testing.opencode import OpenCode, wait_for
from backstory.testing.opencode_server import Server
from backstory.testing.scripted_model import Request, ScriptedModel
from tests.e2e.stub import PLUGIN, UNAVAILABLE, Stub, blocks_of

pytestmark = pytest.mark.opencode


def _chat(model: ScriptedModel, session: str) -> list[Request]:
    return model.requests("chat", session=session)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_tool_says_that_memory_is_away_when_the_bridge_fails(
    server: Server, model: ScriptedModel, stub: Stub
) -> None:
    model.when(last_role="user").call("memory_recall", query="x")
    stub.script(tool="error")
    session = server.create_session()
    assert server.say(session, "look it up") == "ok"
    assert _chat(model, session)[-1].texts("tool") == [UNAVAILABLE]


def test_a_late_block_is_reported_as_dropped_and_never_shown(server: Server, model: ScriptedModel, stub: Stub) -> None:
    session = server.create_session()
    stub.script(chat_message="slow:1500")
    server.prompt(session, "recall dates")
    stub.script()
    assert wait_for(lambda: stub.heard("dropped", session=session))
    server.prompt(session, "go on")
    assert [blocks_of(request) for request in _chat(model, session)] == [[], []]


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
    assert blocks_of(last) == ["five"]
    assert "SNAPSHOT" not in last.all_text(), "after three failures the session goes without, until a compaction"


def test_garbage_between_answers_does_no_harm(server: Server, model: ScriptedModel, stub: Stub) -> None:
    session = server.create_session()
    stub.script(snapshot="garbage")
    assert server.say(session, "recall limes") == "ok"
    assert "SNAPSHOT" not in _chat(model, session)[0].all_text()
    stub.script()
    server.prompt(session, "recall lemons")
    first, second = _chat(model, session)
    assert (blocks_of(first), blocks_of(second)) == (["limes"], ["limes", "lemons"])
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
    assert [blocks_of(request) for request in _chat(model, session)][-1] == ["kiwis", "mangos"]
    reborn = stub.heard("started")[-1]["pid"]
    assert [m for m in stub.heard("hello", directory=str(server.directory)) if m["pid"] == reborn]


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
    assert blocks_of(after) == ["sage", "thyme", "mint"]
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
        assert "thaw" in blocks_of(_chat(model, session)[-1])

        stub.script(protocol=2)
        os.kill(stub.heard("started")[-1]["pid"], signal.SIGKILL)
        time.sleep(5.1)
        for _ in range(2):
            assert server.say(session, "recall nothing") == "ok"
        assert "nothing" not in blocks_of(_chat(model, session)[-1])
        assert len(stub.heard("started")) == 3, "it is not tried again"


def test_without_a_sidecar_the_plugin_does_nothing(tmp_path: Path, model: ScriptedModel) -> None:
    model.forget_rules()
    opencode = OpenCode(tmp_path, model.url)
    opencode.install_plugin(PLUGIN, None)
    done = opencode.run("hello", cwd=opencode.project(git=False))
    assert (done.exit_code, done.text) == (0, "ok")
    assert "memory_recall" not in model.requests("chat")[-1].tool_names()
