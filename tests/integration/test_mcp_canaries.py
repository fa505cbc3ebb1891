"""Where each kind of text may be seen over the Model Context Protocol: lists, resources, prompts, tools, completions.

Whatever is local-only, forgotten, erased, of another project or masked is in none of them, nor in an error.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import mcp.types as protocol
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from backstory.entrypoints.mcp.prompts import PROMPTS
from backstory.entrypoints.mcp.resources import TEMPLATES
from backstory.entrypoints.mcp.server import McpServer
from tests.canaries import KEYS, NIGHT, OPEN, PRIVATE, TALK, Boathouse, heard

LISTED = {OPEN}
ASKED = {OPEN, PRIVATE}
IN_RESOURCES = {"memory": ASKED, "session": set[str](), "node": set[str]()}
IN_PROMPTS = {"project-briefing": LISTED, "recall": ASKED, "remember": set[str]()}


def told(house: Boathouse, method: str, *given: Any, folder: Path | None, **named: Any) -> str:
    """All that a client hears when it calls a method, be it an error."""

    async def asked() -> str:
        server = McpServer(house.app, folder=folder, changed=lambda: None).sdk()
        async with Client(server, mode="legacy") as client:
            try:
                return str((await getattr(client, method)(*given, **named)).model_dump_json())
            except MCPError as error:
                return error.error.model_dump_json()

    return anyio.run(asked)


def addresses(house: Boathouse) -> Iterator[tuple[str, str]]:
    """Addresses of every kind, with whatever could be in them."""
    sessions = [str(TALK), str(NIGHT), "mcp_unheard"]
    yield from (("memory", f"backstory://memory/{number}") for number in range(1, 20))
    yield from (("memory", f"backstory://memory/{memory.id}") for memory in house.memories.values())
    yield from (("memory", f"backstory://memory/{word}") for word in KEYS.values())
    for session in sessions:
        yield from (("session", f"backstory://session/{session}?page={page}") for page in (1, 2, 99))
        yield "node", f"backstory://session/{session}/node/node0_001"


def test_every_kind_of_resource_and_prompt_stands_in_the_tables() -> None:
    assert {template.name for template in TEMPLATES} == set(IN_RESOURCES)
    assert {prompt.name for prompt in PROMPTS} == set(IN_PROMPTS)


def test_a_resource_shows_no_more_than_it_may(house: Boathouse) -> None:
    shown: set[str] = set()
    for kind, uri in addresses(house):
        said = heard(told(house, "read_resource", uri, folder=house.folder))
        assert said <= IN_RESOURCES[kind], uri
        shown |= said
    assert shown == ASKED


def test_the_lists_show_no_more_than_a_block_would(house: Boathouse) -> None:
    first = told(house, "list_resources", folder=house.folder)
    assert heard(first) == LISTED
    sessions = told(house, "list_resources", cursor="sessions", folder=house.folder)
    assert str(TALK) in sessions
    assert heard(sessions) == set()


def test_a_completion_names_only_what_is_listed(house: Boathouse) -> None:
    ref = protocol.ResourceTemplateReference(uri="backstory://memory/{number}")
    argument = {"name": "number", "value": ""}
    values = told(house, "complete", ref, argument, folder=house.folder)
    hidden = {f'"{memory.n}"' for canary, memory in house.memories.items() if canary != OPEN}
    assert f'"{house.memories[OPEN].n}"' in values
    assert not any(number in values for number in hidden)


def test_a_prompt_shows_no_more_than_it_may(house: Boathouse) -> None:
    words = ["lamp oil", *KEYS.values()]
    asks = [("project-briefing", {}), *(("recall", {"query": word}) for word in words), ("remember", {"text": "lamp"})]
    shown: set[str] = set()
    for name, arguments in asks:
        text = told(house, "get_prompt", name, arguments, folder=house.folder)
        assert heard(text) <= IN_PROMPTS[name], (name, arguments)
        shown |= heard(text)
    assert shown == ASKED


def test_a_tool_shows_what_it_shows_everywhere(house: Boathouse) -> None:
    calls = [
        *(("memory_recall", {"query": word, "superseded": "true"}) for word in KEYS.values()),
        *(("memory_inspect", {"view": "why", "id": f"#{number}"}) for number in range(1, 7)),
        *(("memory_inspect", {"view": view}) for view in ("recent", "project", "conflicts", "stats")),
        ("session_recall", {"query": "lamp"}), ("session_recall", {"session": str(TALK)}),
    ]  # fmt: skip
    for name, arguments in calls:
        text = told(house, "call_tool", name, arguments, folder=house.folder)
        assert heard(text) <= ASKED, (name, arguments)


@pytest.mark.parametrize("known", [True, False])
def test_nothing_of_a_project_is_seen_from_outside_it(house: Boathouse, known: bool, tmp_path: Path) -> None:
    """Neither from another project, nor from none."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    folder = tmp_path if known else None
    assert heard(told(house, "list_resources", folder=folder)) == set()
    assert heard(told(house, "get_prompt", "project-briefing", folder=folder)) == set()
    for word in ("lamp oil", *KEYS.values()):
        text = told(house, "get_prompt", "recall", {"query": word}, folder=folder)
        assert heard(text) == set()
    for _, uri in addresses(house):
        assert heard(told(house, "read_resource", uri, folder=folder)) == set(), uri
