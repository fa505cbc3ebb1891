"""The bridge process alone, over pipes: what it answers, what it survives, and that it always ends."""

from __future__ import annotations

import itertools
import json
import math
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from backstory.testing.opencode import wait_for
from tests.integration.bridge_home import WORDS_ONLY, Start, kept_rows, text_part, user_message
from tests.integration.bridge_home import home as home
from tests.integration.bridge_home import project as project
from tests.integration.bridge_home import start as start
from tests.integration.bridge_process import in_time


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


@pytest.mark.model
@pytest.mark.parametrize("after_s", [0.0, 0.5, 1.0])
def test_the_end_of_input_ends_it_at_once_even_while_the_model_loads(start: Start, after_s: float) -> None:
    def attempt() -> float:
        bridge = start(environ={})
        bridge.ask("hello", protocol=1)  # the interpreter has started, the model begins to load
        time.sleep(after_s)
        took_s = bridge.end_s()
        assert bridge.stderr() == ""
        return took_s

    in_time(attempt, 1.0)


def test_what_had_arrived_before_the_end_of_input_is_still_taken(start: Start, home: Path) -> None:
    tries = itertools.count(1)

    def attempt() -> float:
        bridge, nth = start(), next(tries)
        bridge.ask("hello", protocol=1)
        for number in range(40):
            message = f"msg_{nth}_{number:03}"
            bridge.event("message.updated", user_message(message))
            bridge.event("message.part.updated", text_part(f"prt_{nth}_{number:03}", message, f"word {number}"))
        content = f"The last word of visitor {nth} counts"
        bridge.begin("tool", session="ses_1", name="memory_remember", arguments={"content": content})
        took_s = bridge.end_s()
        [(parts,)] = kept_rows(home, "SELECT count(*) FROM parts WHERE id LIKE ?", f"prt_{nth}_%")
        [(memories,)] = kept_rows(home, "SELECT count(*) FROM memories WHERE content LIKE ?", f"{content}%")
        return took_s if (parts, memories) == (40, 1) else math.inf  # it has only so long to take them

    in_time(attempt, 1.0)


def test_an_unanswered_question_to_the_host_does_not_hold_up_its_end(start: Start) -> None:
    def attempt() -> float:
        bridge = start()
        bridge.event("session.idle", {"sessionID": "ses_1"})
        assert wait_for(lambda: bridge.asked)
        return bridge.end_s()

    in_time(attempt, 1.0)


def test_a_wish_that_a_busy_store_did_not_take_is_still_tried_when_the_host_has_gone(start: Start, home: Path) -> None:
    bridge = start()
    bridge.prompt("What is there?", message="msg_1")
    with closing(sqlite3.connect(home / "backstory.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        bridge.begin("chat.message", session="ses_1", message="msg_2", text="Remember: the pier is closed in May.")
        assert bridge.process.stdin is not None
        bridge.process.stdin.close()
        assert wait_for(lambda: "capture_failed" in bridge.stderr())
    assert bridge.close() == 0
    assert kept_rows(home, "SELECT content FROM memories") == [("the pier is closed in May.",)]


def test_a_store_that_never_lets_go_does_not_keep_it_alive(start: Start) -> None:
    stuck = (
        "import threading, backstory.entrypoints.opencode.server as server\n"
        "from backstory.bootstrap import App\n"
        "from backstory.entrypoints.cli.bridge import bridge\n"
        "async def close(self):\n"
        "    threading.Event().wait()\n"
        "App.close = close\n"
        "server.DRAIN_WITHIN_S = server.CLOSE_WITHIN_S = 0.2\n"
        "bridge([])\n"
    )
    bridge = start(command=(sys.executable, "-c", stuck))
    assert bridge.ask("hello", protocol=1)["protocol"] == 1
    assert bridge.close() == 1


def test_a_signal_to_end_ends_it_and_ctrl_c_is_left_to_the_host(start: Start) -> None:
    bridge = start()
    bridge.ask("hello", protocol=1)
    bridge.process.send_signal(signal.SIGINT)
    assert bridge.ask("hello", protocol=1)["protocol"] == 1
    bridge.process.send_signal(signal.SIGTERM)
    assert bridge.process.wait(240) == -signal.SIGTERM
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
    bridge.event("message.updated", user_message("msg_1"))
    bridge.prompt("remember that the staging database listens on port 6543", message="msg_2")
    bridge.event("message.updated", user_message("msg_2"))
    bridge.close()
    assert kept_rows(home, "SELECT count(*) FROM messages") == [(0,)]
    assert kept_rows(home, "SELECT count(*) FROM memories") == [(1,)]


def test_with_a_wrong_place_for_the_store_nothing_is_stored_elsewhere(start: Start, tmp_path: Path) -> None:
    folders = {name: str(tmp_path / name) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    bridge = start(environ={**WORDS_ONLY, **folders, "BACKSTORY_HOME": "not/absolute"})
    told = bridge.prompt("remember that the staging database listens on port 6543", message="msg_1")
    assert told is not None
    assert "could NOT be stored" in told
    assert "BACKSTORY_HOME" in told
    bridge.close()
    assert list(tmp_path.rglob("*.db")) == []
