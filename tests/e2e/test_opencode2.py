"""The plugin's ``setup`` for OpenCode 2.x, in a test host written from the published plugin API.

No 2.x program was available, so nothing here has met a real one; what the test host assumes stands at its top.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backstory.testing.opencode import wait_for
from tests.e2e.stub import PLUGIN, UNAVAILABLE, Stub

HOST = Path(__file__).with_name("opencode2_host.js")
ANSWER_TIMEOUT_S = 60
Json = Any


class Host:
    """The test host as a child process: ``host("command", key=value)`` returns its answer."""

    def __init__(self, plugin: Path, directory: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            ["node", str(HOST), str(plugin), str(directory), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, command: str, **argument: Json) -> Json:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps({"command": command, **argument}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate(timeout=ANSWER_TIMEOUT_S)


@pytest.fixture
def stub(tmp_path: Path) -> Stub:
    (tmp_path / "stub").mkdir()
    return Stub(tmp_path / "stub")


@pytest.fixture
def start(tmp_path: Path, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Host]]:
    """Starts the host with an installed plugin; skips where there is no node that can run it."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    check = ["node", "-e", "process.exit(process.getBuiltinModule ? 0 : 1)"]
    if subprocess.run(check).returncode:
        pytest.skip("this node is older than 20.16, which the plugin needs outside OpenCode")
    monkeypatch.setenv("BACKSTORY_PLUGIN_LOG", str(stub.folder / "plugin.log"))
    folder = tmp_path / "plugins"
    folder.mkdir()
    shutil.copyfile(PLUGIN, folder / "backstory.js")
    (folder / "package.json").write_text('{"type": "module"}')
    hosts: list[Host] = []

    def start(*arguments: str, **sidecar: Json) -> Host:
        (folder / "backstory.json").write_text(json.dumps(stub.sidecar(**sidecar)))
        hosts.append(Host(folder / "backstory.js", tmp_path, *arguments))
        return hosts[-1]

    yield start
    for host in hosts:
        host.close()


def _message(id: str | None, role: str, text: str) -> Json:
    return {**({"id": id} if id else {}), "role": role, "content": [{"type": "text", "text": text}]}


def _texts(message: Json) -> list[str]:
    return [part["text"] for part in message["content"]]


def test_the_limited_host_inside_1_x_gets_nothing(start: Callable[..., Host], stub: Stub) -> None:
    state = start("--limited")("state")
    assert state == {"id": "backstory", "cleanup": "undefined", "tools": [], "hooks": []}
    assert not stub.heard()


def test_tools_come_with_their_schema_and_answer(start: Callable[..., Host], stub: Stub) -> None:
    host = start()
    state = host("state")
    tool = state["tools"][0]
    assert state["hooks"] == ["prompt", "context", "compaction"]
    assert (tool["name"], tool["input"]["required"], tool["options"]) == (
        "memory_recall",
        ["query"],
        {"codemode": False},
    )
    context = {"sessionID": "ses_1", "messageID": "msg_1", "agent": "build", "id": "call_1"}
    result = host("tool", name="memory_recall", input={"query": "x"}, context=context)
    assert result["content"] == 'memory_recall got {"query": "x"}'
    assert result["metadata"] == {"n": 1, "title": "Done"}
    heard = stub.heard("tool")[0]["params"]
    assert (heard["session"], heard["message"], heard["call"]) == ("ses_1", "msg_1", "call_1")
    stub.script(tool="error")
    assert host("tool", name="memory_recall", input={}, context=context)["content"] == UNAVAILABLE
    assert stub.heard("hello")[0]["params"]["api"] == 2


def test_block_and_snapshot_reach_the_main_request_only(start: Callable[..., Host], stub: Stub) -> None:
    host = start()
    host("session", id="ses_1", title="A session")
    event = host("prompt", sessionID="ses_1", messageID="msg_1", prompt={"text": "recall apples"})
    assert event["prompt"] == {"text": "recall apples"}, "what is stored stays as the user wrote it"
    heard = stub.heard("chat.message")[0]["params"]
    assert (heard["text"], heard["session"], heard["message"]) == ("recall apples", "ses_1", "msg_1")

    messages = [
        _message("msg_1", "user", "recall apples"),
        _message("a_1", "assistant", "ok"),
        _message(None, "user", "x"),
    ]
    system = [{"type": "text", "text": "You are OpenCode."}]
    first = host("context", sessionID="ses_1", kind="primary", messages=messages, system=system)
    assert _texts(first["messages"][0])[0] == "recall apples"
    assert _texts(first["messages"][0])[1].startswith("\n\n<memory>apples")
    assert first["messages"][1:] == messages[1:]
    assert [part["text"][:8] for part in first["system"]] == ["You are ", "SNAPSHOT"]

    again = host("context", sessionID="ses_1", kind="primary", messages=messages, system=system)
    assert again == first
    title = host("context", sessionID="ses_1", kind="title", messages=messages, system=system)
    assert (title["messages"], title["system"]) == (messages, system)


def test_children_are_flagged_and_get_nothing(start: Callable[..., Host], stub: Stub) -> None:
    host = start()
    host("session", id="ses_2", title="Explore", parentID="ses_1")
    host("prompt", sessionID="ses_2", messageID="msg_2", prompt={"text": "recall pears"})
    heard = stub.heard("chat.message")[0]["params"]
    assert (heard["child"], heard["parent"]) == (True, "ses_1")
    messages = [_message("msg_2", "user", "recall pears")]
    request = host("context", sessionID="ses_2", kind="primary", messages=messages, system=[])
    assert (request["messages"], request["system"]) == (messages, [])


def test_settled_events_of_this_directory_arrive_and_a_compaction_renews_the_snapshot(
    start: Callable[..., Host], stub: Stub, tmp_path: Path
) -> None:
    host = start()
    host("session", id="ses_1", title="A session")
    before = host("context", sessionID="ses_1", kind="primary", messages=[], system=[])["system"]
    ended = {"sessionID": "ses_1", "assistantMessageID": "a_1", "text": "done"}
    host("event", type="session.text.delta", data={"sessionID": "ses_1", "delta": "do"})
    host("event", type="session.text.ended", data=ended, location={"directory": "/elsewhere"})
    host("event", type="session.text.ended", data=ended, location={"directory": str(tmp_path)})
    host("event", type="session.compaction.ended", data={"sessionID": "ses_1", "text": "summary"})
    assert wait_for(lambda: len(stub.heard("event")) == 2)
    assert stub.heard("event")[0]["params"] == {
        "directory": str(tmp_path),
        "type": "session.text.ended",
        "properties": ended,
    }
    after = host("context", sessionID="ses_1", kind="primary", messages=[], system=[])["system"]
    assert after != before


def test_the_model_is_asked_without_a_session(start: Callable[..., Host], stub: Stub) -> None:
    host = start()
    host("session", id="ses_1", title="A session")
    host("prompt", sessionID="ses_1", messageID="msg_1", prompt={"text": "ask host.generate"})
    assert wait_for(lambda: [m for m in stub.heard() if m.get("id") == "stub-host.generate"])
    (answer,) = (message for message in stub.heard() if message.get("id") == "stub-host.generate")
    assert answer["result"] == {"text": "default: answers ask host.generate", "requests": 1}
    host("prompt", sessionID="ses_1", messageID="msg_2", prompt={"text": "fail, and ask host.generate"})
    assert wait_for(lambda: len([m for m in stub.heard() if m.get("id") == "stub-host.generate"]) == 2)
    failed = [message for message in stub.heard() if message.get("id") == "stub-host.generate"][1]
    assert failed["result"] == {"error": {"name": "Error"}, "requests": 1, "unanswered": True}


def test_a_second_setup_is_refused_and_cleanup_lets_go_of_everything(start: Callable[..., Host], stub: Stub) -> None:
    host = start()
    assert host("state")["cleanup"] == "function"
    assert host("again") == {"cleanup": "undefined"}
    assert host("cleanup") == {"disposed": 4, "listeners": 0}
    assert [message["method"] for message in stub.heard()] == ["started", "hello", "goodbye", "ended"]
    assert host("again") == {"cleanup": "function"}, "the directory is free again"


def test_a_dead_bridge_leaves_the_host_alone(start: Callable[..., Host]) -> None:
    host = start(command=["/nowhere/python"])
    host("session", id="ses_1", title="A session")
    host("prompt", sessionID="ses_1", messageID="msg_1", prompt={"text": "hello"})
    messages = [_message("msg_1", "user", "hello")]
    request = host("context", sessionID="ses_1", kind="primary", messages=messages, system=[])
    assert (request["messages"], request["system"]) == (messages, [])


def test_a_line_without_end_costs_the_bridge_its_life(start: Callable[..., Host], stub: Stub) -> None:
    host = start(tool=5000)
    stub.script(tool="flood")
    result = host("tool", name="memory_recall", input={}, context={"sessionID": "ses_1"})
    assert result["content"] == UNAVAILABLE
    assert "a line is too long" in (stub.folder / "plugin.log").read_text()


def test_a_bridge_that_does_not_read_is_not_buried_in_messages(start: Callable[..., Host], stub: Stub) -> None:
    host = start(tool=300)
    stub.script(tool="freeze")
    host("tool", name="memory_recall", input={}, context={"sessionID": "ses_1"})
    for number in range(20):
        host("event", type="session.text.ended", data={"sessionID": "ses_1", "text": f"{number}" * 1_000_000})
    assert wait_for(lambda: "does not read" in (stub.folder / "plugin.log").read_text())
    assert host("cleanup")["listeners"] == 0


def _talk(*ids: str | None) -> list[Json]:
    """A user's and an assistant's messages in turn; without an id where that is None."""
    return [_message(id, "user" if at % 2 == 0 else "assistant", f"text {at}") for at, id in enumerate(ids)]


def _request(host: Host, messages: list[Json], *, session: str = "ses_1", kind: str = "primary") -> Json:
    host("session", id=session, title="A session")
    return host("context", sessionID=session, kind=kind, messages=messages, system=[])


def test_old_messages_give_way_to_the_digest_and_the_rest_stays(start: Callable[..., Host], stub: Stub) -> None:
    stub.script(digest=2)
    host = start(history=3000)
    messages = _talk("u1", "a1", "u2")
    request = _request(host, messages)
    digest, *rest = request["messages"]
    assert (digest["role"], _texts(digest)) == ("user", ["<digest>2 messages</digest>"])
    assert rest == messages[2:]
    assert request["whole"], "the digest is a message like the others"
    told = stub.heard("history")[0]["params"]
    assert told["messages"] == [{"id": message["id"], "role": message["role"]} for message in messages]
    assert told["agent"] == "build"
    asked = [id for message in stub.heard("blocks") for id in message["params"]["messages"]]
    assert asked == ["u2"]
    longer = _request(host, _talk("u1", "a1", "u2", "a2", "u3"))["messages"]
    assert longer[: len(request["messages"])] == request["messages"]


def test_messages_without_an_id_are_not_ours_to_replace(start: Callable[..., Host], stub: Stub) -> None:
    host = start(history=3000)
    for count, ids in ((2, (None, "a1", "u2")), (2, ("u1", None, "u2")), (3, ("u1", "a1", None, "a2", "u3"))):
        stub.script(digest={"count": count, "text": "x"})
        assert _request(host, _talk(*ids))["messages"] == _talk(*ids), ids
    stub.script(digest={"count": 2, "text": "x"})
    assert (
        _request(host, _talk("u1", "a1", None, "a2", "u3"))["messages"][1:] == _talk("u1", "a1", None, "a2", "u3")[2:]
    )
    assert _request(host, _talk("u1", "a1", None))["messages"][1:] == _talk("u1", "a1", None)[2:]
    assert _request(host, _talk("u1", "a1"))["messages"] == _talk("u1", "a1"), "the current turn stays"


def test_what_was_replaced_last_stays_replaced_without_an_answer(start: Callable[..., Host], stub: Stub) -> None:
    stub.script(digest=2)
    host = start(history=3000)
    before = _request(host, _talk("u1", "a1", "u2"))["messages"]
    stub.script(digest=2, history="error")
    after = _request(host, _talk("u1", "a1", "u2", "a2", "u3"))["messages"]
    assert after[:2] == before
    assert _request(host, _talk("u1", "a9", "u2"))["messages"] == _talk("u1", "a9", "u2"), "other messages stay"
    assert _request(host, _talk("u1", "a1"))["messages"] == _talk("u1", "a1")
    assert _request(host, [])["messages"] == []
    assert _request(host, _talk("u7", "a7", "u8"), session="ses_9")["messages"] == _talk("u7", "a7", "u8")


def test_once_python_has_said_that_nothing_is_replaced_it_is_not_asked(start: Callable[..., Host], stub: Stub) -> None:
    host = start()
    host("tool", name="memory_recall", input={}, context={"sessionID": "ses_1"})  # hello is answered before this
    _request(host, _talk("u1", "a1", "u2"))
    assert stub.heard("hello")
    assert stub.heard("snapshot")
    assert "system" not in stub.heard("snapshot")[0]["params"]
    assert not stub.heard("history")


def test_a_compaction_takes_its_summary_from_python(start: Callable[..., Host], stub: Stub) -> None:
    stub.script(digest=2, summary="What was said.")
    host = start(history=3000, compacting=3000)
    host("session", id="ses_1", title="A session")
    messages = _talk("u1", "a1", "u2", "a2", None)
    event = host("compaction", sessionID="ses_1", messages=messages, system=[])
    assert event["result"] == {"summary": "What was said."}
    assert event["messages"] == messages
    told = stub.heard("compacting")[0]["params"]["messages"]
    assert [message["id"] for message in told] == ["u1", "a1", "u2", "a2", "#4"]
    taken = host("compaction", sessionID="ses_1", messages=messages, system=[], result={"summary": "mine"})
    assert taken["result"] == {"summary": "mine"}, "another plugin was first"
    host("session", id="ses_2", title="Explore", parentID="ses_1")
    assert "result" not in host("compaction", sessionID="ses_2", messages=messages, system=[])


def test_a_compaction_without_a_summary_reads_the_digest(start: Callable[..., Host], stub: Stub) -> None:
    stub.script(digest=2)
    host = start(history=3000, compacting=3000)
    host("session", id="ses_1", title="A session")
    host("prompt", sessionID="ses_1", messageID="u2", prompt={"text": "recall apples"})
    messages = _talk("u1", "a1", "u2", "a2", None)
    event = host("compaction", sessionID="ses_1", messages=messages, system=[])
    assert "result" not in event
    assert _texts(event["messages"][0]) == ["<digest>2 messages</digest>"]
    assert event["messages"][1:] == messages[2:], "and no blocks"
    assert [part["text"] for part in event["system"]] == ["STUB CONTEXT"]
    stub.script(digest=2, history="error", compacting="error")
    event = host("compaction", sessionID="ses_1", messages=messages, system=[])
    assert event["messages"][1:] == messages[2:]
    assert event["system"] == []


def test_a_host_without_that_hook_is_served_all_the_same(start: Callable[..., Host], stub: Stub) -> None:
    stub.script(digest=2)
    host = start("--without-compaction", history=3000)
    assert host("state")["hooks"] == ["prompt", "context"]
    assert _texts(_request(host, _talk("u1", "a1", "u2"))["messages"][0]) == ["<digest>2 messages</digest>"]
    assert host("cleanup") == {"disposed": 3, "listeners": 0}


def test_attachments_travel_as_far_as_they_are_kept_and_never_crowd_out_the_rest(
    start: Callable[..., Host], stub: Stub
) -> None:
    stub.script(attachment=3_000_000)
    host = start(tool=300)
    host("tool", name="memory_recall", input={}, context={"sessionID": "ses_1"})  # hello is answered before this
    kept, large, small = ("data:image/png;base64," + "A" * size for size in (2_900_000, 3_000_000, 900))

    def told(*urls: str) -> list[str]:
        before = len(stub.heard("event"))
        host("event", type="session.text.ended", data={"sessionID": "ses_1", "urls": urls})
        assert wait_for(lambda: len(stub.heard("event")) > before)
        return list(stub.heard("event")[-1]["params"]["properties"]["urls"])

    head = "data:image/png;base64,"
    assert told(kept, large, small) == [kept, head, small]
    assert told(kept, kept, kept) == [kept, kept, head], "8 Mi characters at once"
    stub.script(tool="freeze", attachment=3_000_000)
    host("tool", name="memory_recall", input={}, context={"sessionID": "ses_1"})
    for _ in range(12):
        host("event", type="session.text.ended", data={"sessionID": "ses_1", "urls": [kept]})
    assert "does not read" not in (stub.folder / "plugin.log").read_text(), "what is cut leaves room for the rest"
    assert host("cleanup")["listeners"] == 0
