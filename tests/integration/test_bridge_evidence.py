"""What the bridge keeps of a session, and how it does while another process keeps the store busy."""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backstory.testing.opencode import wait_for
from tests.integration.bridge_home import CREATED_MS, WORDS_ONLY, Start, kept_rows, settle, text_part, user_message
from tests.integration.bridge_home import home as home
from tests.integration.bridge_home import project as project
from tests.integration.bridge_home import start as start
from tests.integration.bridge_process import HASTY, Json, in_time

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
KEY = "\n".join(
    (
        "-----BEGIN RSA PRIVATE KEY-----",
        "MIIEowIBAAKCAQEAsecretkeymaterial0123456789ab",
        "-----END RSA PRIVATE KEY-----",
    )
)
SOON_S = 5.0
"""The plugin gives up after 0.8 s. A busy machine may be late; a bridge that waits for the store is so by 10 s."""


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
    bridge = start(environ=WORDS_ONLY | HASTY)
    bridge.prompt("remember that invoices are sent on Mondays", message="msg_1")
    locked.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    told = bridge.prompt("When are invoices sent? And remember that the queue is called billing-out.", message="msg_2")
    took = time.monotonic() - began
    assert told is not None
    assert "Mondays" in told, "what is there can be read"
    assert "could NOT be stored" in told
    assert took < SOON_S
    locked.execute("COMMIT")
    assert wait_for(lambda: kept_rows(home, "SELECT 1 FROM memories WHERE content LIKE '%billing-out%'"))
    told = bridge.prompt("hello", message="msg_3")
    assert told is not None
    assert "stored after all, as #2" in told
    assert bridge.prompt("hello", message="msg_4") is None


def test_readers_do_not_wait_behind_a_blocked_writer(start: Start, locked: sqlite3.Connection) -> None:
    bridge = start(environ=WORDS_ONLY | HASTY)
    bridge.prompt("remember that the mascot is an otter", message="msg_1")
    locked.execute("BEGIN IMMEDIATE")
    writers = [
        bridge.begin("tool", session="ses_1", name="memory_remember", arguments={"content": f"Door {n} is locked."})
        for n in range(5)
    ]
    bridge.event("message.updated", user_message("msg_1"))
    began = time.monotonic()
    assert bridge.ask("blocks", session="ses_1", messages=["msg_9"]) == {"blocks": {}}
    assert time.monotonic() - began < SOON_S
    locked.execute("COMMIT")
    for number in writers:
        assert "Stored" in bridge.finish(number)["result"]["output"]


def test_events_wait_for_a_busy_store_and_arrive_in_order(start: Start, home: Path, locked: sqlite3.Connection) -> None:
    bridge = start(environ=WORDS_ONLY | HASTY)
    bridge.ask("hello", protocol=1)
    locked.execute("BEGIN IMMEDIATE")
    for number in range(5):
        bridge.event("message.updated", user_message(f"msg_{number}"))
    time.sleep(0.5)
    locked.execute("COMMIT")
    settle(bridge, home)
    kept = kept_rows(home, "SELECT id FROM messages WHERE session = 'ses_1' ORDER BY rowid")
    assert kept == [(f"msg_{number}",) for number in range(5)]


def test_a_wish_that_waits_is_tried_once_more_at_the_end(start: Start, home: Path, locked: sqlite3.Connection) -> None:
    bridge = start(environ=WORDS_ONLY | HASTY)
    bridge.ask("hello", protocol=1)
    locked.execute("BEGIN IMMEDIATE")
    assert "could NOT be stored" in str(bridge.prompt("remember that the colour is teal", message="msg_1"))
    locked.execute("COMMIT")
    bridge.close()
    assert kept_rows(home, "SELECT count(*) FROM memories") == [(1,)]


def test_secrets_and_private_text_are_in_no_byte_of_the_store(start: Start, home: Path) -> None:
    bridge = start()
    private = "<private>the merger with Umbrella\nis on</private>"
    bridge.event("session.created", {"info": {"id": "ses_1", "title": f"Use {SECRET}"}})
    bridge.prompt(f"remember that the deploy token is {SECRET} and {private} too", message="msg_1")
    bridge.event("message.updated", user_message("msg_1"))
    bridge.event("message.part.updated", text_part("prt_1", "msg_1", f"token {SECRET} {private} end"))
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
    settle(bridge, home)
    stored = b"".join(path.read_bytes() for path in home.glob("backstory.db*"))
    for word in (SECRET, "merger", "Umbrella", "secretkeymaterial", "open to the end", "correct-horse"):
        assert word.encode() not in stored, word
    detail = json.loads(kept_rows(home, "SELECT detail FROM parts WHERE id = 'prt_2'")[0][0])
    assert detail["state"]["metadata"]["kept"] == "harmless"
    bridge.close()
    assert SECRET not in bridge.stderr()


def test_missed_events_are_caught_up_at_the_next_idle_and_what_was_taken_back_is_marked(
    start: Start, home: Path
) -> None:
    picture = "data:image/png;base64," + "A" * 300_000
    history = [
        {
            **user_message(f"msg_{number}", created=CREATED_MS + number),
            "parts": [
                text_part(f"prt_{number}", f"msg_{number}", f"text {number}")["part"],
                {"id": f"prt_{number}_f", "type": "file", "mime": "image/png", "url": picture},
            ],
        }
        for number in range(45)
        if number != 20
    ]
    junk: list[Json] = [None, 5, {}, {"info": None, "parts": None}, {"info": {"id": "x"}, "parts": {}}]
    bridge = start(answers={"host.messages": lambda params: history + junk})
    bridge.event("message.updated", user_message("msg_20", created=CREATED_MS + 20))
    bridge.event("message.updated", user_message("msg_newer", created=1_780_000_000_000))
    bridge.event("message.part.updated", text_part("prt_1", "msg_1", "text 1"))
    bridge.event("session.idle", {"sessionID": "ses_1"})
    bridge.event("session.idle", {"sessionID": "ses_1"})
    settle(bridge, home)
    assert [message["method"] for message in bridge.asked].count("host.messages") == 1
    assert kept_rows(home, "SELECT count(*) FROM messages WHERE session = 'ses_1'") == [(46,)]
    assert kept_rows(home, "SELECT count(*) FROM parts") == [(88,)]
    assert kept_rows(home, "SELECT id FROM messages WHERE removed_us IS NOT NULL") == [("msg_20",)]
    assert kept_rows(home, "SELECT max(length(detail)) < 200 FROM parts") == [(1,)]


def test_events_of_a_sub_agent_are_kept_as_nobodys_words(start: Start, home: Path) -> None:
    bridge = start()
    bridge.event("message.updated", user_message("msg_1"), child=True, parent="ses_0")
    bridge.event("message.part.updated", text_part("prt_1", "msg_1", "Review this."), child=True)
    bridge.event("message.updated", user_message("msg_2", role="assistant"), child=True)
    bridge.event("message.part.updated", text_part("prt_2", "msg_2", "GO"), child=True)
    settle(bridge, home)
    assert kept_rows(home, "SELECT id, synthetic FROM parts ORDER BY id") == [("prt_1", 1), ("prt_2", 0)]


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
    settle(bridge, home)
    assert bridge.ask("snapshot", session="ses_1")["text"] == renewed
    bridge.event("session.compacted", {"sessionID": "ses_1"})
    settle(bridge, home)
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
    bridge.event("message.updated", user_message("msg_3"))
    assert "Polly" in bridge.tool("memory_recall", query="parrot"), "tools still work"
    (project / ".backstory.toml").unlink()
    bridge.ask("hello", protocol=1)
    assert "Polly" in bridge.ask("snapshot", session="ses_2")["text"]
    settle(bridge, home)
    assert kept_rows(home, "SELECT count(*) FROM messages WHERE id = 'msg_3'") == [(0,)]
    assert kept_rows(home, "SELECT count(*) FROM memories") == [(1,)]
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
    bridge.event("message.updated", user_message("msg_2"))
    bridge.close()
    assert (home / "backstory.db").read_bytes() == before


def test_large_parts_are_cut_and_do_not_hold_up_a_prompt(start: Start, home: Path) -> None:
    bridge = start()
    bridge.prompt("remember that the mascot is an otter", message="msg_1")
    line = "INFO request served in 12 ms, user=4711 path=/api/v1/orders\n"
    output = line * (8_000_000 // len(line))
    state = {"status": "completed", "input": {"content": output[:1_000_000]}, "output": output}
    sessions = itertools.count(1)

    def attempt() -> float:
        nth = next(sessions)
        tool = {"id": f"prt_{nth}", "messageID": "msg_1", "sessionID": "ses_1", "type": "tool", "tool": f"run {SECRET}"}
        bridge.event("message.part.updated", {"part": {**tool, "state": state}})
        began = time.monotonic()
        assert "otter" in str(bridge.prompt("what is the mascot?", message=f"msg_q{nth}", session=f"ses_q{nth}"))
        took = time.monotonic() - began
        print(f"a prompt behind an output of 8 MB took {took * 1000:.0f} ms")
        settle(bridge, home)
        return took

    in_time(attempt, 0.8)
    ((text, name, detail),) = kept_rows(home, "SELECT text, tool, detail FROM parts WHERE id = 'prt_1'")
    assert text.startswith(line)
    assert text.endswith(f"[cut: the whole had {len(output):,} characters]")
    assert len(text) < 16_000
    assert "are kept in blob" in json.loads(detail)["state"]["input"]["content"]
    assert kept_rows(home, "SELECT count(*) FROM part_blobs JOIN blobs USING (hash) WHERE part = 'prt_1'") == [(2,)]
    assert SECRET not in name
