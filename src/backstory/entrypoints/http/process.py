"""The process of ``backstory serve``: one store, one listener, work in the background, and an orderly end.

Its log, on standard error, holds no text of a memory, no token and no address of a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import anyio
import uvicorn

from backstory.__about__ import __version__
from backstory.bootstrap import App
from backstory.bootstrap.store_address import store_address
from backstory.config.serving import ServeSettings
from backstory.entrypoints.background_upkeep import BackgroundUpkeep
from backstory.entrypoints.http.announcement import Announcement, announced
from backstory.entrypoints.http.application import Server, application
from backstory.entrypoints.http.connection import ACCEPTED_AT_ONCE, PunctualProtocol
from backstory.entrypoints.http.guard import Application, Limits
from backstory.entrypoints.http.handshakes import Door
from backstory.entrypoints.http.listener import BACKLOG, Listener, listening
from backstory.entrypoints.http.token import obtain_token
from backstory.entrypoints.http.traffic import Traffic

log = logging.getLogger(__name__)

STOP_WITHIN_S = 5
"""How long requests may go on after the signal to end."""
KEEP_ALIVE_S = 15
MAX_CONNECTIONS = 128
"""At once; more are told to come again (503)."""


class _Uvicorn(uvicorn.Server):
    """Lets the streams of events end before it waits for them, and leaves the rest of the end to us: uvicorn's own way
    with signals would kill the process before the store is closed."""

    def __init__(self, config: uvicorn.Config, ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._ending = ending

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for opened in sockets or ():  # uvicorn has one number for those that wait and those that are taken in one go
            opened.listen(BACKLOG)

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override] # handed on
        self._ending()
        await super().shutdown(sockets)  # type: ignore[arg-type]


def serve(app: App, *, data_dir: Path, tell: Callable[[Announcement], None], folder: Path | None = None) -> None:
    """Serve until SIGTERM or SIGINT; ``tell`` is told once it listens. ``folder`` is the one that ``app`` was opened
    for, if not this one. Raises ConfigError for what cannot be served."""
    chosen = app.settings.serve
    token = obtain_token(data_dir)
    with ExitStack() as held:
        listener = held.enter_context(listening(chosen))
        announcement = Announcement(
            url=listener.url,
            socket=listener.path,
            pid=os.getpid(),
            version=__version__,
            store=store_address(app.settings, folder or Path.cwd()),
        )
        held.enter_context(announced(data_dir, announcement))
        anyio.run(_serve, app, token, listener, lambda: tell(announcement))


async def _serve(app: App, token: str, listener: Listener, tell: Callable[[], None]) -> None:
    traffic = Traffic()
    upkeep = BackgroundUpkeep(app, give_way=traffic.give_way)
    server = Server(app, traffic=traffic, changed=upkeep.wake)
    guarded = application(app, token=token, host=listener.host, server=server)
    opened = listener.socket if app.settings.serve.certificate is None else Door(listener.socket)
    try:
        async with anyio.create_task_group() as background:
            background.start_soon(upkeep.keep_embedding)
            background.start_soon(upkeep.keep_expiring)
            tell()
            await _Uvicorn(_config(guarded, app.settings.serve, opened), server.changes.close).serve([opened])
            background.cancel_scope.cancel()
    finally:
        opened.close()
        with anyio.CancelScope(shield=True):
            await app.close()


def _config(guarded: Application, chosen: ServeSettings, opened: socket.socket) -> uvicorn.Config:
    protocol = partial(PunctualProtocol, door=opened) if isinstance(opened, Door) else PunctualProtocol
    return uvicorn.Config(
        guarded,
        http=protocol,  # type: ignore[arg-type]  # uvicorn calls it, and no more
        ws="none",
        lifespan="on",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=ACCEPTED_AT_ONCE,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_WITHIN_S,
        h11_max_incomplete_event_size=2 * Limits().header_bytes,
        ssl_certfile=chosen.certificate,
        ssl_keyfile=chosen.certificate_key,
    )
