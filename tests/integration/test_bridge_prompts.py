"""Prompts at the bridge: what comes back beside them, what is remembered of them, and how soon."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

import pytest

from backstory.testing.opencode import wait_for
from tests.integration.bridge_home import WORDS_ONLY, Start, kept_rows, settle, text_part, user_message
from tests.integration.bridge_home import home as home
from tests.integration.bridge_home import project as project
from tests.integration.bridge_home import start as start
from tests.integration.bridge_process import HASTY, BridgeProcess, Json, in_time


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
    events = {"info": user_message("msg_1")["info"]}
    for bridge in (bridges * 5)[:9]:
        bridge.event("message.updated", events)
        bridge.event("message.part.updated", text_part("prt_1", "msg_1", text))
    blocks = {bridge.finish(number)["result"]["block"] for bridge, number in begun}
    for bridge in bridges:
        settle(bridge, home)
    assert len(blocks) == 1
    assert "Mondays" in str(blocks)
    assert kept_rows(home, "SELECT count(*) FROM memories WHERE content LIKE '%billing-out%'") == [(1,)]
    assert kept_rows(home, "SELECT count(*) FROM recall_blocks WHERE message = 'msg_1'") == [(1,)]
    assert kept_rows(home, "SELECT count(*) FROM messages WHERE id = 'msg_1'") == [(1,)]
    assert kept_rows(home, "SELECT count(*) FROM parts WHERE message = 'msg_1'") == [(1,)]


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
    bridge.event("message.updated", user_message("msg_a", role="assistant"))
    bridge.event("message.part.updated", text_part("prt_a", "msg_a", f"Remember that I was told: {block}"))
    bridge.event("message.updated", user_message("msg_u"))
    bridge.event("message.part.updated", text_part("prt_u", "msg_u", f"What is\n{block}\nabout?"))
    settle(bridge, home)
    assert kept_rows(home, "SELECT count(*) FROM memories") == [(1,)]
    assert kept_rows(home, "SELECT text FROM parts WHERE id = 'prt_u'") == [("What is\n\nabout?",)]
    assert "I was told" in kept_rows(home, "SELECT text FROM parts WHERE id = 'prt_a'")[0][0]


def test_a_sub_agents_prompt_gets_nothing_and_stores_nothing_unless_that_is_wanted(start: Start, home: Path) -> None:
    bridge = start()
    bridge.prompt("remember that reviews need two approvals", message="msg_1")
    child: Json = {"session": "ses_child", "child": True, "parent": "ses_1"}
    assert bridge.prompt("How many approvals? Remember that you only review.", message="msg_2", **child) is None
    assert kept_rows(home, "SELECT count(*) FROM memories") == [(1,)]
    bridge.close()
    eager = start(environ={**WORDS_ONLY, "BACKSTORY_OPENCODE_SUBAGENTS": "true"})
    assert eager.prompt("How many approvals? Remember that you only review.", message="msg_3", **child) is None
    assert kept_rows(home, "SELECT origin FROM memories ORDER BY n") == [("user",), ("agent",)]


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
    bridge.event("message.updated", user_message("msg_1"))
    assert (home / "backstory.db").read_bytes() == garbage


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
        settle(bridge, home)
    wanted = case["expect"].get("captures", ["the port is 8443"] if repeated else [])
    assert [text.rstrip(".") for (text,) in kept_rows(home, "SELECT content FROM memories")] == wanted
    told = [message["info"]["id"] for message in [*case["messages"], *(event["message"] for event in repeated)]]
    kept = kept_rows(home, "SELECT id FROM messages WHERE session <> 'ses_mark' ORDER BY created_us, id")
    assert [message for (message,) in kept] == told
    assert "persistent-project-memory" not in str(kept_rows(home, "SELECT text FROM parts"))


@pytest.mark.model
def test_a_prompt_is_answered_in_time_whatever_else_there_is_to_do(
    start: Start, home: Path, record_property: Callable[[str, object], None]
) -> None:
    bridge = start(environ=HASTY)
    begun = [
        bridge.begin("tool", session="ses_1", name="memory_remember", arguments={"content": _fact(number)})
        for number in range(1000)
    ]
    for number in begun:
        bridge.finish(number)
    assert wait_for(lambda: kept_rows(home, "SELECT count(*) FROM vectors") == [(1000,)], timeout_s=120)
    rounds, warm = itertools.count(1), list[float]()

    def attempt() -> float:
        nth = next(rounds)
        warm[:] = [_timed(bridge, f"msg_w{nth}_{number}", number) for number in range(200)]
        return quantiles(warm, n=20)[18] / 1000

    in_time(attempt, 0.8)
    output = "INFO request served in 12 ms, user=4711 path=/api/v1/orders\n" * 800
    for number in range(500):
        bridge.event("message.updated", user_message(f"msg_e{number}", role="assistant"))
        bridge.event("message.part.updated", text_part(f"prt_e{number}", f"msg_e{number}", output))
    loaded = [_timed(bridge, f"msg_l{number}", number) for number in range(20)]
    assert kept_rows(home, "SELECT count(*) FROM messages WHERE id LIKE 'msg_e%'")[0][0] < 500, "events still wait"
    p50, p95 = (quantiles(warm, n=20)[at] for at in (9, 18))
    record_property("chat.message p50/p95 ms", f"{p50:.0f}/{p95:.0f}")
    record_property("with 500 events queued, p50/max ms", f"{quantiles(loaded, n=20)[9]:.0f}/{max(loaded):.0f}")
    print(f"warm p50 {p50:.1f} ms, p95 {p95:.1f} ms; 500 events queued: {sorted(loaded)[10]:.1f}, {max(loaded):.1f}")
    assert sorted(loaded)[10] < 800, "each of them would wait behind the events"


def _fact(number: int) -> str:
    thing = ("service", "queue", "table", "job", "bucket", "cluster", "script", "panel")[number % 8]
    return f"The {thing} number {number} of team {number % 37} keeps its settings in conf/{thing}-{number}.toml"


def _timed(bridge: BridgeProcess, message: str, number: int) -> float:
    """How long one prompt took, in milliseconds."""
    began = time.perf_counter()
    bridge.prompt(f"where does the queue number {number * 8 + 1} keep its settings?", message=message)
    return (time.perf_counter() - began) * 1000
