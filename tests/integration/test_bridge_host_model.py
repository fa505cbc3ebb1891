"""The host's model over the bridge's pipe, with a plugin of our own at the other end; and helper sessions."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backstory.testing.opencode import wait_for
from tests.integration.bridge_process import BridgeProcess, in_time

RERANKING = {
    "BACKSTORY_EMBEDDER_PROVIDER": "none",
    "BACKSTORY_RECALL_RERANK": "auto",
    "BACKSTORY_RECALL_RERANK_TIMEOUT_MS": "20000",
}
QUERY = "harbour lighthouse"
OURS = f"backstory-helper rerank {'0123456789abcdef' * 2}"
Json = Any
Start = Callable[..., BridgeProcess]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
def start(home: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts bridges over one home, in a folder with two memories that a search for ``QUERY`` finds."""
    running: list[BridgeProcess] = []
    project = tmp_path / "shop"
    project.mkdir()

    def start(*, environ: dict[str, str] | None = None, **options: Json) -> BridgeProcess:
        bridge = BridgeProcess(home, directory=project, environ={**RERANKING, **(environ or {})}, **options)
        running.append(bridge)
        bridge.ask("hello", protocol=1)
        bridge.tool("memory_remember", content="The harbour lighthouse answers on port 7001")
        bridge.tool("memory_remember", content="The harbour lighthouse is painted by the night crew")
        return bridge

    yield start
    for bridge in running:
        if bridge.process.poll() is None:
            bridge.process.kill()
            bridge.process.wait()


def _answer(text: str, **more: Json) -> Json:
    tokens = {"input": 120, "output": 7}
    return {"text": text, "model": "a/b", "finish": "stop", "tokens": tokens, "requests": 1, **more}


def _generate_asked(bridge: BridgeProcess) -> list[Json]:
    return [message for message in bridge.asked if message["method"] == "host.generate"]


def _rows(home: Path, statement: str) -> list[tuple[Json, ...]]:
    with sqlite3.connect(home / "backstory.db") as raw:
        return raw.execute(statement).fetchall()


def _ledger(home: Path) -> list[tuple[Json, ...]]:
    return _rows(home, "SELECT feature, model, session, input_tokens, output_tokens, outcome, requests FROM ledger")


def _begin_recall(bridge: BridgeProcess) -> Json:
    return bridge.begin("tool", session="ses_1", name="memory_recall", arguments={"query": QUERY})


def test_the_plugin_is_asked_and_the_call_is_booked(start: Start, home: Path) -> None:
    bridge = start(answers={"host.generate": lambda params: _answer("", structured={"order": [2]})})
    text = bridge.tool("memory_recall", query=QUERY)
    (asked,) = _generate_asked(bridge)
    params = asked["params"]
    assert params["directory"] == str(bridge.directory)
    assert (params["feature"], params["parent"], params["model"]) == ("rerank", "ses_1", None)
    assert params["schema"]["type"] == "object"
    assert QUERY in params["prompt"]
    assert params["system"]
    assert 0 < params["timeout_ms"] < 20_000
    second = params["prompt"].index("port 7001") < params["prompt"].index("night crew")
    chosen = "night crew" if second else "port 7001"
    assert text.index(chosen) == min(text.index("night crew"), text.index("port 7001"))
    assert _ledger(home) == [("rerank", "host:default", "ses_1", 120, 7, "ok", 1)]


def test_the_model_set_is_the_one_asked_for_and_a_folder_may_do_without(start: Start, home: Path) -> None:
    bridge = start(
        environ={"BACKSTORY_MODELS_MODEL": "a/b"}, answers={"host.generate": lambda params: _answer('{"order": [1]}')}
    )
    bridge.tool("memory_recall", query=QUERY)
    assert _generate_asked(bridge)[0]["params"]["model"] == "a/b"
    assert _ledger(home)[0][1] == "host:a/b"
    (bridge.directory / ".backstory.toml").write_text('[models]\nprovider = "none"\n')
    bridge.notify("goodbye")
    bridge.ask("hello", protocol=1)
    bridge.tool("memory_recall", query=QUERY)
    assert len(_generate_asked(bridge)) == 1


@pytest.mark.parametrize("code", [-32601, -32602, -32000])
def test_a_plugin_that_cannot_ask_costs_nothing_but_the_second_opinion(start: Start, home: Path, code: int) -> None:
    bridge = start()
    number = _begin_recall(bridge)
    assert wait_for(lambda: _generate_asked(bridge))
    bridge.send({"id": _generate_asked(bridge)[0]["id"], "error": {"code": code, "message": "words of the host"}})
    output = bridge.finish(number)["result"]["output"]
    assert "port 7001" in output
    assert "words of the host" not in output + bridge.stderr()
    assert _ledger(home) == []


def test_a_deadline_is_told_to_the_plugin(start: Start, home: Path) -> None:
    bridge = start(environ={"BACKSTORY_RECALL_RERANK_TIMEOUT_MS": "300"})
    assert "port 7001" in bridge.tool("memory_recall", query=QUERY)
    (asked,) = _generate_asked(bridge)
    assert wait_for(lambda: bridge.asked[-1]["method"] == "host.cancel")
    assert bridge.asked[-1] == {"jsonrpc": "2.0", "method": "host.cancel", "params": {"id": asked["id"]}}
    assert [row[5] for row in _ledger(home)] == ["timeout"]
    bridge.send({"id": asked["id"], "result": _answer("late")})
    assert bridge.ask("hello", protocol=1)["protocol"] == 1


def test_an_unanswered_question_does_not_hold_up_the_end_and_is_booked(start: Start, home: Path) -> None:
    def attempt() -> float:
        bridge = start()
        _begin_recall(bridge)
        assert wait_for(lambda: _generate_asked(bridge))
        took_s = bridge.end_s()
        assert {row[5] for row in _ledger(home)} == {"failed"}
        return took_s

    in_time(attempt, 1.5)


# --- helper sessions ------------------------------------------------------------------------------------------------


def _info(session: str, title: str, *, age_s: float = 0.0) -> Json:
    updated = (time.time() - age_s) * 1000
    return {"id": session, "title": title, "time": {"created": updated, "updated": updated}}


ALMOST_OURS = (
    "backstory-helper sessions: why is the sweep late?",
    "backstory-helper",
    "backstory-helper (temporary): rerank",
    f"{OURS}\n",
    f"{OURS} (fork #1)",
    f"My {OURS}",
    OURS[:-1],
    OURS.upper(),
)


def test_strays_are_discarded_when_they_are_old_and_marked(start: Start) -> None:
    sessions = [
        _info("ses_old", OURS, age_s=3600),
        _info("ses_new", OURS, age_s=60),
        _info("ses_mine", "How the backstory-helper works", age_s=3600),
        *(_info(f"ses_{number}", title, age_s=3600) for number, title in enumerate(ALMOST_OURS)),
        {"id": "ses_odd", "title": OURS, "time": {"updated": "then"}},
        {"id": "ses_odder", "title": None},
        "no session",
    ]
    discarded: list[str] = []
    bridge = start(
        answers={
            "host.sessions": lambda params: sessions,
            "host.discard": lambda params: discarded.append(params["session"]),
        }
    )
    assert wait_for(lambda: discarded)
    assert [m["params"]["search"] for m in bridge.asked if m["method"] == "host.sessions"] == ["backstory-helper"]
    time.sleep(0.3)
    assert discarded == ["ses_old"]


def test_nothing_of_a_helper_session_is_kept_however_it_is_known(start: Start, home: Path) -> None:
    history = [
        {
            "info": {"id": "msg_h", "sessionID": "ses_h", "role": "user", "agent": "backstory-helper", "time": {}},
            "parts": [{"id": "prt_h", "messageID": "msg_h", "sessionID": "ses_h", "type": "text", "text": "inner"}],
        }
    ]
    bridge = start(answers={"host.messages": lambda params: history})
    for session, info in (("ses_t", {"title": OURS}), ("ses_a", {"title": "Untold"})):
        bridge.event("session.updated", {"info": {"id": session, **info}})
        if session == "ses_a":
            asked = {"role": "user", "agent": "backstory-helper"}
            bridge.event("message.updated", {"info": {"id": "msg_ses_a", "sessionID": session, "time": {}, **asked}})
        part = {"id": f"prt_{session}", "messageID": f"msg_{session}", "sessionID": session}
        bridge.event("message.part.updated", {"part": {**part, "type": "text", "text": "inner words"}})
        bridge.event("session.idle", {"sessionID": session})
        bridge.event("session.deleted", {"info": {"id": session, **info}})
    bridge.event("session.idle", {"sessionID": "ses_h"})
    bridge.event("message.updated", {"info": {"id": "msg_end", "sessionID": "ses_end", "role": "user", "time": {}}})
    assert wait_for(lambda: _rows(home, "SELECT 1 FROM messages WHERE id = 'msg_end'"))
    assert _rows(home, "SELECT id FROM messages") == [("msg_end",)]
    assert _rows(home, "SELECT text FROM parts") == []
    assert ("ses_t",) not in _rows(home, "SELECT id FROM sessions")
    assert json.dumps(bridge.asked).count("host.messages") == 1


@pytest.mark.parametrize("title", [*ALMOST_OURS, OURS])
def test_a_session_in_which_a_person_talks_is_kept_whatever_its_title(start: Start, home: Path, title: str) -> None:
    def said(number: int, agent: str) -> Json:
        return {"id": f"msg_{number}", "sessionID": "ses_u", "role": "user", "agent": agent, "time": {}}

    def part(number: int) -> Json:
        told = {"id": f"prt_{number}", "messageID": f"msg_{number}", "sessionID": "ses_u"}
        return {**told, "type": "text", "text": f"words {number}"}

    agents = ["backstory-helper", "build"]
    history = [{"info": said(number, agent), "parts": [part(number)]} for number, agent in enumerate(agents)]
    bridge = start(answers={"host.messages": lambda params: history})
    bridge.event("session.updated", {"info": {"id": "ses_u", "title": title}})
    bridge.event("message.updated", {"info": said(0, "backstory-helper")})
    bridge.event("message.updated", {"info": said(1, "build")})
    bridge.event("message.part.updated", {"part": part(1)})
    bridge.event("session.updated", {"info": {"id": "ses_u", "title": title}})
    bridge.event("session.idle", {"sessionID": "ses_u"})
    kept = "SELECT text FROM parts WHERE message IN ('msg_0', 'msg_1') ORDER BY id"
    assert wait_for(lambda: _rows(home, kept) == [("words 0",), ("words 1",)])
    assert _rows(home, "SELECT title FROM sessions WHERE id = 'ses_u'") == [(title,)]


def test_a_helper_s_prompt_is_not_captured_even_where_sub_agents_are(start: Start, home: Path) -> None:
    bridge = start(environ={"BACKSTORY_OPENCODE_SUBAGENTS": "true"})
    asked: Json = {"child": True, "agent": "backstory-helper", "session": "ses_h"}
    assert bridge.prompt("Remember that the moon is made of cheese", message="msg_h", **asked) is None
    assert bridge.prompt("Remember that tea is at four", message="msg_1", child=True, session="ses_c") is None
    contents = str(_rows(home, "SELECT content FROM memories"))
    assert "cheese" not in contents
    assert "tea is at four" in contents
