"""Stores of opencode-memory-tree: in as sessions that the tree's tool can open, out again byte for byte."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from backstory.domain.conversation import Message, Part, Role
from backstory.domain.digest import DigestUpdate
from backstory.domain.digest_plan import Listed, replacement
from backstory.domain.ids import MessageId, PartId
from backstory.domain.interchange import ForeignSession
from backstory.domain.observation_cursor import IMPORTED
from backstory.domain.tool_parts import tool_use
from backstory.entrypoints.drive import drive
from tests.unit.adapters.formats.barns import (
    BARN,
    FIRST,
    INNER,
    SECOND,
    TOP,
    barn,
    digest,
    messages,
    of,
    shown,
    written,
)
from tests.unit.adapters.formats.exchange import Exchange, contents


@pytest.fixture
def exchange() -> Exchange:
    return Exchange("memory-tree")


def test_a_session_comes_in_with_its_messages_and_its_tree(exchange: Exchange, tmp_path: Path) -> None:
    report = exchange.bring_in(barn(tmp_path))
    assert {piece.made_by for piece in digest(exchange, BARN).pieces} == {IMPORTED}
    assert (report.new.sessions, report.new.messages, report.new.nodes) == (1, 6, 3)
    assert not report.refused
    told = messages(exchange, BARN)
    assert [message.id for message in told] == [f"msg_b{at}" for at in range(6)]
    assert [message.role for message in told[:2]] == [Role.USER, Role.ASSISTANT]
    tree = digest(exchange, BARN)
    assert [(p.id, p.level, p.start, p.end, p.parent, p.active) for p in tree.pieces] == [
        ("node0_001", 0, 0, 1, "node1_001", False),
        ("node0_002", 0, 2, 3, "node1_001", False),
        ("node1_001", 1, 0, 3, None, True),
    ]
    assert tree.state.system_prompt == "You mind the barn."


def test_what_tools_answered_is_kept_with_its_input(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(barn(tmp_path))
    use = tool_use(messages(exchange, BARN)[5].parts[1])
    assert use is not None
    assert (use.name, use.input, use.output) == ("sh", {"command": "ls"}, "ladder\n")


def test_an_export_of_what_was_not_changed_is_what_came_in(exchange: Exchange, tmp_path: Path) -> None:
    store = barn(tmp_path / "in")
    (store / INNER / "config.json").write_text('{"maxRaw": 10}\n')
    exchange.bring_in(store)
    exchange.take_out(tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


def test_a_second_import_brings_nothing(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(barn(tmp_path))
    again = exchange.bring_in(tmp_path)
    assert again.imported == 0
    assert not again.conflicts


def test_nodes_of_the_earliest_form_come_in_and_go_out_as_they_are(exchange: Exchange, tmp_path: Path) -> None:
    old = [{key: value for key, value in one.items() if key not in ("session_id", "parent_id", "source_ref")}
           for one in (FIRST, SECOND, TOP)]  # fmt: skip
    for one in old[:2]:
        told = [{"role": item["role"], "content": item["content"]} for item in json.loads(one["details"])]
        one["details"] = json.dumps(told, separators=(",", ":"), ensure_ascii=False)
    exchange.bring_in(barn(tmp_path / "in", nodes=tuple(old)))
    assert [piece.parent for piece in digest(exchange, BARN).pieces] == ["node1_001", "node1_001", None]
    exchange.take_out(tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


def test_a_session_that_went_on_here_is_written_as_it_is_now(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(barn(tmp_path / "in"))
    last = messages(exchange, BARN)[-1]
    more = Message(
        id=MessageId("msg_later"), session=BARN, role=Role.USER, created_at=exchange.clock.now(),
        parts=(Part(id=PartId("prt_later"), kind="text", text="One more thing"),),
    )  # fmt: skip
    drive(exchange.backend.conversations.put_messages([more]))
    tree = digest(exchange, BARN)
    leaf = tree.pieces[1]
    grown = replace(leaf, id="node0_003", text="Farewell", start=4, end=5, active=True, parent=None,
                    sources=(MessageId("msg_b4"), last.id))  # fmt: skip
    drive(exchange.backend.digests.apply(DigestUpdate(state=tree.state, added=(grown,))))
    exchange.take_out(tmp_path / "out")
    folder = tmp_path / "out" / INNER / "data" / "sessions" / BARN
    assert json.loads((folder / "index.json").read_text())["nodes_by_level"]["0"] == [
        "node0_001", "node0_002", "node0_003",
    ]  # fmt: skip
    buffer = json.loads(json.loads((folder / "buffer-states.json").read_text())[BARN]["recent_buffer"])
    assert [item.get("_node_id") or item["original_id"] for item in buffer] == ["node1_001", "node0_003", "msg_later"]
    assert buffer[-1]["_parts"] == [
        {"id": "prt_later", "sessionID": BARN, "messageID": "msg_later", "type": "text", "text": "One more thing"}
    ]
    details = json.loads(json.loads((folder / "nodes" / "node0_003.json").read_text())["details"])
    assert [item["content"] for item in details] == ["Thanks", "Bye"]


def test_nodes_stand_for_the_messages_that_they_were_made_of(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(barn(tmp_path))
    tree = digest(exchange, BARN)
    listed = [Listed(id=message.id, role=message.role) for message in messages(exchange, BARN)]
    listed.append(Listed(id=MessageId("msg_new"), role=Role.USER))
    found = replacement(listed, tree.active(), tree)
    assert found is not None
    assert (found.count, [piece.id for piece in found.pieces]) == (4, ["node1_001"])


def test_messages_under_other_ids_are_never_replaced(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(barn(tmp_path))
    tree = digest(exchange, BARN)
    listed = [Listed(id=MessageId(f"new_{at}"), role=Role.USER) for at in range(7)]
    assert replacement(listed, tree.active(), tree) is None


def test_a_store_in_a_repository_belongs_to_that_project(exchange: Exchange, tmp_path: Path) -> None:
    barn(tmp_path)
    assert of(ForeignSession, exchange.records(tmp_path))[0].place is None
    (tmp_path / ".git").mkdir()
    assert of(ForeignSession, exchange.records(tmp_path))[0].place == str(tmp_path)


def test_a_folder_named_data_is_no_store_by_itself(exchange: Exchange, tmp_path: Path) -> None:
    (tmp_path / "data" / "sessions" / "one").mkdir(parents=True)
    (tmp_path / "data" / "index.json").write_text('{"pages": []}')
    assert exchange.found(tmp_path) == []


def test_parts_stay_in_order_where_the_hosts_ids_would_not_keep_it(exchange: Exchange, tmp_path: Path) -> None:
    thought = {"id": "zz", "type": "reasoning", "text": "Hm"}
    said = {"id": "aa", "type": "text", "text": "So"}
    item = {"role": "assistant", "content": "Hm\nSo", "original_id": "msg_o", "_span": 1, "_parts": [thought, said]}
    buffer = written({BARN: {"recent_buffer": written([shown(TOP), item])}})
    exchange.bring_in(barn(tmp_path / "in", files={"buffer-states": buffer}))
    assert [part.text for part in messages(exchange, BARN)[-1].parts] == ["Hm", "So"]
    exchange.take_out(tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")
