"""A store of opencode-memory-tree with one session, and what came in of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio

from backstory.bootstrap import App
from backstory.config import Settings
from backstory.domain.conversation import Message
from backstory.domain.digest import SessionDigest
from backstory.domain.ids import SessionId
from backstory.domain.interchange import ForeignRecord
from backstory.domain.scope import Viewer
from backstory.entrypoints.drive import drive
from backstory.entrypoints.tools import Call, run_tool
from backstory.entrypoints.tools.search_memory_tree import SEARCH_MEMORY_TREE
from tests.unit.adapters.formats.exchange import PERSON, Exchange

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
