"""Memories of other products as proposals: what they say, what they wait for, and what is not taken for one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backstory.bootstrap.exchange import find_stores, reader
from backstory.domain.conversation import Role, typed_text
from backstory.domain.interchange import (
    ForeignMemory,
    ForeignMessages,
    ForeignRecord,
    ForeignSession,
    Remark,
    Unreadable,
)
from backstory.domain.memory import Kind, Memory, Visibility
from backstory.domain.provenance import Origin
from backstory.domain.review import waits
from backstory.errors import InputError
from backstory.ports.formats import ReadLimits

Json = Any
OTHERS = ("chatgpt", "claude", "mcp-memory", "basic-memory", "agents-md")


def read(path: Path, format_name: str, limits: ReadLimits | None = None) -> list[ForeignRecord]:
    found = find_stores(str(path), format_name=format_name)
    limits = limits or ReadLimits()
    return [record for store in found for record in reader(format_name).read(store, limits=limits)]


def memories(records: list[ForeignRecord]) -> list[Memory]:
    return [record.memory for record in records if isinstance(record, ForeignMemory)]


def contents(records: list[ForeignRecord]) -> list[str]:
    return [memory.content for memory in memories(records)]


def put(path: Path, content: Json) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


# --- lists of an assistant ------------------------------------------------------------------------------------------

LIST = """\
# About work

- [2025-03-01] - Bakes with rye
  and spelt.
2. Prefers short answers
[unknown] - Lives near the mill

---
* Bakes with  RYE
  and spelt.
"""


@pytest.mark.parametrize("name", ["chatgpt", "claude"])
def test_a_copied_list_is_one_proposal_for_each_entry(tmp_path: Path, name: str) -> None:
    found = memories(read(put(tmp_path / "list.md", LIST), name))
    assert [memory.content for memory in found] == [
        "Bakes with rye\nand spelt.",
        "Prefers short answers",
        "Lives near the mill",
        "Bakes with  RYE\nand spelt.",
    ]
    assert (found[0].area, found[0].times.learned.isoformat()) == ("About work", "2025-03-01T00:00:00+00:00")
    assert all(memory.origin is Origin.IMPORTED and waits(memory, memory.times.learned) for memory in found)
    assert all(memory.visibility is Visibility.GLOBAL for memory in found)


def test_a_list_is_known_again_in_a_copy_of_the_file(tmp_path: Path) -> None:
    one = memories(read(put(tmp_path / "a.txt", "- one\n- two\n"), "chatgpt"))
    other = memories(read(put(tmp_path / "b" / "c.txt", "two\none\none\n"), "chatgpt"))
    assert {memory.id for memory in one} == {memory.id for memory in other}
    assert len(other) == 2
    assert all("one" not in (memory.provenance.origin_id or "") for memory in one), "an erased text stays in no key"


@pytest.mark.parametrize(
    "value",
    [
        ["Bakes with rye", {"memory": "Lives near the mill"}, {"id": 5}, 7],
        {
            "memories": [
                {"content": "Bakes with rye", "created_at": 1_700_000_000},
                {"text": "Lives near the mill"},
                1,
                2,
            ]
        },
    ],
)
def test_a_list_in_json_is_read_too(tmp_path: Path, value: Json) -> None:
    records = read(put(tmp_path / "memories.json", value), "chatgpt")
    assert contents(records) == ["Bakes with rye", "Lives near the mill"]
    assert len([record for record in records if isinstance(record, Unreadable)]) == 2


def test_json_without_a_list_and_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no list"):
        read(put(tmp_path / "a.json", {"name": "x"}), "claude")
    (tmp_path / "b.txt").write_bytes(b"\xff\x00\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        read(tmp_path / "b.txt", "claude")


# --- conversations --------------------------------------------------------------------------------------------------


def node(number: str, parent: str | None, role: str, text: Json, **more: Json) -> Json:
    content = text if isinstance(text, dict) else {"content_type": "text", "parts": [text]}
    message = {"id": f"m-{number}", "author": {"role": role}, "create_time": 1_700_000_000.5, "content": content}
    return {"id": number, "parent": parent, "children": [], "message": {**message, **more}}


def test_chatgpts_conversations_are_sessions_of_the_branch_that_is_shown(tmp_path: Path) -> None:
    nodes = [
        {"id": "root", "parent": None, "message": None},
        node("a", "root", "system", ""),
        node("b", "a", "user", "How long?"),
        node("c", "b", "assistant", "An answer that was thrown away"),
        node("d", "b", "assistant", {"content_type": "thoughts", "thoughts": [{"content": "Hm."}]}),
        node("e", "d", "assistant", "search(bread)", recipient="browser"),
        node("f", "e", "tool", "forty minutes"),
        node(
            "g", "f", "assistant", {"content_type": "multimodal_text", "parts": ["Forty.", {"content_type": "image"}]}
        ),
    ]
    told = {"title": "Bread", "create_time": 1_700_000_000, "id": "conv-1", "current_node": "g"}
    loop = {**told, "id": "conv-2", "current_node": "x", "mapping": {"x": node("x", "x", "user", "Again")}}
    mapping = {each["id"]: each for each in nodes}
    put(tmp_path / "conversations.json", [{**told, "mapping": mapping}, loop, {"title": "no id", "mapping": {}}, 5])
    assert [store.format for store in find_stores(str(tmp_path))] == ["chatgpt"]
    records = read(tmp_path, "chatgpt")
    (first, second) = [record.session for record in records if isinstance(record, ForeignSession)]
    assert (first.id, first.title, first.host, second.id) == ("conv-1", "Bread", "import:chatgpt", "conv-2")
    said = [message for record in records if isinstance(record, ForeignMessages) for message in record.messages]
    assert [(message.role, typed_text(message)) for message in said] == [
        (Role.USER, "How long?"),
        (Role.ASSISTANT, ""),
        (Role.ASSISTANT, ""),
        (Role.ASSISTANT, ""),
        (Role.ASSISTANT, "Forty.\n[image]"),
        (Role.USER, "Again"),
    ]
    assert len([record for record in records if isinstance(record, Unreadable)]) == 2


def test_claudes_export_is_memories_and_sessions(tmp_path: Path) -> None:
    chat = {
        "uuid": "c-1",
        "name": "Bread",
        "created_at": "2026-01-01T10:00:00Z",
        "account": {},
        "chat_messages": [
            {"uuid": "m-1", "sender": "human", "text": "How long?", "created_at": "2026-01-01T10:00:01Z"},
            {"uuid": "m-2", "sender": "assistant", "text": "", "content": [{"type": "text", "text": "Forty minutes."}]},
            {"uuid": 3, "sender": "assistant"},
        ],
    }
    put(tmp_path / "conversations.json", [chat])
    told = "**Work**\n\nBakes for a living.\n\n- Rises at four\n- Rises at four\n"
    put(tmp_path / "memories.json", [{"conversations_memory": told, "project_memories": {"p-1": "Sells on Fridays."}}])
    assert [store.format for store in find_stores(str(tmp_path))] == ["claude"]
    records = read(tmp_path, "claude")
    assert contents(records) == ["Bakes for a living.", "Rises at four", "Sells on Fridays."]
    assert [memory.area for memory in memories(records)] == ["Work", "Work", "project p-1"]
    said = [message for record in records if isinstance(record, ForeignMessages) for message in record.messages]
    assert [typed_text(message) for message in said] == ["How long?", "Forty minutes."]


def test_a_broken_export_is_told_as_far_as_it_goes(tmp_path: Path) -> None:
    chat = json.dumps({"uuid": "c-1", "chat_messages": []})
    put(tmp_path / "conversations.json", f"[{chat}, {chat[:20]}")
    records = read(tmp_path, "claude")
    assert [type(record) for record in records] == [ForeignSession, Unreadable]
    put(tmp_path / "conversations.json", f'[{chat}, {{"chat_messages": {"[" * 100_000}')
    assert isinstance(read(tmp_path, "claude")[-1], Unreadable)


# --- the MCP server's graph -----------------------------------------------------------------------------------------


def test_each_observation_and_relation_of_a_graph_is_a_proposal(tmp_path: Path) -> None:
    entity = {"type": "entity", "name": "Oven", "entityType": "machine", "observations": ["Heats to 300", 5, "Is old"]}
    relation = {"type": "relation", "from": "Oven", "to": "Bakery", "relationType": "stands_in"}
    lines = [entity, {"type": "entity", "name": "Mill", "entityType": "place", "observations": []}, relation, {"a": 1}]
    path = put(tmp_path / "memory.json", "\n".join([*map(json.dumps, lines), "{", json.dumps(relation)]))
    assert [store.label for store in find_stores(str(tmp_path))] == ["memory.json"]
    records = read(path, "mcp-memory")
    assert contents(records) == ["Oven: Heats to 300", "Oven: Is old", "Mill: a place", "Oven stands in Bakery"]
    assert (memories(records)[0].area, memories(records)[0].tags) == ("Oven", ("machine",))
    assert [record.where for record in records if isinstance(record, Unreadable)] == [
        "line 1, observation 2",
        "line 4",
        "line 5",
    ]


# --- basic-memory ---------------------------------------------------------------------------------------------------

NOTE = """\
---
title: Oven
type: note
permalink: tools/oven
tags:
- heat
- 'iron'
---

# Oven

Stands by the north wall.

## Observations
- [decision] It is cleaned on Mondays #weekly #care (after the talk)
- [ ] call the smith
- [x] done

## Relations
- stands_in [[Bakery]] (since 1990)
"""


def test_a_note_is_observations_relations_and_paragraphs(tmp_path: Path) -> None:
    put(tmp_path / "tools" / "oven.md", NOTE)
    put(tmp_path / "plain.md", "# Nothing of it\n\n- [idea] not this\n")
    put(tmp_path / ".obsidian" / "x.md", NOTE)
    assert [store.format for store in find_stores(str(tmp_path))] == ["basic-memory"]
    records = read(tmp_path, "basic-memory")
    assert contents(records) == [
        "Stands by the north wall.",
        "It is cleaned on Mondays (after the talk)",
        "[ ] call the smith",
        "[x] done",
        "Oven stands in Bakery (since 1990)",
    ]
    cleaned = memories(records)[1]
    assert (cleaned.kind, cleaned.area) == (Kind.DECISION, "tools/oven")
    assert cleaned.tags == ("decision", "weekly", "care", "heat", "iron")
    assert [record.where for record in records if isinstance(record, Remark)] == ["plain.md"]


# --- files for agents -----------------------------------------------------------------------------------------------

AGENTS = """\
# Bakery
<!-- not said -->
Bread is baked twice:
- in the morning
  before four
- at noon
  - only rye

@docs/more.md

## Code

Use the linter.

```sh
make lint
```
"""


def test_each_bullet_and_paragraph_for_agents_is_a_proposal_that_is_never_offered(tmp_path: Path) -> None:
    path = put(tmp_path / "AGENTS.md", AGENTS)
    records = read(path, "agents-md")
    assert contents(records) == [
        "Bread is baked twice: in the morning before four",
        "Bread is baked twice: at noon\n  - only rye",
        "Use the linter.\n```sh\nmake lint\n```",
    ]
    assert [memory.area for memory in memories(records)] == ["Bakery", "Bakery", "Bakery / Code"]
    assert all(memory.origin is Origin.FILE for memory in memories(records))
    assert {record.place for record in records if isinstance(record, ForeignMemory)} == {str(tmp_path)}
    told = [record.text for record in records if isinstance(record, Remark)]
    assert "never offered" in told[-1]
    assert any("another file" in text for text in told)


def test_a_persons_own_file_for_agents_is_of_no_project(tmp_path: Path) -> None:
    path = put(tmp_path / ".claude" / "CLAUDE.md", "Be brief.\n")
    assert {record.place for record in read(path, "agents-md") if isinstance(record, ForeignMemory)} == {None}


def test_a_link_that_somebody_names_is_followed(tmp_path: Path) -> None:
    put(tmp_path / "rules.txt", "Be brief.\n")
    (tmp_path / "CLAUDE.md").symlink_to("rules.txt")
    (tmp_path / "list").symlink_to("rules.txt")
    assert contents(read(tmp_path / "CLAUDE.md", "agents-md")) == ["Be brief."]
    assert contents(read(tmp_path / "list", "claude")) == ["Be brief."]


def test_files_for_agents_are_taken_only_by_name(tmp_path: Path) -> None:
    path = put(tmp_path / "AGENTS.md", "Be brief.\n")
    assert [store.format for store in find_stores(str(path))] == ["agents-md"]
    with pytest.raises(InputError, match="no store"):
        find_stores(str(tmp_path))
    assert contents(read(put(tmp_path / "rules.txt", "Be brief.\n"), "agents-md")) == ["Be brief."]


# --- what is nobody's -----------------------------------------------------------------------------------------------

NOBODYS = {
    "notes.md": "# Notes\n\n- one\n- two\n",
    "page.md": "---\nlayout: post\ntitle: Hello\npermalink: /hello/\ntype: page\n---\n\nwords\n",
    "memory.json": '{"type": "module", "name": "memory"}\n',
    "memory.jsonl": '{"type": "entity"}\n',
    "conversations.json": '[{"id": 1}]',
    "package.json": '{"name": "x", "type": "module", "memories": []}',
    "list.json": '["mapping", "chat_messages"]',
    "empty.json": "",
}


@pytest.mark.parametrize("name", NOBODYS)
@pytest.mark.parametrize("format_name", OTHERS)
def test_other_files_are_not_claimed(tmp_path: Path, name: str, format_name: str) -> None:
    path = put(tmp_path / name, NOBODYS[name])
    assert not reader(format_name).find(str(path))
    assert not reader(format_name).find(str(tmp_path))


@pytest.mark.parametrize("format_name", OTHERS)
def test_endless_lines_links_and_pipes_take_no_time_and_raise_nothing_else(tmp_path: Path, format_name: str) -> None:
    import os

    for number, text in enumerate(["# a" + " " * 200_000 + "b", "- " * 100_000, "[" * 200_000, "`" * 100_000]):
        path = put(tmp_path / f"{number}" / "AGENTS.md", text)
        try:
            list(read(path, format_name))
        except InputError:
            continue
    (tmp_path / "link.md").symlink_to("link.md")
    os.mkfifo(tmp_path / "conversations.json")
    os.mkfifo(tmp_path / "memory.json")
    assert not reader(format_name).find(str(tmp_path))
    with pytest.raises(InputError):
        read(tmp_path / "link.md", format_name)
