"""Stores of opencode-memory-tree: in as sessions that the tree's tool can open, out again byte for byte."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import pytest

from backstory.adapters.formats.memory_tree.writer import MemoryTreeWriter
from backstory.bootstrap import App
from backstory.config import Settings
from backstory.domain.conversation import Message, Part, Role
from backstory.domain.digest import DigestUpdate, SessionDigest, Strategy
from backstory.domain.digest_plan import Listed, replacement
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.interchange import (
    ForeignDigest,
    ForeignMessages,
    ForeignRecord,
    ForeignSession,
    Keepsake,
    Unreadable,
)
from backstory.domain.observation_cursor import IMPORTED
from backstory.domain.scope import Viewer
from backstory.domain.tool_parts import tool_use
from backstory.entrypoints.drive import drive
from backstory.entrypoints.tools import Call, run_tool
from backstory.entrypoints.tools.search_memory_tree import SEARCH_MEMORY_TREE
from backstory.errors import InputError
from backstory.ports.formats import Exported, ReadLimits
from tests.stores import open_file
from tests.unit.adapters.formats.exchange import PERSON, Exchange, contents, sample

Files = Mapping[str, str | None]
BARN = SessionId("ses_barn0001")
INNER = ".opencode/plugins/memory-tree"
LONG = SessionId("ses_4f1c2a9be001AbCdEfGhIjKlMn")
SHORT = SessionId("ses_4f1c2a9be002ZyXwVuTsRqPoNm")
SAID = ["Where is the ladder?", "Behind the mill.", "Paint it “blue” \\ not green", "梯子 is painted", "Thanks", "Bye"]


def written(value: object) -> str:
    """As the product writes: two blanks a step, no line end."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def node(name: str, start: int, *said: int, **fields: Any) -> dict[str, Any]:
    details = [
        {"role": "assistant" if at % 2 else "user", "content": SAID[at], "original_id": f"msg_b{at}"} for at in said
    ]
    told = {
        "session_id": BARN, "id": name, "level": int(name[4]), "summary": f"About {name}", "parent_id": None,
        "children": [], "round_start": start, "round_end": start + max(len(said) - 1, 0), "source_ref": None,
        "details": json.dumps(details, separators=(",", ":"), ensure_ascii=False) if said else None, "is_active": 1,
    }  # fmt: skip
    return {**told, **fields}


def raw(at: int, *more: dict[str, Any]) -> dict[str, Any]:
    text = {"id": f"p{at}", "type": "text", "text": SAID[at], "time": {"start": 1767000000000 + at}}
    return {
        "role": "assistant" if at % 2 else "user", "content": SAID[at], "original_id": f"msg_b{at}", "_span": 1,
        "_parts": [text, *more],
    }  # fmt: skip


def shown(told: dict[str, Any]) -> dict[str, Any]:
    below = f" (children: {', '.join(told['children'])})" if told["children"] else ""
    start, end = told["round_start"], told["round_end"]
    return {
        "role": "user", "content": f"[{told['id']}] 第{start}-{end}条: {told['summary']}{below}",
        "_node_id": told["id"], "_span": end - start + 1, "original_id": f"synth_{told['id']}",
    }  # fmt: skip


LADDER = {"id": "p5t", "type": "tool", "callID": "c1", "tool": "sh",
          "state": {"status": "completed", "input": {"command": "ls"}, "output": "ladder\n", "title": "l"}}  # fmt: skip
FIRST = node("node0_001", 0, 0, 1, parent_id="node1_001", is_active=0)
SECOND = node("node0_002", 2, 2, 3, parent_id="node1_001", is_active=0)
TOP = node("node1_001", 0, children=["node0_001", "node0_002"], round_end=3)


def barn(
    project: Path, *, nodes: tuple[dict[str, Any], ...] = (FIRST, SECOND, TOP), files: Files = MappingProxyType({})
) -> Path:
    """A store with one session: two leaves below a parent, two messages in none. ``files`` replace or remove some."""
    tree = project / INNER / "data" / "sessions" / BARN
    levels: dict[str, list[str]] = {}
    for one in nodes:
        levels.setdefault(str(one["level"]), []).append(one["id"])
    buffer = [*(shown(one) for one in nodes if one.get("is_active")), raw(4), raw(5, LADDER)]
    told: dict[str, str | None] = {
        "meta": written({"system_prompt": "You mind the barn."}),
        "index": written({"root_node_id": nodes[0]["id"], "nodes_by_level": levels}),
        "buffer-states": written({BARN: {"recent_buffer": written(buffer)}}),
        **{f"nodes/{one['id']}": written(one) for one in nodes},
        **files,
    }
    for name, text in told.items():
        if text is not None:
            path = tree / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="surrogatepass")
    return project


@pytest.fixture
def exchange() -> Exchange:
    return Exchange("memory-tree")


def digest(exchange: Exchange, session: SessionId) -> SessionDigest:
    found = drive(exchange.backend.digests.digest(session))
    assert found is not None
    return found


def messages(exchange: Exchange, session: SessionId) -> list[Message]:
    return drive(exchange.backend.conversations.messages(session))


def opened(exchange: Exchange, session: SessionId, node_id: str) -> str:
    app = App(Settings(), exchange.backend, None, no_embedder="not in this test")
    viewer = Viewer(project=PERSON.project, session=session)
    call = Call(app=app, viewer=viewer, tool="search_memory_tree")
    return anyio.run(run_tool, SEARCH_MEMORY_TREE, {"node_id": node_id}, call).text


def of(kind: type[ForeignRecord], records: list[ForeignRecord]) -> list[Any]:
    return [record for record in records if isinstance(record, kind)]


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


# --- the older product's own samples ----------------------------------------------------------------------------------


def test_the_samples_come_in_as_their_description_says(exchange: Exchange) -> None:
    report = exchange.bring_in(sample("memory-tree"))
    assert (report.new.sessions, report.new.nodes) == (3, 30)
    assert not report.refused
    assert Counter(piece.level for piece in digest(exchange, LONG).pieces) == {0: 22, 1: 6, 2: 1}
    assert len(messages(exchange, LONG)) == 118
    assert len(messages(exchange, SHORT)) == 7
    assert digest(exchange, SHORT).pieces == ()
    single = next(s for s in drive(exchange.backend.conversations.sessions(limit=9)) if s.id not in (LONG, SHORT))
    assert (len(messages(exchange, single.id)), len(digest(exchange, single.id).pieces)) == (14, 1)
    assert len(digest(exchange, single.id).pieces[0].sources) == 5  # so 9 are raw
    assert {digest(exchange, name).state.strategy for name in (LONG, SHORT, single.id)} == {Strategy.TREE}


def test_the_samples_go_out_byte_for_byte(tmp_path: Path) -> None:
    exchange = Exchange("memory-tree", open_file(tmp_path))
    store = sample("memory-tree")
    exchange.bring_in(store)
    exchange.take_out(tmp_path / "out")
    theirs = {name: text for name, text in contents(store).items() if not name.endswith((".log", ".transcript.json"))}
    assert len(theirs) == 39
    assert contents(tmp_path / "out") == theirs


def test_the_tool_answers_about_the_sample_as_the_products_own_did(exchange: Exchange) -> None:
    exchange.bring_in(sample("memory-tree"), trusted=True)
    told = json.loads(sample("memory-tree/search_memory_tree.transcript.json").read_text(encoding="utf-8"))
    assert len(told) == 5
    for call in told:
        assert opened(exchange, LONG, call["node_id"]) == call["result"]


def test_messages_keep_their_order_and_the_times_that_are_known(exchange: Exchange) -> None:
    records = exchange.records(sample("memory-tree/per-session"))
    for session in (LONG, SHORT):
        told = [m for r in of(ForeignMessages, records) if r.session == session for m in r.messages]
        assert [m.created_at for m in told] == sorted({m.created_at for m in told})
        tool = next(m for m in told if any(part.tool for part in m.parts))
        assert tool.created_at.isoformat().startswith("2025-12-29T09:20:00")
