"""A real HTTP server on this machine that gives scripted answers and keeps what it was sent."""

from __future__ import annotations

import json
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What arrived; ``body`` is parsed JSON, ``headers`` have lower-case names."""

    path: str
    headers: Mapping[str, str]
    body: Any  # whatever JSON the client chose to send


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What goes back: raw ``content`` if given, else ``body`` as JSON; ``hang_up`` closes without a word."""

    status: int = 200
    body: object = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0
    hang_up: bool = False


Respond = Callable[[Request], Answer]


class ScriptedServer:
    """Answers with ``script`` in order, then always with ``respond``."""

    def __init__(self, respond: Respond) -> None:
        self.requests: list[Request] = []
        self.script: deque[Answer] = deque()
        self.respond = respond
        self.over = threading.Event()  # ends every delay
        self._http = _Server(("127.0.0.1", 0), _handler(self))

    @property
    def url(self) -> str:
        """The root, without a slash at its end."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def answer(self, request: Request) -> Answer:
        """Keep the request and choose what to say."""
        self.requests.append(request)
        return self.script.popleft() if self.script else self.respond(request)

    @contextmanager
    def running(self) -> Iterator[ScriptedServer]:
        """Serve in a thread until the block ends."""
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.over.set()
            self._http.shutdown()
            self._http.server_close()
            thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a client may leave; anything else is a bug here
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # the stub names a private alias


def _handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one packet an answer: two would wait for each other's acknowledgement, 40 ms

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = server.answer(Request(path=self.path, headers=headers, body=json.loads(sent)))
            if answer.delay_seconds:
                server.over.wait(answer.delay_seconds)
            if answer.hang_up:
                self.close_connection = True
                return
            content = answer.content if answer.content is not None else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in {"content-length": str(len(content)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
