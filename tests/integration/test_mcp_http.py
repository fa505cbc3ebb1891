"""The protocol over HTTP: one server for many clients, each in its own project, and nobody without the token."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx2
import mcp.types as protocol
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

T = TypeVar("T")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}},
}
HEADERS = {"Accept": "application/json, text/event-stream"}


class Served:
    """A running server, with projects beside its home."""

    def __init__(self, base: Path) -> None:
        self.base = base
        env = {name: value for name, value in os.environ.items() if not name.startswith("BACKSTORY_")}
        env |= {"BACKSTORY_HOME": str(base / "home"), "BACKSTORY_RECALL_MODE": "lexical"}
        command = (sys.executable, "-m", "backstory", "mcp", "--http", "--port", "0")
        self.errors = (base / "stderr").open("wb")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.errors, env=env, cwd=self.project("here"), text=True
        )
        assert self.process.stdout
        greeting = self.process.stdout.readline() + self.process.stdout.readline()
        found = re.search(r"served at (\S+);", greeting)
        assert found, greeting + (base / "stderr").read_text()
        self.url = found[1]
        self.token = (base / "home" / "serve-token").read_text().strip()

    def project(self, name: str) -> Path:
        folder = self.base / name
        folder.mkdir()
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        return folder

    def talk(
        self,
        work: Callable[[Client], Awaitable[T]],
        *,
        roots: Sequence[Path] | None = None,
        mode: Any = "auto",
        address: str = "",
    ) -> T:
        """Connect as the SDK's client does, and work. ``address`` is what follows the server's."""

        async def tell(context: object) -> protocol.ListRootsResult:
            return protocol.ListRootsResult.model_validate({"roots": [{"uri": root.as_uri()} for root in roots or ()]})

        async def connected() -> T:
            headers = {"Authorization": f"Bearer {self.token}"}
            async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=240) as http:
                transport = streamable_http_client(self.url + address, http_client=http)
                callback = None if roots is None else tell
                async with Client(
                    transport, mode=mode, list_roots_callback=callback, read_timeout_seconds=60
                ) as client:
                    return await work(client)

        return anyio.run(connected)

    def say(self, name: str, arguments: dict[str, Any], **where: Any) -> str:
        """The answer of one tool in a connection of its own."""
        return self.talk(lambda client: told(client, name, arguments), **where)

    def post(self, **headers: str) -> int:
        """The status of a greeting sent by hand."""
        with httpx2.Client(trust_env=False, timeout=240) as http:
            return http.post(self.url, json=INITIALIZE, headers=HEADERS | headers).status_code


async def told(client: Client, name: str, arguments: dict[str, Any]) -> str:
    (content,) = (await client.call_tool(name, arguments)).content
    assert isinstance(content, protocol.TextContent)
    return content.text


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("served"))
    yield server
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=60) == 0
    server.errors.close()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_each_client_is_served_in_its_own_project(served: Served, mode: str) -> None:
    shop, mill = served.project(f"shop-{mode}"), served.project(f"mill-{mode}")
    content = f"The till takes {mode} coins."
    assert "Stored as" in served.say("memory_remember", {"content": content}, roots=[shop], mode=mode)
    search = {"query": f"till {mode}"}
    assert content in served.say("memory_recall", search, roots=[shop], mode=mode)
    assert content in served.say("memory_recall", search, mode=mode, address=f"?project={shop}")
    assert content not in served.say("memory_recall", search, roots=[mill], mode=mode)
    assert content not in served.say("memory_recall", search, mode=mode, address=f"?project={mill}")
    assert "No project folder is known" in served.say("memory_recall", search, mode=mode)
    assert "no folder" in served.say("memory_recall", search, mode=mode, address="?project=/no/such/folder")


def test_a_connection_of_the_older_protocol_is_a_session_and_a_request_of_the_newer_one_is_none(served: Served) -> None:
    shop = served.project("shop-of-sessions")

    async def keep(client: Client) -> str:
        await told(client, "memory_remember", {"content": "The visitor waits in hall two.", "scope": "session"})
        return await told(client, "memory_recall", {"query": "visitor"})

    assert "hall two" in served.talk(keep, roots=[shop], mode="legacy")
    assert "hall two" not in served.say("memory_recall", {"query": "visitor"}, roots=[shop], mode="legacy")
    assert "no session here" in served.say(
        "memory_remember", {"content": "The visitor is late.", "scope": "session"}, roots=[shop]
    )


def test_resources_and_prompts_come_over_http_too(served: Served) -> None:
    shop = served.project("shop-of-resources")
    number = (
        served.say("memory_remember", {"content": "The kiln is lit at six."}, roots=[shop]).split("#")[1].split()[0]
    )

    async def look(client: Client) -> str:
        found = await client.read_resource(f"backstory://memory/{number}")
        return f"{found.contents[0]} {(await client.get_prompt('project-briefing')).messages[0].content}"

    assert served.talk(look, roots=[shop], mode="legacy").count("lit at six") == 2


def test_nobody_is_heard_without_the_token_or_under_another_name(served: Served) -> None:
    bearer = f"Bearer {served.token}"
    assert served.post(Authorization=bearer) == 200
    assert served.post() == 401
    assert served.post(Authorization="Bearer guessed") == 401
    assert served.post(Authorization=bearer, Host="rebound.example") == 421
    assert served.post(Authorization=bearer, Origin="https://page.example") == 403
