"""Connections of the HTTP server on which nothing comes, too much comes, or nothing is taken: they are closed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
import uvicorn

from backstory.entrypoints.http import connection
from backstory.entrypoints.http.guard import Application, Receive, Scope, Send

WITHIN_S = 60


async def ok(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def connected(application: Application, client: Callable[[socket.socket], bytes]) -> bytes:
    """What a client says that has talked to an application over a connection of ours."""
    config = uvicorn.Config(
        application, http=connection.PunctualProtocol, lifespan="off", log_config=None, timeout_keep_alive=1
    )
    server = uvicorn.Server(config)

    def talk() -> bytes:
        with socket.create_connection(listening.getsockname(), timeout=WITHIN_S) as opened:
            return client(opened)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listening])
            heard = await anyio.to_thread.run_sync(talk)
            server.should_exit = True
    return heard


@pytest.mark.parametrize("begun", [b"", b"G", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "])
@pytest.mark.parametrize("after_another", [False, True])
def test_a_connection_whose_headers_do_not_come_is_closed(
    begun: bytes, after_another: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "STRANGERS_HEADERS_WITHIN_S", 0.05)

    def closed(client: socket.socket) -> bytes:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" if after_another else b"")
        answered = client.recv(1_000) if after_another else b""
        client.sendall(begun)
        return answered + b"".join(iter(lambda: client.recv(1_000), b""))

    assert anyio.run(connected, ok, closed).endswith(b"ok" if after_another else b"")


@pytest.mark.parametrize("rest", [b"x", b"xyz"])
def test_a_connection_on_which_a_body_still_comes_after_its_answer_is_closed(
    rest: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "STRANGERS_HEADERS_WITHIN_S", 0.05)

    def closed(client: socket.socket) -> bytes:
        client.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n")
        answered = client.recv(1_000)
        client.sendall(rest)
        return answered + b"".join(iter(lambda: client.recv(1_000), b""))

    assert anyio.run(connected, ok, closed).endswith(b"ok")


def test_a_connection_on_which_an_answer_is_not_taken_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "TAKEN_WITHIN_S", 0.05)
    is_let_go = threading.Event()

    async def pours(scope: Scope, receive: Receive, send: Send) -> None:
        async def pour() -> None:
            while True:
                await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
                await anyio.lowlevel.checkpoint()  # uvicorn takes all at once that nobody hears any more

        await send({"type": "http.response.start", "status": 200, "headers": []})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pour)
            while (await receive())["type"] != "http.disconnect":
                pass
            is_let_go.set()
            tasks.cancel_scope.cancel()

    def reads_nothing(client: socket.socket) -> bytes:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return b"let go" if is_let_go.wait(timeout=WITHIN_S) else b"kept"

    assert anyio.run(connected, pours, reads_nothing) == b"let go"
