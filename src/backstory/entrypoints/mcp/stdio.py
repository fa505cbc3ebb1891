"""The server as a child process of one client: JSON lines over standard input and output.

It ends when its input ends, so that it never outlives its client; what had been asked by then is still answered.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import anyio
import anyio.to_thread
import mcp.types as protocol
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from backstory.bootstrap import App
from backstory.entrypoints.background_upkeep import BackgroundUpkeep
from backstory.entrypoints.http.traffic import Traffic
from backstory.entrypoints.mcp.server import McpServer
from backstory.entrypoints.standard_streams import lines, take_streams

log = logging.getLogger(__name__)

MAX_LINE_BYTES = 16 * 1024 * 1024
DRAIN_WITHIN_S = 1.5  # after the end of input; clients kill after 2 s

Incoming = SessionMessage | Exception


class StdioServer:
    """One conversation with one client over two byte streams."""

    def __init__(self, app: App, *, folder: Path | None, asks_roots: bool, source: BinaryIO, sink: BinaryIO) -> None:
        traffic = Traffic()
        self._app = app
        self._upkeep = BackgroundUpkeep(app, give_way=traffic.give_way)
        self._server = McpServer(
            app, folder=folder, asks_roots=asks_roots, changed=self._upkeep.wake, traffic=traffic
        ).sdk()
        self._source = source
        self._sink = sink
        self._open: set[protocol.RequestId] = set()  # asked, not answered yet
        self._answered = anyio.Event()

    async def run(self) -> None:
        """Serve until the input ends or the process is asked to end, then release the store."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._end_when_asked, tasks.cancel_scope)
                tasks.start_soon(self._upkeep.keep_embedding)
                tasks.start_soon(self._upkeep.keep_expiring)
                await self._serve(self._server)
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._app.close()

    async def _serve(self, server: Server[Any]) -> None:
        reading_in, reading_out = anyio.create_memory_object_stream[Incoming](0)
        writing_in, writing_out = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read, reading_in)
            tasks.start_soon(self._write, writing_out)
            await server.run(reading_out, writing_in, server.create_initialization_options())
            tasks.cancel_scope.cancel()

    async def _end_when_asked(self, everything: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for number in signals:
                log.info("event=asked_to_end signal=%s", number.name)
                everything.cancel()
                return

    async def _read(self, messages: MemoryObjectSendStream[Incoming]) -> None:
        async with messages:
            async for line in lines(self._source, max_bytes=MAX_LINE_BYTES):
                try:
                    message = protocol.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValidationError as error:
                    await messages.send(error)
                    continue
                if isinstance(message, protocol.JSONRPCRequest):
                    self._open.add(message.id)
                await messages.send(SessionMessage(message))
            with anyio.move_on_after(DRAIN_WITHIN_S):
                while self._open:
                    self._answered = anyio.Event()
                    await self._answered.wait()

    async def _write(self, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with messages:
            async for item in messages:
                message = item.message
                line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                await anyio.to_thread.run_sync(self._put, line, abandon_on_cancel=True)
                if isinstance(message, protocol.JSONRPCResponse | protocol.JSONRPCError) and message.id is not None:
                    self._open.discard(message.id)
                    self._answered.set()

    def _put(self, line: bytes) -> None:
        try:
            self._sink.write(line)
            self._sink.flush()
        except (OSError, ValueError) as error:
            log.warning("event=client_gone reason=%s", error)  # the input ends next, and with it this process


def serve_stdio(app: App, *, folder: Path | None, asks_roots: bool) -> NoReturn:
    """Serve the client that started this process, over its standard input and output, and end the process."""
    source, sink = take_streams()
    code = 1
    try:
        anyio.run(StdioServer(app, folder=folder, asks_roots=asks_roots, source=source, sink=sink).run)
        code = 0
    except Exception:
        log.exception("event=server_broke")
    finally:
        # at once: an ordinary exit waits for the thread that loads the model, and for the one that reads
        logging.shutdown()
        sys.stderr.flush()
        os._exit(code)
