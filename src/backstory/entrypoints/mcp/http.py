"""The server over streamable HTTP, as an ASGI application that others put behind a guard, or run alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from backstory.bootstrap import App
from backstory.entrypoints.http.guard import Application
from backstory.entrypoints.http.traffic import Traffic
from backstory.entrypoints.mcp.server import McpServer

PATH = "/mcp"
IDLE_S = 4 * 3600.0  # a person may come back to an open program after lunch
MAX_SESSIONS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class McpApplication:
    """``asgi`` answers requests to one address, whichever it is mounted at, while ``running`` is entered (once)."""

    asgi: Application
    running: Callable[[], AbstractAsyncContextManager[None]]


def mcp_app(
    app: App,
    *,
    changed: Callable[[], None] = lambda: None,
    traffic: Traffic | None = None,
    folder: Path | None = None,
    body_bytes: int | None = None,
) -> McpApplication:
    """The protocol over ``app``. Nothing in it checks who calls: that is the guard's, before it.

    ``changed`` is told after calls that may have stored something. ``folder`` is the project of all clients, where one
    was settled; else each tells its own. ``body_bytes`` as the setting ``serve.body_max_bytes``.
    """
    server = McpServer(app, folder=folder, asks_roots=folder is None, changed=changed, traffic=traffic)
    manager = StreamableHTTPSessionManager(
        server.sdk(),
        session_idle_timeout=IDLE_S,
        max_sessions=MAX_SESSIONS,
        max_request_body_size=body_bytes or app.settings.serve.body_max_bytes,
    )
    return McpApplication(asgi=manager.handle_request, running=manager.run)
