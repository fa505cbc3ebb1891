"""The plugin file in the real OpenCode, with a stub as its Python side: old messages that give way to a digest."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from backstory.testing.opencode import OpenCode, wait_for
from backstory.testing.opencode_server import Server
from backstory.testing.scripted_model import Request, ScriptedModel
from tests.e2e.stub import PLUGIN, Stub

pytestmark = pytest.mark.opencode

DIGEST = "<digest>"
FEW = {"history": 1000, "start": 1000}  # long enough for a stub on a busy machine, short enough to wait for
Json = Any


class Home:
    """An OpenCode with a plugin whose stub replaces messages."""

    def __init__(self, root: Path, model: ScriptedModel, binary: Path, **deadlines_ms: int) -> None:
        (root / "stub").mkdir(parents=True)
        self.stub = Stub(root / "stub")
        self.stub.script(digest=0)
        self.model = model
        log = {"BACKSTORY_PLUGIN_LOG": str(self.stub.folder / "plugin.log")}
        self.opencode = OpenCode(root / "opencode", model.url, binary=binary, environ=log, config={"snapshot": False})
        self.opencode.install_plugin(PLUGIN, self.stub.sidecar(command=None, **deadlines_ms))
        self.project = self.opencode.project()

    def chat(self, session: str) -> list[Request]:
        return self.model.requests("chat", session=session)

    def last(self, session: str) -> list[str]:
        """What was said in the newest request of a session's main loop: role and text, system prompt aside."""
        return said(self.chat(session)[-1])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, scripted: ScriptedModel, opencode_binary: Path) -> Home:
    return Home(tmp_path_factory.mktemp("home"), scripted, opencode_binary, **FEW)


@pytest.fixture(scope="module")
def shared_server(home: Home) -> Iterator[Server]:
    with home.opencode.serve(cwd=home.project) as server:
        yield server


@pytest.fixture
def server(shared_server: Server, home: Home) -> Iterator[Server]:
    home.model.forget_rules()
    home.model.forget_requests()
    home.stub.script(digest=0)
    yield shared_server
    home.stub.script(digest=0)


def said(request: Request) -> list[str]:
    found = []
    for message in request.messages:
        content = message.get("content") or ""
        text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
        if message["role"] != "system":
            found.append(f"{message['role']}: {text.strip()}")
    return found


def talk(server: Server, session: str, *prompts: str) -> None:
    for prompt in prompts:
        server.prompt(session, prompt)


def test_replaced_messages_give_way_to_the_digest_in_requests_alone(server: Server, home: Home) -> None:
    session = server.create_session()
    talk(server, session, "first word", "second word")
    assert home.last(session) == ["user: first word", "assistant: ok", "user: second word"]
    home.stub.script(digest=2)
    talk(server, session, "third word")
    assert home.last(session) == [
        "user: <digest>2 messages</digest>",
        "user: second word",
        "assistant: ok",
        "user: third word",
    ]
    stored = server.messages(session)
    texts = [part["text"] for message in stored for part in message["parts"] if part["type"] == "text"]
    assert texts == ["first word", "ok", "second word", "ok", "third word", "ok"], "the host's own history stays whole"
    talk(server, session, "fourth word")
    earlier, later = home.chat(session)[-2:]
    assert later.extends(earlier), "what was sent is repeated"


def test_python_is_told_of_each_message_but_not_what_it_says(server: Server, home: Home) -> None:
    session = server.create_session()
    talk(server, session, "a secret word")
    server.prompt(session, "", parts=[{"type": "text", "text": "a program's", "synthetic": True}])
    told = home.stub.heard("history", session=session)[-1]["params"]
    stored = [message["info"]["id"] for message in server.messages(session)]
    assert [message["id"] for message in told["messages"]] == stored[:3]
    assert told["messages"][0] == {"id": stored[0], "role": "user"}
    assert told["messages"][2] == {"id": stored[2], "role": "user", "synthetic": True}
    assert told["agent"] == "build"
    assert "secret" not in json.dumps(told)
    assert home.stub.heard("snapshot", session=session)[0]["params"]["system"].startswith("You are")


def test_the_steps_of_a_turn_send_the_same_digest_and_blocks_beside_the_rest(server: Server, home: Home) -> None:
    session = server.create_session()
    talk(server, session, "recall apples", "recall pears")
    home.stub.script(digest=2)
    home.model.when(said="look", last_role="user").call("memory_recall", query="x")
    talk(server, session, "look, and recall plums")
    first, second = home.chat(session)[-2:]
    assert second.extends(first)
    assert len(said(second)) == len(said(first)) + 2
    assert said(second)[0] == "user: <digest>2 messages</digest>"
    assert "<memory>apples" not in second.all_text()
    assert "<memory>pears" in said(second)[1]
    assert not home.stub.heard("blocks", session=session), "nothing is asked about the digest's own message"


@pytest.mark.parametrize("how", ["hang", "error", "garbage"])
def test_without_an_answer_what_was_replaced_last_stays_replaced(server: Server, home: Home, how: str) -> None:
    session = server.create_session()
    talk(server, session, "one", "two")
    home.stub.script(digest=2)
    talk(server, session, "three")
    home.stub.script(digest=4, history=how)
    talk(server, session, "four")
    earlier, later = home.chat(session)[-2:]
    assert later.extends(earlier)
    assert home.last(session)[:2] == ["user: <digest>2 messages</digest>", "user: two"]
    home.stub.script(digest=4)
    talk(server, session, "five")
    assert home.last(session)[:2] == ["user: <digest>4 messages</digest>", "user: three"]


def test_a_bridge_that_never_answered_leaves_the_list_alone_and_is_asked_thrice_a_turn(
    server: Server, home: Home
) -> None:
    session = server.create_session()
    home.stub.script(digest=2, history="hang")
    steps = iter(range(4))
    home.model.when(said="work").answer(_four_steps(steps))
    talk(server, session, "one", "work")
    assert home.last(session)[:3] == ["user: one", "assistant: ok", "user: work"]
    requests = home.chat(session)
    assert len(requests) == 6
    assert all(later.extends(earlier) for earlier, later in pairwise(requests))
    assert len(home.stub.heard("history", session=session)) == 1 + 3
    home.stub.script(digest=2)
    talk(server, session, "three")
    assert home.last(session)[0] == "user: <digest>2 messages</digest>", "with the next prompt it is asked again"


def _four_steps(steps: Iterator[int]) -> Callable[[Request], Json]:
    from backstory.testing.scripted_model import Reply

    def answer(_: Request) -> Reply:
        call = ("memory_recall", {"query": "x"})
        return Reply(text="", calls=(call,)) if next(steps, None) is not None else Reply(text="done")

    return answer


def test_a_crash_keeps_the_replacement_and_the_next_bridge_goes_on(server: Server, home: Home) -> None:
    session = server.create_session()
    talk(server, session, "one", "two")
    home.stub.script(digest=2)
    talk(server, session, "three")
    home.stub.script(digest=2, history="crash")
    talk(server, session, "four")
    assert home.last(session)[0] == "user: <digest>2 messages</digest>"
    home.stub.script(digest=4)
    time.sleep(1.1)  # the pause before another bridge is started
    talk(server, session, "five")
    assert home.last(session)[:2] == ["user: <digest>4 messages</digest>", "user: three"]


@pytest.mark.parametrize(
    "answer",
    [
        {"count": 99, "text": "x"},
        {"count": 3, "text": "x"},
        {"count": -1, "text": "x"},
        {"count": 1.5, "text": "x"},
        {"count": "2", "text": "x"},
        {"text": "x"},
        {"count": 2},
        {"count": 2, "text": ""},
        {"count": 2, "text": 7},
        [2, "x"],
        "x",
        True,
    ],
)
def test_an_answer_that_cannot_be_is_ignored(server: Server, home: Home, answer: Json) -> None:
    session = server.create_session()
    talk(server, session, "one")
    home.stub.script(digest=answer)
    talk(server, session, "two")
    assert home.last(session) == ["user: one", "assistant: ok", "user: two"]


def test_a_text_that_replaces_nothing_stands_before_the_list(server: Server, home: Home) -> None:
    session = server.create_session()
    home.stub.script(digest={"count": 0, "text": "<digest>notes</digest>"})
    talk(server, session, "one", "two")
    assert home.last(session) == ["user: <digest>notes</digest>", "user: one", "assistant: ok", "user: two"]


def test_all_but_the_current_turn_may_go_and_undone_messages_bring_the_rest_back(server: Server, home: Home) -> None:
    session = server.create_session()
    talk(server, session, "one", "two", "three")
    home.stub.script(digest=4)
    talk(server, session, "four")
    assert home.last(session)[1:] == ["user: three", "assistant: ok", "user: four"]
    second = server.messages(session)[2]["info"]["id"]
    server.call("POST", f"/session/{session}/revert", {"messageID": second})
    home.stub.script(digest=4, history="error")
    talk(server, session, "another")
    assert home.last(session) == ["user: one", "assistant: ok", "user: another"], "what was replaced is no longer there"


def test_a_compaction_reads_the_digest_and_no_block(server: Server, home: Home) -> None:
    session = server.create_session()
    talk(server, session, "recall apples", "recall pears", "recall plums")
    home.stub.script(digest=2)
    server.compact(session)
    request = home.model.requests("compaction")[-1]
    assert request.all_text().count("<digest>2 messages</digest>") == 1
    assert "recall apples" not in request.all_text()
    assert "recall pears" in request.all_text()
    assert "<memory>" not in request.all_text()
    assert request.all_text().rstrip().endswith("STUB CONTEXT")
    assert wait_for(lambda: home.stub.events(session, "session.compacted"))
    home.stub.script(digest=0)
    talk(server, session, "recall figs")
    assert "<memory>figs" in home.last(session)[-1]
    told = home.stub.heard("history", session=session)[-1]["params"]["messages"]
    assert [message for message in told if message.get("summary")], "the host's own summary is told apart"
    stored = json.dumps(server.messages(session))
    assert DIGEST not in stored
    assert "recall apples" in stored


def test_a_title_is_made_of_the_plain_prompt(server: Server, home: Home) -> None:
    home.stub.script(digest={"count": 0, "text": "<digest>notes</digest>"})
    session = server.create_session(title=None)
    talk(server, session, "name me")
    assert wait_for(lambda: home.model.requests("title"))
    assert all(DIGEST not in request.all_text() for request in home.model.requests("title"))
    assert home.last(session)[0] == "user: <digest>notes</digest>"


def test_sub_agents_and_helper_sessions_keep_their_messages(server: Server, home: Home) -> None:
    home.stub.script(digest={"count": 0, "text": "<digest>notes</digest>"})
    task = {"description": "look", "prompt": "count the melons", "subagent_type": "general"}
    home.model.when(said="delegate", last_role="user").call("task", **task)
    session = server.create_session()
    marked = server.create_session(title=f"backstory-helper rerank {'0' * 32}")
    talk(server, session, "please delegate")
    server.prompt(marked, "a question", agent="backstory-helper")
    child = home.stub.heard("chat.message", child=True)[-1]["params"]["session"]
    for one in (child, marked):
        assert home.chat(one)
        assert all(DIGEST not in request.all_text() for request in home.chat(one))
        assert not home.stub.heard("history", session=one)
    assert DIGEST in home.chat(session)[-1].all_text()


def test_after_a_restart_the_first_request_is_short_already(home: Home, server: Server) -> None:
    session = server.create_session()
    home.stub.script(digest=2)
    talk(server, session, "one", "two")
    done = home.opencode.run("three", cwd=home.project, session=session)
    assert done.exit_code == 0, done.stderr
    before, after = home.chat(session)[-2:]
    assert said(after)[:2] == said(before)[:2] == ["user: <digest>2 messages</digest>", "user: two"]
