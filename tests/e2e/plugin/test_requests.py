"""What reaches the model: tools, blocks and snapshots, each in its place; and where nothing of ours does."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from backstory.testing.opencode import wait_for
from backstory.testing.opencode_server import Server
from backstory.testing.scripted_model import Request, ScriptedModel
from tests.e2e.stub import Stub, blocks_of

pytestmark = pytest.mark.opencode


def _chat(model: ScriptedModel, session: str) -> list[Request]:
    return model.requests("chat", session=session)


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


def test_a_block_stands_beside_its_message_only_and_is_repeated_byte_for_byte(
    server: Server, model: ScriptedModel, stub: Stub
) -> None:
    session = server.create_session()
    for text in ("recall apples", "nothing to see", "recall pears", "and now?"):
        server.prompt(session, text)
    requests = _chat(model, session)
    assert [blocks_of(request) for request in requests] == [
        ["apples"],
        ["apples"],
        ["apples", "pears"],
        ["apples", "pears"],
    ]
    assert all(later.extends(earlier) for earlier, later in pairwise(requests))
    assert not stub.heard("blocks", session=session), "what the process knows is not asked for"
    stored = json.dumps(server.messages(session))
    assert "<memory>" not in stored, "the host's own history stays as it was"


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
    assert "figs" in blocks_of(after)
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


def test_without_a_strategy_nothing_is_asked_about_histories(server: Server, model: ScriptedModel, stub: Stub) -> None:
    session = server.create_session()
    for text in ("one", "two", "three"):
        server.prompt(session, text)
    assert "one" in _chat(model, session)[-1].all_text()
    assert stub.heard("snapshot", session=session)
    assert "system" not in stub.heard("snapshot", session=session)[0]["params"]
    assert not stub.heard("history"), "in none of the sessions so far"
