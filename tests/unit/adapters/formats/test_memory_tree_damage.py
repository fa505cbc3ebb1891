"""Stores of opencode-memory-tree that are damaged or point outside: told of, and the rest comes in."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.formats.memory_tree.writer import MemoryTreeWriter
from backstory.domain.interchange import ForeignDigest, ForeignSession, Keepsake, Unreadable
from backstory.errors import InputError
from backstory.ports.formats import Exported, ReadLimits
from tests.unit.adapters.formats.barns import BARN, FIRST, INNER, barn, digest, node, of, written
from tests.unit.adapters.formats.exchange import Exchange, contents


@pytest.fixture
def exchange() -> Exchange:
    return Exchange("memory-tree")


def test_nodes_in_a_circle_or_under_two_parents_lead_nowhere_twice(exchange: Exchange, tmp_path: Path) -> None:
    round_about = node("node1_001", 0, children=["node1_001", "node0_001", "node2_001", "node0_001"])
    twice = node("node1_002", 0, children=["node0_001"])
    top = node("node2_001", 0, children=["node1_001", "node1_002"])
    exchange.bring_in(barn(tmp_path / "in", nodes=(FIRST, round_about, twice, top)))
    assert {p.id: p.children for p in digest(exchange, BARN).pieces} == {
        "node0_001": (), "node1_001": ("node0_001",), "node1_002": (), "node2_001": ("node1_001", "node1_002"),
    }  # fmt: skip
    exchange.take_out(tmp_path / "out")
    here, there = (contents(tmp_path / name) for name in ("out", "in"))
    differing = {name for name in there if here.get(name) != there[name]}
    assert not differing - {f"{INNER}/data/sessions/{BARN}/buffer-states.json"}


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "node0_001", "summary"', "[]", '"text"', "\x00", '{"id": "../node0_001", "summary": "x"}',
        '{"id": "node0_001"}', '{"id": 1, "summary": 2}', "[" * 100_000, '{"a":' * 5_000, "9" * 5_000, "\ud800",
    ],
)  # fmt: skip
def test_a_node_that_is_none_is_told_of_and_does_not_stop_the_others(
    exchange: Exchange, tmp_path: Path, text: str
) -> None:
    barn(tmp_path, files={"nodes/node0_001": text})
    records = exchange.records(tmp_path)
    assert any("node0_001" in record.where for record in of(Unreadable, records))
    assert {piece.id for piece in of(ForeignDigest, records)[0].digest.pieces} == {"node0_002", "node1_001"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("buffer-states", "{"),
        ("buffer-states", "[]"),
        ("buffer-states", written({BARN: {"recent_buffer": "[" * 2_000}})),
        ("buffer-states", written({BARN: {"recent_buffer": '{"role": 1}'}})),
        ("buffer-states", written({BARN: 7})),
        ("buffer-states", written({BARN: {"recent_buffer": '[1, null, "x"]'}})),
        ("index", "{"),
        ("meta", "nothing"),
        ("nodes/node0_001", written({**FIRST, "details": "{broken"})),
        ("nodes/node0_001", written({**FIRST, "details": '["x"]'})),
    ],
)
def test_a_damaged_file_is_told_of_and_the_rest_comes_in(
    exchange: Exchange, tmp_path: Path, name: str, text: str
) -> None:
    report = exchange.bring_in(barn(tmp_path, files={name: text}))
    assert len(report.refused) >= 1
    assert report.new.sessions == 1
    assert report.new.nodes == 3
    exchange.take_out(tmp_path / "out")


def test_wrong_types_become_what_they_can(exchange: Exchange, tmp_path: Path) -> None:
    odd = {**FIRST, "round_start": "0", "round_end": 1e400, "children": 5, "parent_id": [], "is_active": "yes",
           "level": True}  # fmt: skip
    text = written(odd).replace("Infinity", "1e400")
    exchange.bring_in(barn(tmp_path, files={"nodes/node0_001": text}))
    assert (digest(exchange, BARN).pieces[0].start, digest(exchange, BARN).pieces[0].level) == (0, 0)


def test_an_item_of_the_buffer_may_lack_anything(exchange: Exchange, tmp_path: Path) -> None:
    items: list[Any] = [
        {}, {"content": "only words"}, {"role": "tool", "content": "ok", "tool_call_id": "c1", "original_id": "msg_t"},
        {"original_id": "msg_p", "_parts": [1, None, {"type": 7}]}, {"original_id": ["x"], "content": {}},
    ]  # fmt: skip
    buffer = written({BARN: {"recent_buffer": json.dumps(items)}})
    report = exchange.bring_in(barn(tmp_path, files={"buffer-states": buffer}))
    assert report.new.messages == 4 + len(items)
    exchange.take_out(tmp_path / "out")
    path = tmp_path / "out" / INNER / "data" / "sessions" / BARN / "buffer-states.json"
    told = json.loads(json.loads(path.read_text())[BARN]["recent_buffer"])
    assert told[2] == {**items[2]}


def test_nothing_outside_of_the_store_is_read(exchange: Exchange, tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere.json"
    secret.write_text(written({"system_prompt": "from elsewhere"}))
    barn(tmp_path / "in", files={"meta": None})
    sessions = tmp_path / "in" / INNER / "data" / "sessions"
    (sessions / BARN / "meta.json").symlink_to(secret)
    (sessions / "ses_linked").symlink_to(sessions / BARN)
    (sessions / "bad name").mkdir()
    shutil.copytree(sessions / BARN / "nodes", sessions / "bad name" / "nodes")
    records = exchange.records(tmp_path / "in")
    assert [record.session.id for record in of(ForeignSession, records)] == [BARN]
    assert of(ForeignDigest, records)[0].digest.state.system_prompt is None
    assert sorted(record.reason for record in of(Unreadable, records)) == [
        "a link, which is not followed", "the folder's name is no session's id",
    ]  # fmt: skip


def test_a_keepsake_that_points_outside_writes_nothing_there(tmp_path: Path) -> None:
    asides = [
        Keepsake(format="memory-tree", store="", key=key, text='{"text": "!"}')
        for key in ("file:../../x:meta.json", "file:ses_a:../../../evil", "file:ses_a:nodes/../../evil.json")
    ]
    exported = Exported(label="", memories=[], sessions=[], projects={}, keepsakes=asides)
    written_ = MemoryTreeWriter().write(exported, tmp_path / "deep" / "er" / "out")
    assert written_.files == []
    assert contents(tmp_path) == {}


def test_a_data_folder_of_somebody_else_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "harvest.csv").write_text("rye,9")
    with pytest.raises(InputError, match="is not memory-tree's"):
        MemoryTreeWriter().write(Exported(label="", memories=[], sessions=[], projects={}), tmp_path)
    assert contents(tmp_path) == {"data/harvest.csv": b"rye,9"}


def test_too_large_a_file_is_left_out_as_a_whole(exchange: Exchange, tmp_path: Path) -> None:
    barn(tmp_path)
    records = exchange.records(tmp_path, limits=ReadLimits(file_bytes=300, record_bytes=300))
    assert all("larger than 300 bytes" in record.reason for record in of(Unreadable, records))
    assert of(Unreadable, records)


def test_the_key_for_the_model_does_not_come_in(exchange: Exchange, tmp_path: Path) -> None:
    store = barn(tmp_path / "in")
    (store / INNER / "config.json").write_text('{"compressor": {"apiKey": "plain-word-9", "model": "m"}}')
    exchange.bring_in(store)
    exchange.take_out(tmp_path / "out")
    told = (tmp_path / "out" / INNER / "config.json").read_text()
    assert told == '{"compressor": {"apiKey": "", "model": "m"}}'
