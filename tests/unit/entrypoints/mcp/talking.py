"""The server in the test's own process, spoken to by the SDK's own client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import anyio
import mcp.types as protocol
from mcp import Client
from mcp.shared.exceptions import MCPError

from backstory.adapters.stores.memory import open_memory_store
from backstory.bootstrap import App
from backstory.config import Settings
from backstory.domain.history import Author
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience
from backstory.entrypoints.drive import drive
from backstory.entrypoints.mcp.server import McpServer
from backstory.services.remember import Draft

T = TypeVar("T")
Mode = Literal["legacy", "auto"]
MODES: tuple[Mode, ...] = ("legacy", "auto")
"""The protocol with a handshake, and the newest one without."""


def new_app() -> App:
    return App(Settings(), open_memory_store(), None, no_embedder="not in this test")


class Person:
    """Somebody at a client. ``roots`` are what the client tells when it is asked; None for one that has none."""

    def __init__(
        self, app: App, *, mode: Mode = "legacy", roots: Sequence[Path] | None = None, folder: Path | None = None
    ) -> None:
        self.app = app
        self.mode = mode
        self.roots = None if roots is None else list(roots)
        self.asked = 0
        self.changes = 0
        self.server = McpServer(app, folder=folder, changed=self._changed).sdk()

    def do(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Connect, work, and leave. Raises what the work raised, by itself: leaving would wrap it into a group."""

        async def connected() -> T | MCPError:
            callback = None if self.roots is None else self._tell_roots
            info = protocol.Implementation(name="drawing board", version="2.1")
            async with Client(self.server, mode=self.mode, list_roots_callback=callback, client_info=info) as client:
                try:
                    return await work(client)
                except MCPError as error:
                    return error

        done = anyio.run(connected)
        if isinstance(done, MCPError):
            raise done
        return done

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> protocol.CallToolResult:
        """One call in a connection of its own."""
        return self.do(lambda client: client.call_tool(name, arguments))

    def say(self, name: str, **arguments: Any) -> str:
        """What a tool answers, which is no failure."""
        result = self.call(name, arguments)
        assert not result.is_error, result
        return text_of(result)

    async def _tell_roots(self, context: object) -> protocol.ListRootsResult:
        self.asked += 1
        assert self.roots is not None
        return protocol.ListRootsResult(roots=[protocol.Root(uri=root.as_uri()) for root in self.roots])  # type: ignore[arg-type] # parsed

    def _changed(self) -> None:
        self.changes += 1


def text_of(result: protocol.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, protocol.TextContent)
    return content.text


def remembered(app: App, folder: Path, *contents: str, **fields: object) -> None:
    viewer = drive(app.viewer(folder, audience=Audience.PERSON))
    for content in contents:
        draft = Draft(content=content, origin=Origin.USER, **fields)  # type: ignore[arg-type] # a test's own
        drive(app.remember.remember(draft, viewer=viewer, author=Author.USER))


def read(person: Person, uri: str) -> str:
    (contents,) = person.do(lambda client: client.read_resource(uri)).contents
    assert isinstance(contents, protocol.TextResourceContents)
    assert contents.uri == uri
    return contents.text
