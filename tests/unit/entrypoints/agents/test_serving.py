"""A hook asks a running server first, and goes on without it where that fails."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from backstory.domain.ids import MessageId, SessionId
from backstory.entrypoints.agents.calls import Event, GenericFormat, HookCall
from backstory.entrypoints.agents.serving import Reply, from_server
from backstory.entrypoints.http.announcement import Announcement, announced
from backstory.entrypoints.http.token import obtain_token


class Answering(BaseHTTPRequestHandler):
    """Says what the test told it to, and notes what it was asked."""

    status = 200
    body = b'{"context": "from the server"}'
    hold = threading.Event()
    asked: list[tuple[str, str | None, object]]

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, self.headers["Authorization"], given))
        if not self.hold.is_set():
            self.hold.wait(60)
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    handler = type("Handler", (Answering,), {"asked": [], "hold": threading.Event()})
    handler.hold.set()  # type: ignore[attr-defined]  # its own
    listening = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    yield listening
    handler.hold.set()  # type: ignore[attr-defined]
    listening.shutdown()
    listening.server_close()
    thread.join()


HERE = "fingerprint of a store"
CALL = HookCall(
    event=Event.PROMPT, agent="claude-code", session=SessionId("s"), message=MessageId("m"), directory=Path("/orchard"),
    text="é",
)  # fmt: skip


def note(server: ThreadingHTTPServer, url: str | None = None) -> Announcement:
    return Announcement(
        url=url or f"http://127.0.0.1:{server.server_port}", socket=None, pid=1, version="0", store=HERE
    )


def test_the_server_is_asked_with_the_token(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    token = obtain_token(tmp_path)
    with announced(tmp_path, note(server)):
        told = from_server(tmp_path, CALL, store=HERE)
    assert told == Reply(text="from the server")
    ((path, bearer, given),) = server.RequestHandlerClass.asked  # type: ignore[attr-defined]  # of the handler above
    assert (path, bearer) == ("/v1/hooks/prompt?agent=generic", f"Bearer {token}")
    assert GenericFormat().read(Event.PROMPT, given) == CALL


def test_a_server_over_another_store_is_not_asked(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    obtain_token(tmp_path)
    with announced(tmp_path, note(server)):
        assert from_server(tmp_path, CALL, store="another") is None
    assert server.RequestHandlerClass.asked == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "said", [b'{"decision": "block"}', b'{"context": ["x"]}', b"[]", b"[" * 100_000, b'"' + b"x" * 1_000_001 + b'"']
)
def test_nothing_but_a_text_is_taken_from_a_server(server: ThreadingHTTPServer, tmp_path: Path, said: bytes) -> None:
    obtain_token(tmp_path)
    server.RequestHandlerClass.body = said  # type: ignore[attr-defined]
    with announced(tmp_path, note(server)), pytest.raises(ValueError, match=r"answer|bytes"):
        from_server(tmp_path, CALL, store=HERE)


def test_without_a_server_on_this_machine_nobody_is_asked(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    obtain_token(tmp_path)
    assert from_server(tmp_path, CALL, store=HERE) is None
    (tmp_path / "serve.json").write_text(json.dumps(note(server).as_json() | {"store": HERE}))
    assert from_server(tmp_path, CALL, store=HERE) is None
    for url in (f"https://127.0.0.1:{server.server_port}", "http://192.0.2.1:4747", "http://127.0.0.1"):
        with announced(tmp_path, note(server, url)):
            assert from_server(tmp_path, CALL, store=HERE) is None
    assert server.RequestHandlerClass.asked == []  # type: ignore[attr-defined]


def test_a_server_that_fails_is_told_of(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    handler = server.RequestHandlerClass
    with announced(tmp_path, note(server)):
        with pytest.raises(OSError, match="no token"):
            from_server(tmp_path, CALL, store=HERE)
        obtain_token(tmp_path)
        handler.body = b"not JSON"  # type: ignore[attr-defined]
        with pytest.raises(ValueError, match="Expecting"):
            from_server(tmp_path, CALL, store=HERE)
        handler.status = 503  # type: ignore[attr-defined]
        with pytest.raises(OSError, match="503"):
            from_server(tmp_path, CALL, store=HERE)
        handler.hold.clear()  # type: ignore[attr-defined]
        with pytest.raises(TimeoutError):
            from_server(tmp_path, CALL, store=HERE)
