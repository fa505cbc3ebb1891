"""The bridge process alone, over pipes: what it answers, what it survives, how fast it is, and that it always ends."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import quantiles

import pytest

from backstory.testing.opencode import wait_for
from tests.integration.bridge_process import BridgeProcess, Json

WORDS_ONLY = {"BACKSTORY_EMBEDDER_PROVIDER": "none"}
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
KEY = "\n".join(
    (
        "-----BEGIN RSA PRIVATE KEY-----",
        "MIIEowIBAAKCAQEAsecretkeymaterial0123456789ab",
        "-----END RSA PRIVATE KEY-----",
    )
)
CREATED_MS = 1_770_000_000_000
Start = Callable[..., BridgeProcess]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.fixture
def start(home: Path, project: Path) -> Iterator[Start]:
    """Starts bridges over one home; without the model unless ``environ`` says otherwise."""
    running: list[BridgeProcess] = []

    def start(**options: Json) -> BridgeProcess:
        running.append(BridgeProcess(home, **{"directory": project, "environ": WORDS_ONLY, **options}))
        return running[-1]

    yield start
    for bridge in running:
        if bridge.process.poll() is None:
            bridge.process.kill()
            bridge.process.wait()


def _rows(home: Path, statement: str, *parameters: object) -> list[tuple[Json, ...]]:
    with sqlite3.connect(home / "backstory.db") as raw:
        return raw.execute(statement, parameters).fetchall()


def _user_message(message: str, *, session: str = "ses_1", role: str = "user", created: int = CREATED_MS) -> Json:
    return {"info": {"id": message, "sessionID": session, "role": role, "time": {"created": created}}}


def _text_part(part: str, message: str, text: str, *, session: str = "ses_1", **more: Json) -> Json:
    return {"part": {"id": part, "messageID": message, "sessionID": session, "type": "text", "text": text, **more}}


def _settle(bridge: BridgeProcess, home: Path, session: str = "ses_mark") -> None:
    """Wait until every event sent so far was taken: they are taken in order, and this one comes last."""
    bridge.ask("hello", protocol=1)  # makes sure that there is a store
    mark = f"mark_{time.monotonic_ns()}"
    bridge.event("message.updated", _user_message(mark, session=session))
    assert wait_for(lambda: _rows(home, "SELECT 1 FROM messages WHERE id = ?", mark))


# --- the protocol ---------------------------------------------------------------------------------------------------


def test_the_handshake_tells_version_and_tools_and_leaves_a_note(start: Start, home: Path, project: Path) -> None:
    bridge = start()
    answer = bridge.ask("hello", protocol=1, plugin_version="9.9", api=1, pid=77)
    assert answer["protocol"] == 1
    assert "memory_recall" in [tool["name"] for tool in answer["manifest"]]
    note = json.loads((home / "opencode-handshake.json").read_text())
    assert (note["plugin_version"], note["directory"], note["pid"]) == ("9.9", str(project), 77)
    assert note["backstory_version"] == answer["version"]
    assert [path.stat().st_mode & 0o777 for path in home.glob("opencode-handshake*")] == [0o600]


def test_a_line_that_is_no_request_gets_an_error_and_the_next_one_an_answer(start: Start) -> None:
    bridge = start()
    no_requests = [
        (b"not json", -32700),
        (b'{"id": 1, "method"', -32700),
        (b"\xff\xfe{}", -32700),
        (b"[" * 100_000, -32700),
        (b"[1, 2]", -32600),
        (b'"text"', -32600),
        (b'{"id": {"a": 1}, "method": "hello"}', -32600),
        (b'{"id": 7, "method": 5}', -32600),
        (b'{"id": 7, "method": "hello", "params": "x"}', -32600),
        (b'{"id": 7, "method": "hello"}', -32602),
        (b'{"id": 7, "method": "chat.message", "params": {"directory": "/", "session": ""}}', -32602),
        (b'{"id": 7, "method": "no.such.thing", "params": {}}', -32601),
    ]
    for line, code in no_requests:
        bridge.raw(line + b"\n")
        assert bridge.stray()["error"]["code"] == code, line[:60]
    assert bridge.ask("hello", protocol=1)["protocol"] == 1


def test_empty_lines_unknown_notifications_and_answers_to_nothing_are_passed_over(start: Start) -> None:
    bridge = start()
    bridge.raw(b"\n   \n")
    bridge.notify("no.such.thing")
    bridge.notify("event", type=5)
    bridge.send({"id": "b99", "result": 1})
    bridge.send({"id": None, "result": None})
    bridge.event("message.updated", {"info": ["not", "an", "object"]})
    bridge.event("message.part.updated", {"part": {"id": 5, "type": []}})
    bridge.event("session.updated", {"info": None})
    bridge.event("session.deleted", {})
    bridge.event("session.compacted", {})
    assert bridge.ask("hello", protocol=1)["protocol"] == 1
    bridge.close()
    assert "broke" not in bridge.stderr()


def test_a_line_beyond_the_limit_is_left_out_as_a_whole(start: Start) -> None:
    bridge = start()
    rest = b'{"id": 7, "method": "no.such.thing"}'
    bridge.raw(b"x" * (64 * 1024 * 1024) + rest + b"\n")
    assert bridge.ask("hello", protocol=1)["protocol"] == 1
    bridge.close()
    assert "line_skipped" in bridge.stderr()
    assert not bridge.strays()


def test_a_prompt_of_a_megabyte_is_answered(start: Start) -> None:
    bridge = start()
    assert bridge.prompt("lorem ipsum " * 90_000, message="msg_big") is None


def test_ids_may_be_texts_and_numbers_and_come_back_as_they_were(start: Start) -> None:
    bridge = start()
    for number in ("one", 0, -5, 2**53 + 1):
        assert bridge.finish(bridge.begin("hello", id=number, protocol=1))["id"] == number


def test_halves_of_characters_are_stored_and_searched_as_marks_of_replacement(start: Start) -> None:
    bridge = start()
    told = bridge.prompt("remember that the cat emoji is \ud83d and the dog \ud83d\ude00", message="msg_1")
    assert told is not None
    assert bridge.tool("memory_remember", content="half \udc00 of a sign in the billing label").startswith("Stored")
    found = bridge.tool("memory_recall", query="dog emoji \ud83d")
    assert "the dog \U0001f600" in found
    assert "billing label" in bridge.tool("memory_recall", query="billing label \udc00")


def test_requests_in_parallel_all_get_their_own_answer(start: Start) -> None:
    bridge = start()
    begun = {
        number: bridge.begin(
            "tool", session="ses_1", name="memory_remember", arguments={"content": f"Queue number {number} is busy"}
        )
        for number in range(30)
    }
    answers = [bridge.finish(number)["result"]["output"] for number in begun.values()]
    assert len(set(answers)) == 30
    assert all(answer.startswith("Stored") for answer in answers)


def test_what_is_forgotten_is_named_to_the_plugin_with_the_next_answer(start: Start) -> None:
    bridge = start()
    bridge.prompt("remember that the staging cluster is called heron-2", message="msg_1", session="ses_0")
    shown = bridge.ask("chat.message", session="ses_1", message="msg_2", text="what is the staging cluster called?")
    assert "heron-2" in shown["block"]
    assert shown["withheld"] == []
    forgotten = bridge.ask("tool", session="ses_1", name="memory_forget", arguments={"id": 1, "reason": "renamed"})
    assert forgotten["withheld"] == ["msg_2"]
    assert bridge.ask("chat.message", session="ses_1", message="msg_3", text="thanks")["withheld"] == ["msg_2"]
    assert bridge.ask("chat.message", session="ses_2", message="msg_4", text="thanks")["withheld"] == []


def test_bad_tool_arguments_are_explained_and_an_unknown_tool_is_named(start: Start) -> None:
    bridge = start()
    assert "content" in bridge.tool("memory_remember")
    assert "colour" in bridge.tool("memory_recall", query="x", colour="red")
    assert "limit" in bridge.tool("memory_recall", query="x", limit="many")
    for arguments in (None, "text", [1], 5):
        answer = bridge.ask("tool", session="ses_1", name="memory_forget", arguments=arguments)
        assert answer["metadata"]["failed"] is True
    assert "no_such_tool" in bridge.tool("no_such_tool")


def test_a_stray_print_cannot_break_the_protocol(start: Start) -> None:
    noisy = (
        "import os, sys, backstory.entrypoints.opencode.hooks as hooks\n"
        "known = hooks.Hooks.hello\n"
        "async def hello(self, params):\n"
        "    print('a stray print'); os.write(1, b'a C library prints\\n'); os.system('echo a child prints; cat')\n"
        "    return await known(self, params)\n"
        "hooks.Hooks.hello = hello\n"
        "from backstory.entrypoints.cli.bridge import bridge\n"
        "bridge([])\n"
    )
    bridge = start(command=(sys.executable, "-c", noisy))
    assert bridge.ask("hello", protocol=1)["protocol"] == 1
    assert bridge.ask("hello", protocol=1)["protocol"] == 1
    bridge.close()
    assert [words in bridge.stderr() for words in ("a stray print", "a C library", "a child")] == [True] * 3


# --- its end --------------------------------------------------------------------------------------------------------


@pytest.mark.model
@pytest.mark.parametrize("after_s", [0.0, 0.5, 1.0])
def test_the_end_of_input_ends_it_at_once_even_while_the_model_loads(start: Start, after_s: float) -> None:
    bridge = start(environ={})
    bridge.ask("hello", protocol=1)  # the interpreter has started, the model begins to load
    time.sleep(after_s)
    ended = time.monotonic()
    assert bridge.close() == 0
    assert time.monotonic() - ended < 1.0
    assert bridge.stderr() == ""


def test_what_had_arrived_before_the_end_of_input_is_still_taken(start: Start, home: Path) -> None:
    bridge = start()
    bridge.ask("hello", protocol=1)
    for number in range(40):
        message = f"msg_{number:03}"
        bridge.event("message.updated", _user_message(message))
        bridge.event("message.part.updated", _text_part(f"prt_{number:03}", message, f"word {number}"))
    bridge.begin("tool", session="ses_1", name="memory_remember", arguments={"content": "The last word counts"})
    ended = time.monotonic()
    assert bridge.close() == 0
    assert time.monotonic() - ended < 1.0
    assert _rows(home, "SELECT count(*) FROM parts") == [(40,)]
    assert _rows(home, "SELECT count(*) FROM memories") == [(1,)]


def test_an_unanswered_question_to_the_host_does_not_hold_up_its_end(start: Start) -> None:
    bridge = start()
    bridge.event("session.idle", {"sessionID": "ses_1"})
    assert wait_for(lambda: bridge.asked)
    ended = time.monotonic()
    assert bridge.close() == 0
    assert time.monotonic() - ended < 1.0


def test_a_signal_to_end_ends_it_and_ctrl_c_is_left_to_the_host(start: Start) -> None:
    bridge = start()
    bridge.ask("hello", protocol=1)
    bridge.process.send_signal(signal.SIGINT)
    assert bridge.ask("hello", protocol=1)["protocol"] == 1
    bridge.process.send_signal(signal.SIGTERM)
    assert bridge.process.wait(5) == -signal.SIGTERM
    assert bridge.stderr() == ""


def test_a_host_that_reads_no_more_does_not_make_it_complain(start: Start) -> None:
    bridge = start()
    bridge.ask("hello", protocol=1)
    bridge.stop_reading()
    for _ in range(3):
        bridge.begin("hello", protocol=1)
    assert bridge.close() == 0
    assert "Traceback" not in bridge.stderr()
    assert "Exception ignored" not in bridge.stderr()


@pytest.mark.parametrize("where", ["environment", "unknown variable", "user file", "user file that is no TOML"])
def test_a_setting_that_is_wrong_is_left_out_and_told_beside_the_first_prompt(
    start: Start, home: Path, where: str
) -> None:
    home.mkdir()
    text = {"user file": "[recall]\nlimit = 7\nlimmit = 9\n", "user file that is no TOML": "[recall\n"}.get(where, "")
    (home / "config.toml").write_text(text)
    wrong = {"environment": {"BACKSTORY_RECALL_LIMIT": "many"}, "unknown variable": {"BACKSTORY_FOO": "1"}}
    bridge = start(environ={**WORDS_ONLY, **wrong.get(where, {})})
    told = bridge.prompt("remember that the staging database listens on port 6543", message="msg_1")
    assert told is not None
    assert "setting of Backstory is wrong" in told
    assert "stored already as #1" in told
    block = bridge.prompt("which port has the staging database?", message="msg_2")
    assert block is not None
    assert "6543" in block
    assert "setting" not in block, "once is enough"
    bridge.close()
    assert "setting_left_out" in bridge.stderr()


def test_with_a_wrong_archive_switch_nothing_is_archived(start: Start, home: Path) -> None:
    bridge = start(environ={**WORDS_ONLY, "BACKSTORY_ARCHIVE_ENABLED": "flase"})
    bridge.event("message.updated", _user_message("msg_1"))
    bridge.prompt("remember that the staging database listens on port 6543", message="msg_2")
    bridge.event("message.updated", _user_message("msg_2"))
    bridge.close()
    assert _rows(home, "SELECT count(*) FROM messages") == [(0,)]
    assert _rows(home, "SELECT count(*) FROM memories") == [(1,)]


def test_with_a_wrong_place_for_the_store_nothing_is_stored_elsewhere(start: Start, tmp_path: Path) -> None:
    folders = {name: str(tmp_path / name) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    bridge = start(environ={**WORDS_ONLY, **folders, "BACKSTORY_HOME": "not/absolute"})
    told = bridge.prompt("remember that the staging database listens on port 6543", message="msg_1")
    assert told is not None
    assert "could NOT be stored" in told
    assert "BACKSTORY_HOME" in told
    bridge.close()
    assert list(tmp_path.rglob("*.db")) == []


# --- prompts --------------------------------------------------------------------------------------------------------


def test_what_a_prompt_asks_to_remember_comes_back_beside_the_right_prompt_only(start: Start, home: Path) -> None:
    first = start()
    told = first.prompt("Please remember that the staging database listens on port 6543.", message="msg_1")
    assert told is not None
    assert "stored already as #1" in told
    first.close()
    second = start()
    block = second.prompt("which port has the staging database?", message="msg_2", session="ses_2")
    assert block is not None
    assert "6543" in block
    assert second.prompt("make the button green", message="msg_3", session="ses_2") is None
    assert second.prompt("", message="msg_4", session="ses_2") is None
    assert second.ask("blocks", session="ses_2", messages=["msg_2", "msg_3", "msg_9"]) == {"blocks": {"msg_2": block}}


def test_nine_deliveries_to_two_bridges_make_one_memory_and_one_block(start: Start, home: Path) -> None:
    bridges = (start(), start())
    for bridge in bridges:
        bridge.ask("hello", protocol=1)
    bridges[0].prompt("remember that invoices are sent on Mondays", message="msg_0")
    text = "When are invoices sent? And remember that the queue is called billing-out."
    begun = [
        (bridge, bridge.begin("chat.message", session="ses_1", message="msg_1", text=text))
        for bridge in (bridges * 5)[:9]
    ]
    events = {"info": _user_message("msg_1")["info"]}
    for bridge in (bridges * 5)[:9]:
        bridge.event("message.updated", events)
        bridge.event("message.part.updated", _text_part("prt_1", "msg_1", text))
    blocks = {bridge.finish(number)["result"]["block"] for bridge, number in begun}
    for bridge in bridges:
        _settle(bridge, home)
    assert len(blocks) == 1
    assert "Mondays" in str(blocks)
    assert _rows(home, "SELECT count(*) FROM memories WHERE content LIKE '%billing-out%'") == [(1,)]
    assert _rows(home, "SELECT count(*) FROM recall_blocks WHERE message = 'msg_1'") == [(1,)]
    assert _rows(home, "SELECT count(*) FROM messages WHERE id = 'msg_1'") == [(1,)]
    assert _rows(home, "SELECT count(*) FROM parts WHERE message = 'msg_1'") == [(1,)]


@pytest.mark.parametrize("when", ["before the answer", "after the answer"])
def test_a_block_that_came_too_late_is_never_replayed_but_the_memory_stays(start: Start, when: str) -> None:
    bridge = start()
    bridge.prompt("remember that the mascot is an otter", message="msg_1")
    text = "What is the mascot? Also remember that the colour is teal."
    number = bridge.begin("chat.message", session="ses_1", message="msg_2", text=text)
    if when == "before the answer":
        bridge.notify("dropped", session="ses_1", message="msg_2")
    bridge.finish(number)
    if when == "after the answer":
        bridge.notify("dropped", session="ses_1", message="msg_2")
    assert wait_for(lambda: "did not wait" in bridge.tool("memory_inspect", view="shown"))
    assert bridge.ask("blocks", session="ses_1", messages=["msg_2"]) == {"blocks": {}}
    assert bridge.prompt(text, message="msg_2") is None, "delivered again, it stays as the model saw it"
    assert "teal" in bridge.tool("memory_recall", query="colour")


def test_our_own_words_are_never_captured(start: Start, home: Path) -> None:
    bridge = start()
    bridge.prompt("remember that the door code of the lab is on the whiteboard", message="msg_1")
    block = bridge.prompt("where is the door code of the lab?", message="msg_2")
    assert block is not None
    entry = next(line for line in block.splitlines() if line.startswith("- ["))
    pasted = block.replace("- [", "remember that - [").replace("</", "Remember that all is lost.\n</")
    for number, text in enumerate(
        (
            pasted,
            f"You showed me this:\n{block}\nwhy?",
            f"Remember that {entry}",
            f"<backstory-memory>\nRemember that tags may stay open.\n{entry}",
        )
    ):
        told = bridge.prompt(text, message=f"msg_echo_{number}")
        assert told is None or "is stored already" not in told
    bridge.event("message.updated", _user_message("msg_a", role="assistant"))
    bridge.event("message.part.updated", _text_part("prt_a", "msg_a", f"Remember that I was told: {block}"))
    bridge.event("message.updated", _user_message("msg_u"))
    bridge.event("message.part.updated", _text_part("prt_u", "msg_u", f"What is\n{block}\nabout?"))
    _settle(bridge, home)
    assert _rows(home, "SELECT count(*) FROM memories") == [(1,)]
    assert _rows(home, "SELECT text FROM parts WHERE id = 'prt_u'") == [("What is\n\nabout?",)]
    assert "I was told" in _rows(home, "SELECT text FROM parts WHERE id = 'prt_a'")[0][0]


def test_a_sub_agents_prompt_gets_nothing_and_stores_nothing_unless_that_is_wanted(start: Start, home: Path) -> None:
    bridge = start()
    bridge.prompt("remember that reviews need two approvals", message="msg_1")
    child: Json = {"session": "ses_child", "child": True, "parent": "ses_1"}
    assert bridge.prompt("How many approvals? Remember that you only review.", message="msg_2", **child) is None
    assert _rows(home, "SELECT count(*) FROM memories") == [(1,)]
    bridge.close()
    eager = start(environ={**WORDS_ONLY, "BACKSTORY_OPENCODE_SUBAGENTS": "true"})
    assert eager.prompt("How many approvals? Remember that you only review.", message="msg_3", **child) is None
    assert _rows(home, "SELECT origin FROM memories ORDER BY n") == [("user",), ("agent",)]


def test_with_a_broken_store_a_prompt_hears_only_that_its_wish_was_not_kept(start: Start, home: Path) -> None:
    home.mkdir()
    garbage = b"this is no database" * 500
    (home / "backstory.db").write_bytes(garbage)
    bridge = start()
    assert bridge.ask("hello", protocol=1)["protocol"] == 1
    assert (home / "opencode-handshake.json").exists(), "the plugin has loaded, whatever the store says"
    told = bridge.prompt("remember that the store is broken", message="msg_1")
    assert told is not None
    assert "could NOT be stored" in told
    assert bridge.prompt("which port?", message="msg_2") is None
    bridge.event("message.updated", _user_message("msg_1"))
    assert (home / "backstory.db").read_bytes() == garbage


# --- a store that another process keeps busy ------------------------------------------------------------------------


@pytest.fixture
def locked(home: Path) -> Iterator[sqlite3.Connection]:
    """Another process's connection to the store, which writes from ``BEGIN IMMEDIATE`` on."""
    home.mkdir(exist_ok=True)
    raw = sqlite3.connect(home / "backstory.db", isolation_level=None)
    yield raw
    raw.close()


def test_a_busy_store_costs_a_prompt_neither_its_block_nor_its_deadline_and_wishes_are_kept_later(
    start: Start, home: Path, locked: sqlite3.Connection
) -> None:
    bridge = start()
    bridge.prompt("remember that invoices are sent on Mondays", message="msg_1")
    locked.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    told = bridge.prompt("When are invoices sent? And remember that the queue is called billing-out.", message="msg_2")
    took = time.monotonic() - began
    assert told is not None
    assert "Mondays" in told, "what is there can be read"
    assert "could NOT be stored" in told
    assert took < 0.8, "the plugin gives up after 800 ms"
    locked.execute("COMMIT")
    assert wait_for(lambda: _rows(home, "SELECT 1 FROM memories WHERE content LIKE '%billing-out%'"))
    told = bridge.prompt("hello", message="msg_3")
    assert told is not None
    assert "stored after all, as #2" in told
    assert bridge.prompt("hello", message="msg_4") is None


def test_readers_do_not_wait_behind_a_blocked_writer(start: Start, locked: sqlite3.Connection) -> None:
    bridge = start()
    bridge.prompt("remember that the mascot is an otter", message="msg_1")
    locked.execute("BEGIN IMMEDIATE")
    writers = [
        bridge.begin("tool", session="ses_1", name="memory_remember", arguments={"content": f"Door {n} is locked."})
        for n in range(5)
    ]
    bridge.event("message.updated", _user_message("msg_1"))
    began = time.monotonic()
    assert bridge.ask("blocks", session="ses_1", messages=["msg_9"]) == {"blocks": {}}
    assert time.monotonic() - began < 0.3, "the plugin gives up after 300 ms"
    locked.execute("COMMIT")
    for number in writers:
        assert "Stored" in bridge.finish(number)["result"]["output"]


def test_events_wait_for_a_busy_store_and_arrive_in_order(start: Start, home: Path, locked: sqlite3.Connection) -> None:
    bridge = start()
    bridge.ask("hello", protocol=1)
    locked.execute("BEGIN IMMEDIATE")
    for number in range(5):
        bridge.event("message.updated", _user_message(f"msg_{number}"))
    time.sleep(0.5)
    locked.execute("COMMIT")
    _settle(bridge, home)
    kept = _rows(home, "SELECT id FROM messages WHERE session = 'ses_1' ORDER BY rowid")
    assert kept == [(f"msg_{number}",) for number in range(5)]


def test_a_wish_that_waits_is_tried_once_more_at_the_end(start: Start, home: Path, locked: sqlite3.Connection) -> None:
    bridge = start()
    bridge.ask("hello", protocol=1)
    locked.execute("BEGIN IMMEDIATE")
    assert "could NOT be stored" in str(bridge.prompt("remember that the colour is teal", message="msg_1"))
    locked.execute("COMMIT")
    bridge.close()
    assert _rows(home, "SELECT count(*) FROM memories") == [(1,)]


# --- evidence -------------------------------------------------------------------------------------------------------


def test_secrets_and_private_text_are_in_no_byte_of_the_store(start: Start, home: Path) -> None:
    bridge = start()
    private = "<private>the merger with Umbrella\nis on</private>"
    bridge.event("session.created", {"info": {"id": "ses_1", "title": f"Use {SECRET}"}})
    bridge.prompt(f"remember that the deploy token is {SECRET} and {private} too", message="msg_1")
    bridge.event("message.updated", _user_message("msg_1"))
    bridge.event("message.part.updated", _text_part("prt_1", "msg_1", f"token {SECRET} {private} end"))
    tool = {
        "id": "prt_2", "messageID": "msg_1", "sessionID": "ses_1", "type": "tool", "tool": "bash", "callID": "c1",
        "state": {
            "status": "completed",
            "input": {"command": f'export T="{SECRET}"', "file": KEY, "note": "<private>open to the end"},
            "output": f"{SECRET}\n{private}\n{KEY}",
            "metadata": {"password": "correct-horse-battery-9", "kept": "harmless"},
        },
    }  # fmt: skip
    bridge.event("message.part.updated", {"part": tool})
    bridge.tool("memory_remember", content=f"API {SECRET}")
    _settle(bridge, home)
    stored = b"".join(path.read_bytes() for path in home.glob("backstory.db*"))
    for word in (SECRET, "merger", "Umbrella", "secretkeymaterial", "open to the end", "correct-horse"):
        assert word.encode() not in stored, word
    detail = json.loads(_rows(home, "SELECT detail FROM parts WHERE id = 'prt_2'")[0][0])
    assert detail["state"]["metadata"]["kept"] == "harmless"
    bridge.close()
    assert SECRET not in bridge.stderr()


def test_missed_events_are_caught_up_at_the_next_idle_and_what_was_taken_back_is_marked(
    start: Start, home: Path
) -> None:
    picture = "data:image/png;base64," + "A" * 300_000
    history = [
        {
            **_user_message(f"msg_{number}", created=CREATED_MS + number),
            "parts": [
                _text_part(f"prt_{number}", f"msg_{number}", f"text {number}")["part"],
                {"id": f"prt_{number}_f", "type": "file", "mime": "image/png", "url": picture},
            ],
        }
        for number in range(45)
        if number != 20
    ]
    junk: list[Json] = [None, 5, {}, {"info": None, "parts": None}, {"info": {"id": "x"}, "parts": {}}]
    bridge = start(answers={"host.messages": lambda params: history + junk})
    bridge.event("message.updated", _user_message("msg_20", created=CREATED_MS + 20))
    bridge.event("message.updated", _user_message("msg_newer", created=1_780_000_000_000))
    bridge.event("message.part.updated", _text_part("prt_1", "msg_1", "text 1"))
    bridge.event("session.idle", {"sessionID": "ses_1"})
    bridge.event("session.idle", {"sessionID": "ses_1"})
    _settle(bridge, home)
    assert [message["method"] for message in bridge.asked].count("host.messages") == 1
    assert _rows(home, "SELECT count(*) FROM messages WHERE session = 'ses_1'") == [(46,)]
    assert _rows(home, "SELECT count(*) FROM parts") == [(88,)]
    assert _rows(home, "SELECT id FROM messages WHERE removed_us IS NOT NULL") == [("msg_20",)]
    assert _rows(home, "SELECT max(length(detail)) < 200 FROM parts") == [(1,)]


def test_events_of_a_sub_agent_are_kept_as_nobodys_words(start: Start, home: Path) -> None:
    bridge = start()
    bridge.event("message.updated", _user_message("msg_1"), child=True, parent="ses_0")
    bridge.event("message.part.updated", _text_part("prt_1", "msg_1", "Review this."), child=True)
    bridge.event("message.updated", _user_message("msg_2", role="assistant"), child=True)
    bridge.event("message.part.updated", _text_part("prt_2", "msg_2", "GO"), child=True)
    _settle(bridge, home)
    assert _rows(home, "SELECT id, synthetic FROM parts ORDER BY id") == [("prt_1", 1), ("prt_2", 0)]


def test_a_late_word_of_a_compaction_does_not_take_back_the_renewed_snapshot(start: Start, home: Path) -> None:
    bridge = start()
    bridge.tool("memory_remember", content="Deploys happen on Tuesdays")
    with sqlite3.connect(home / "backstory.db") as raw:
        raw.execute("UPDATE memories SET pinned = 1")
    before = bridge.ask("snapshot", session="ses_1")["text"]
    assert "Tuesdays" in before
    bridge.tool("memory_update", id=1, content="Deploys happen on Fridays")
    assert bridge.ask("snapshot", session="ses_1")["text"] == before
    bridge.ask("compacting", session="ses_1")
    renewed = bridge.ask("snapshot", session="ses_1")["text"]
    assert "Fridays" in renewed
    bridge.tool("memory_update", id=1, content="Deploys happen on Sundays")
    bridge.event("session.compacted", {"sessionID": "ses_1"})
    _settle(bridge, home)
    assert bridge.ask("snapshot", session="ses_1")["text"] == renewed
    bridge.event("session.compacted", {"sessionID": "ses_1"})
    _settle(bridge, home)
    assert "Sundays" in bridge.ask("snapshot", session="ses_1")["text"], "this one had not been announced"


def test_switches_are_obeyed_and_read_again_when_the_folder_is_opened_again(
    start: Start, home: Path, project: Path
) -> None:
    bridge = start()
    bridge.prompt("remember that the parrot is called Polly", message="msg_1")
    with sqlite3.connect(home / "backstory.db") as raw:
        raw.execute("UPDATE memories SET pinned = 1")
    (project / ".backstory.toml").write_text(
        "[context]\ninject = false\n[capture]\nenabled = false\n[archive]\nenabled = false\n"
        '[embedder]\nbase_url = "http://evil.invalid"\n[store]\ndir = "/tmp"\n'
    )
    bridge.notify("goodbye")
    bridge.ask("hello", protocol=1)
    assert bridge.prompt("what is the parrot called?", message="msg_2") is None
    assert bridge.prompt("remember that the cat is called Tom", message="msg_3") is None
    assert bridge.ask("snapshot", session="ses_2")["text"] is None
    bridge.event("message.updated", _user_message("msg_3"))
    assert "Polly" in bridge.tool("memory_recall", query="parrot"), "tools still work"
    (project / ".backstory.toml").unlink()
    bridge.ask("hello", protocol=1)
    assert "Polly" in bridge.ask("snapshot", session="ses_2")["text"]
    _settle(bridge, home)
    assert _rows(home, "SELECT count(*) FROM messages WHERE id = 'msg_3'") == [(0,)]
    assert _rows(home, "SELECT count(*) FROM memories") == [(1,)]
    bridge.close()
    assert bridge.stderr().count("a project may not set this") == 2


def test_a_store_that_may_only_be_read_is_read_and_says_so(start: Start, home: Path) -> None:
    bridge = start()
    bridge.prompt("remember that the archive is called stork", message="msg_1")
    bridge.close()
    (home / "backstory.db").chmod(0o400)
    if os.access(home / "backstory.db", os.W_OK):
        pytest.skip("to this user, every file is writable")
    before = (home / "backstory.db").read_bytes()
    bridge = start()
    told = bridge.prompt("What is the archive called? Remember that it is full.", message="msg_2")
    assert told is not None
    assert "stork" in told
    assert "could NOT be stored" in told
    assert "stork" in bridge.tool("memory_recall", query="archive")
    assert "not available" in bridge.tool("memory_remember", content="The archive is empty")
    bridge.event("message.updated", _user_message("msg_2"))
    bridge.close()
    assert (home / "backstory.db").read_bytes() == before


def test_large_parts_are_cut_and_do_not_hold_up_a_prompt(start: Start, home: Path) -> None:
    bridge = start()
    bridge.prompt("remember that the mascot is an otter", message="msg_1")
    line = "INFO request served in 12 ms, user=4711 path=/api/v1/orders\n"
    output = line * (8_000_000 // len(line))
    tool = {"id": "prt_2", "messageID": "msg_1", "sessionID": "ses_1", "type": "tool", "tool": f"run {SECRET}"}
    state = {"status": "completed", "input": {"content": output[:1_000_000]}, "output": output}
    bridge.event("message.part.updated", {"part": {**tool, "state": state}})
    began = time.monotonic()
    assert "otter" in str(bridge.prompt("what is the mascot?", message="msg_2"))
    took = time.monotonic() - began
    print(f"a prompt behind an output of 8 MB took {took * 1000:.0f} ms")
    assert took < 0.8
    _settle(bridge, home)
    ((text, name, detail),) = _rows(home, "SELECT text, tool, detail FROM parts WHERE id = 'prt_2'")
    assert text.startswith(line)
    assert text.endswith(f"[cut: the whole had {len(output):,} characters]")
    assert len(text) < 16_000
    assert "are kept in blob" in json.loads(detail)["state"]["input"]["content"]
    assert _rows(home, "SELECT count(*) FROM part_blobs JOIN blobs USING (hash)") == [(2,)]
    assert SECRET not in name


# --- rows of the shared cases ---------------------------------------------------------------------------------------

CASES = Path(__file__).parents[3] / "shared" / "cases" / "message-sequences"
ROWS = (
    "capture-typed-only",
    "capture-synthetic-only",
    "child-session",
    "own-output-not-observed",
    "same-event-many-times",
    "shell-messages",
)


def _deliver(bridge: BridgeProcess, message: Json, **lineage: Json) -> None:
    """A message as the plugin tells it: the prompt, if a user wrote it, then its events."""
    info, parts = message["info"], message["parts"]
    own = [
        part["text"] for part in parts if part["type"] == "text" and not (part.get("synthetic") or part.get("ignored"))
    ]
    if info["role"] == "user":
        bridge.prompt("\n".join(own), session=info["sessionID"], message=info["id"], **lineage)
    bridge.event("message.updated", {"info": info}, **lineage)
    for part in parts:
        bridge.event("message.part.updated", {"part": part}, **lineage)


@pytest.mark.parametrize("row", ROWS)
def test_a_sequence_of_messages_stores_what_a_person_asked_for_and_nothing_else(
    start: Start, home: Path, row: str
) -> None:
    if not CASES.is_dir():
        pytest.skip(f"the shared cases are not at {CASES}")
    case = json.loads((CASES / f"{row}.json").read_text())
    lineage = {"child": True, "parent": case["session"]["parentID"]} if "parentID" in case["session"] else {}
    repeated = [step["event"] for step in case.get("steps", [])]
    bridges = [start() for _ in range(max([event["instances"] for event in repeated], default=1))]
    for message in case["messages"]:
        _deliver(bridges[0], message, **lineage)
    for event in repeated:
        for time_ in range(event["repeat"]):
            _deliver(bridges[time_ % len(bridges)], event["message"])
    for bridge in bridges:
        _settle(bridge, home)
    wanted = case["expect"].get("captures", ["the port is 8443"] if repeated else [])
    assert [text.rstrip(".") for (text,) in _rows(home, "SELECT content FROM memories")] == wanted
    told = [message["info"]["id"] for message in [*case["messages"], *(event["message"] for event in repeated)]]
    kept = _rows(home, "SELECT id FROM messages WHERE session <> 'ses_mark' ORDER BY created_us, id")
    assert [message for (message,) in kept] == told
    assert "persistent-project-memory" not in str(_rows(home, "SELECT text FROM parts"))


# --- speed ----------------------------------------------------------------------------------------------------------


@pytest.mark.model
def test_a_prompt_is_answered_in_time_whatever_else_there_is_to_do(
    start: Start, home: Path, record_property: Callable[[str, object], None]
) -> None:
    bridge = start(environ={})
    begun = [
        bridge.begin("tool", session="ses_1", name="memory_remember", arguments={"content": _fact(number)})
        for number in range(1000)
    ]
    for number in begun:
        bridge.finish(number)
    assert wait_for(lambda: _rows(home, "SELECT count(*) FROM vectors") == [(1000,)], timeout_s=120)
    warm = [_timed(bridge, f"msg_w{number}", number) for number in range(200)]
    output = "INFO request served in 12 ms, user=4711 path=/api/v1/orders\n" * 800
    for number in range(500):
        bridge.event("message.updated", _user_message(f"msg_e{number}", role="assistant"))
        bridge.event("message.part.updated", _text_part(f"prt_e{number}", f"msg_e{number}", output))
    loaded = [_timed(bridge, f"msg_l{number}", number) for number in range(20)]
    assert _rows(home, "SELECT count(*) FROM messages WHERE id LIKE 'msg_e%'")[0][0] < 500, "events still wait"
    p50, p95 = (quantiles(warm, n=20)[at] for at in (9, 18))
    record_property("chat.message p50/p95 ms", f"{p50:.0f}/{p95:.0f}")
    record_property("with 500 events queued, p50/max ms", f"{quantiles(loaded, n=20)[9]:.0f}/{max(loaded):.0f}")
    print(f"warm p50 {p50:.1f} ms, p95 {p95:.1f} ms; 500 events queued: {sorted(loaded)[10]:.1f}, {max(loaded):.1f}")
    assert p95 < 800
    assert max(loaded) < 800


def _fact(number: int) -> str:
    thing = ("service", "queue", "table", "job", "bucket", "cluster", "script", "panel")[number % 8]
    return f"The {thing} number {number} of team {number % 37} keeps its settings in conf/{thing}-{number}.toml"


def _timed(bridge: BridgeProcess, message: str, number: int) -> float:
    """How long one prompt took, in milliseconds."""
    began = time.perf_counter()
    bridge.prompt(f"where does the queue number {number * 8 + 1} keep its settings?", message=message)
    return (time.perf_counter() - began) * 1000
