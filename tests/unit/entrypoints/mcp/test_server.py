"""What a client of the protocol gets: tools, each from the right project, and failures as words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import mcp.types as protocol
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from backstory.bootstrap import App
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience
from backstory.domain.selection import Selection
from backstory.entrypoints.drive import drive
from backstory.entrypoints.mcp import server as serving
from backstory.entrypoints.tools import TOOLS, manifest
from backstory.errors import StoreUnavailable
from tests.unit.entrypoints.mcp.talking import Mode, Person, read, remembered, text_of

At = Callable[..., Person]


# --- tools ------------------------------------------------------------------------------------------------------------


def test_the_tools_are_those_of_every_host(app: App, mode: Mode, shop: Path) -> None:
    listed = Person(app, mode=mode, roots=[shop]).do(lambda client: client.list_tools()).tools
    told = [{"name": t.name, "description": t.description, "parameters": t.input_schema} for t in listed]
    assert told == manifest(app.settings)


def test_a_tool_says_whether_it_changes_anything(app: App) -> None:
    hints = {tool.name: tool.annotations for tool in Person(app).do(lambda client: client.list_tools()).tools}
    reads = {name for name, hint in hints.items() if hint is not None and hint.read_only_hint}
    destroys = {name for name, hint in hints.items() if hint is not None and hint.destructive_hint}
    assert reads == {"memory_recall", "memory_inspect", "session_recall"}
    assert destroys == {"memory_update", "memory_forget", "memory_consolidate"}
    assert all(hint is not None and hint.open_world_hint is False for hint in hints.values())


def test_what_is_remembered_is_recalled_in_a_later_connection(app: App, mode: Mode, shop: Path) -> None:
    person = Person(app, mode=mode, roots=[shop])
    assert person.say("memory_remember", content="The kiln is lit at six.").startswith("Stored as #1 (fact, for this")
    assert "The kiln is lit at six." in person.say("memory_recall", query="kiln")
    assert person.changes == 1


def test_a_memory_tells_which_client_and_connection_it_came_from(app: App, shop: Path) -> None:
    Person(app, roots=[shop]).say("memory_remember", content="The kiln is lit at six.")
    viewer = drive(app.viewer(shop, audience=Audience.PERSON))
    (memory,) = drive(app.backend.memories.select(Selection(viewer=viewer, now=app.clock.now()), limit=5))
    assert memory.origin is Origin.AGENT
    assert memory.provenance.agent == "drawing board 2.1"
    assert memory.provenance.tool == "memory_remember"
    assert str(memory.provenance.session).startswith("mcp_")


def test_a_failure_is_the_tools_answer(app: App, shop: Path) -> None:
    person = Person(app, roots=[shop])
    for name, arguments, word in (
        ("memory_remember", {"content": " "}, "content"),
        ("memory_forget", {"id": 12}, "#12"),
        ("memory_burn", {}, "no tool memory_burn"),
    ):
        result = person.call(name, arguments)
        assert result.is_error
        assert word in text_of(result)


def test_what_belongs_to_a_session_stays_in_its_connection(app: App, shop: Path) -> None:
    async def keep(client: Client) -> str:
        await client.call_tool("memory_remember", {"content": "The visitor waits in hall two.", "scope": "session"})
        return text_of(await client.call_tool("memory_recall", {"query": "visitor"}))

    assert "hall two" in Person(app, roots=[shop]).do(keep)
    assert "hall two" not in Person(app, roots=[shop]).say("memory_recall", query="visitor")


# --- projects ---------------------------------------------------------------------------------------------------------


def test_the_roots_of_a_client_decide_the_project_and_not_where_the_server_was_started(
    app: App, mode: Mode, shop: Path, mill: Path
) -> None:
    Person(app, mode=mode, roots=[shop], folder=mill).say("memory_remember", content="The till takes coins.")
    assert "coins" in Person(app, mode=mode, folder=shop).say("memory_recall", query="till")
    assert "coins" not in Person(app, mode=mode, folder=mill).say("memory_recall", query="till")
    assert "coins" not in Person(app, mode=mode, roots=[mill]).say("memory_recall", query="till")


def test_without_usable_roots_the_folder_of_the_server_counts(app: App, mode: Mode, shop: Path, tmp_path: Path) -> None:
    Person(app, mode=mode, roots=[tmp_path / "gone"], folder=shop).say("memory_remember", content="It has two doors.")
    assert "doors" in Person(app, mode=mode, roots=[], folder=shop).say("memory_recall", query="doors")


def test_without_a_project_only_what_counts_everywhere_is_seen_and_that_is_said(
    app: App, mode: Mode, shop: Path
) -> None:
    Person(app, mode=mode, roots=[shop]).say("memory_remember", content="The till takes coins.")
    nowhere = Person(app, mode=mode)
    assert "no project folder is known" in nowhere.say("memory_recall", query="till").lower()
    refused = nowhere.call("memory_remember", {"content": "The well is deep."})
    assert refused.is_error
    assert "global" in text_of(refused)
    nowhere.say("memory_remember", content="The user writes British English.", scope="global")
    assert "British" in Person(app, mode=mode, roots=[shop]).say("memory_recall", query="English")


def test_changed_roots_count_from_the_next_call(app: App, mode: Mode, shop: Path, mill: Path) -> None:
    person = Person(app, mode=mode, roots=[shop])

    async def move(client: Client) -> list[str]:
        await client.call_tool("memory_remember", {"content": "The till takes coins."})
        person.roots = [mill]
        if person.mode == "legacy":
            await roots_changed(client)
        there = await client.call_tool("memory_recall", {"query": "till"})
        person.roots = [shop]
        if person.mode == "legacy":
            await roots_changed(client)
        return [text_of(there), text_of(await client.call_tool("memory_recall", {"query": "till"}))]

    there, back = person.do(move)
    assert "coins" not in there
    assert "coins" in back


async def roots_changed(client: Client) -> None:
    with pytest.warns(MCPDeprecationWarning):  # the newest protocol has no such notification any more
        await client.send_roots_list_changed()


def test_roots_are_asked_for_once_as_long_as_they_do_not_change(app: App, shop: Path) -> None:
    person = Person(app, roots=[shop])

    async def several(client: Client) -> None:
        for _ in range(3):
            await client.call_tool("memory_recall", {"query": "till"})

    person.do(several)
    assert person.asked == 1


def test_a_client_that_does_not_tell_its_roots_is_served_from_the_folder_of_the_server(app: App, shop: Path) -> None:
    async def refuse(context: object) -> protocol.ErrorData:
        return protocol.ErrorData(code=protocol.INTERNAL_ERROR, message="not now")

    async def work() -> str:
        person = Person(app, folder=shop)
        async with Client(person.server, mode="legacy", list_roots_callback=refuse) as client:
            await client.call_tool("memory_remember", {"content": "The till takes coins."})
            return text_of(await client.call_tool("memory_recall", {"query": "till"}))

    assert "coins" in anyio.run(work)


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_store_that_fails_is_an_answer_and_the_server_lives_on(
    app: App, mode: Mode, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(app, mode=mode, roots=[shop])
    remembered(app, shop, "The kiln is lit at six.")
    with monkeypatch.context() as broken:
        broken.setattr(app.backend.projects, "identify", partial(_fail, StoreUnavailable("the disk at /dev/sdz died")))
        broken.setattr(app.backend.memories, "select", partial(_fail, StoreUnavailable("the disk at /dev/sdz died")))
        result = person.call("memory_recall", {"query": "kiln"})
        assert result.is_error
        assert "not available" in text_of(result)
        assert "sdz" not in text_of(result)
        with pytest.raises(MCPError, match="not available"):
            person.do(lambda client: client.list_resources())
        assert person.do(lambda client: client.list_tools()).tools, "a client that sees no tools never asks again"
    assert "lit at six" in person.say("memory_recall", query="kiln")


def test_a_fault_of_ours_tells_nothing_of_the_inside(
    app: App, mode: Mode, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(app, mode=mode, roots=[shop])
    monkeypatch.setattr(app.backend.memories, "by_number", partial(_fail, ZeroDivisionError("at line 12")))
    result = person.call("memory_forget", {"id": 1})
    assert result.is_error
    assert "unexpected" in text_of(result)
    with pytest.raises(MCPError) as caught:
        read(person, "backstory://memory/1")
    assert "line 12" not in str(caught.value)


async def _fail(error: Exception, *args: object, **kwargs: object) -> None:
    raise error


def test_a_call_that_takes_too_long_is_ended(app: App, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "CALL_WITHIN_S", 0.05)
    monkeypatch.setattr(app.backend.memories, "by_number", lambda number: anyio.sleep(20))
    with pytest.raises(MCPError, match="too long"):
        Person(app, folder=shop).call("memory_forget", {"id": 1})


def test_every_tool_there_is_says_what_it_does_to_memories() -> None:
    assert {tool.effect for tool in TOOLS} == {"reads", "adds", "changes"}
