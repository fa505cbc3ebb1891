"""``backstory serve`` as a real process: it listens, answers, tells where it is, streams, and ends in order."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from backstory.entrypoints.http.announcement import running_server
from backstory.entrypoints.http.handshakes import MOST_WAITING
from backstory.entrypoints.http.process import MAX_CONNECTIONS

COMMAND = (sys.executable, "-m", "backstory")
WITHIN_S = 60
Json = Any  # whatever the wire carries


class Serving:
    """A server over the store in ``home``, for an agent in ``folder``."""

    def __init__(self, home: Path, folder: Path, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self.home, self.folder, self.process = home, folder, process
        self.told: Json = json.loads(process.stdout.readline())
        self.token = Path(self.told["token_file"]).read_text().strip()

    def connect(self) -> HTTPConnection:
        if self.told["socket"] is None:
            return HTTPConnection("127.0.0.1", int(self.told["url"].rpartition(":")[2]), timeout=WITHIN_S)
        connection = HTTPConnection("localhost", timeout=WITHIN_S)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.told["socket"])
        return connection

    def send(self, method: str, path: str, body: Json = None, headers: dict[str, str] | None = None) -> HTTPResponse:
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"} | (headers or {})
        connection = self.connect()
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        return connection.getresponse()

    def post(self, path: str, **body: Json) -> Json:
        response = self.send("POST", path, {"project": str(self.folder)} | body)
        assert response.status == 200
        return json.loads(response.read())


def environment(home: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("BACKSTORY_")}
    return {**inherited, "BACKSTORY_HOME": str(home), "BACKSTORY_EMBEDDER_PROVIDER": "none",
            "BACKSTORY_NO_BACKGROUND": "1", "BACKSTORY_LOG_LEVEL": "debug"}  # fmt: skip


@contextmanager
def serving(base: Path, *options: str, **settings: object) -> Iterator[Serving]:
    home, folder = base / "home", base / "project"
    folder.mkdir(exist_ok=True)
    with (base / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            [*COMMAND, "serve", "--json", *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(home) | {f"BACKSTORY_{name.upper()}": str(value) for name, value in settings.items()},
            cwd=base,
        )
    try:
        yield Serving(home, folder, process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=WITHIN_S)


def run(home: Path, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [*COMMAND, *arguments], env=environment(home), cwd=folder, capture_output=True, text=True, timeout=WITHIN_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def told_events(stream: HTTPResponse, count: int) -> list[Json]:
    """The data of the next events."""
    found: list[Json] = []
    while len(found) < count:
        line = stream.readline()
        assert line, "the stream ended"
        if line.startswith(b"data: "):
            found.append(json.loads(line.removeprefix(b"data: ")))
    return found


def test_a_server_shares_the_store_with_the_command_line_streams_changes_and_ends_in_order(tmp_path: Path) -> None:
    with serving(tmp_path, "--port", "0") as server:
        announcement = running_server(server.home)
        assert announcement is not None
        assert (announcement.url, announcement.pid) == (server.told["url"], server.process.pid)
        for name in ("serve.json", "serve-token"):
            assert stat.S_IMODE((server.home / name).stat().st_mode) == 0o600

        stream = server.send("GET", f"/v1/events?project={server.folder}")
        assert stream.readline().startswith(b": connected")
        stored = server.post("/v1/tools/memory_remember", arguments={"content": "The yarrow stands by the gate"})
        assert stored["text"].startswith("Stored as #1")
        assert "yarrow" in run(server.home, server.folder, "show", "1")
        run(server.home, server.folder, "remember", "Frost comes in October")
        assert [(event["author"], event["memories"][0]["n"]) for event in told_events(stream, 2)] == [
            ("agent", 1),
            ("user", 2),
        ]
        assert server.post("/v1/recall", query="frost")["results"][0]["n"] == 2

        refused = server.send("GET", "/v1/tools", headers={"Authorization": "Bearer no"})
        assert (refused.status, refused.getheader("connection")) == (401, "close")
        wrong = server.send("POST", "/v1/recall", {"limit": "many"})
        assert (wrong.status, wrong.getheader("connection")) == (422, None)
        assert server.send("GET", "/v1/tools", headers={"Host": "evil.example"}).status == 421
        assert server.send("POST", "/v1/recall", {}, {"Origin": "https://evil.example"}).status == 403
        assert server.send("POST", "/v1/recall", {"query": "x" * 1_000_000}).status == 413
        assert server.send("POST", "/mcp", {}, {"Authorization": "Bearer no"}).status == 401
        opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
        assert server.send("POST", "/mcp", call, {"Accept": "application/json, text/event-stream"}).status == 200

        server.process.send_signal(signal.SIGTERM)
        assert stream.read() is not None  # it ends too
        assert server.process.wait(timeout=WITHIN_S) == 0
    assert running_server(server.home) is None
    assert sorted(path.name for path in server.home.iterdir()) == ["backstory.db", "serve-token"]
    logged = (tmp_path / "stderr").read_text()
    assert not any(word in logged for word in ("yarrow", "Frost", server.token, "Traceback"))


def test_a_server_on_a_socket_answers_a_hook_and_one_that_was_killed_is_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "sock"
    hook = json.dumps({"session": "ses_1", "directory": str(tmp_path / "project"), "prompt": "Who keeps the gate?"})
    with serving(tmp_path, "--socket", str(path)) as server:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        server.post("/v1/tools/memory_remember", arguments={"content": "Marta keeps the gate"})
        response = server.send("POST", "/v1/hooks/prompt", json.loads(hook))
        assert "Marta" in json.loads(response.read())["context"]
        with serving(tmp_path, "--port", "0") as second:
            assert running_server(server.home) is not None
            second.process.kill()
            second.process.wait(timeout=WITHIN_S)
            still = running_server(server.home)  # at once, though the note is that of the one that was killed
        assert still is not None
        assert (still.pid, still.socket) == (server.process.pid, path)
        server.process.kill()
        server.process.wait(timeout=WITHIN_S)
        assert (server.home / "serve.json").exists()
        assert running_server(server.home) is None
        assert path.exists()
    with serving(tmp_path, "--socket", str(path)) as server:
        assert server.post("/v1/recall", query="gate")["results"][0]["content"] == "Marta keeps the gate"
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(timeout=WITHIN_S) == 0
    assert not path.exists()


class Flood:
    """Fills a server with connections that show no token, and connects anew as fast as it can."""

    def __init__(self, server: Serving, begun: bytes) -> None:
        self._address = ("127.0.0.1", int(server.told["url"].rpartition(":")[2]))
        self._begun = begun
        self._is_full, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._pour)

    def __enter__(self) -> None:
        self._thread.start()
        assert self._is_full.wait(WITHIN_S)

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(WITHIN_S)

    def _pour(self) -> None:
        opened: list[socket.socket] = []
        while not self._ended.is_set():
            with contextlib.suppress(OSError):  # one that was pushed out
                opened.append(socket.create_connection(self._address, timeout=WITHIN_S))
                opened[-1].sendall(self._begun)
            if len(opened) > 2 * MAX_CONNECTIONS:
                self._is_full.set()
                opened.pop(0).close()
        for left in opened:
            left.close()


def test_who_has_the_token_gets_through_while_somebody_without_it_takes_every_connection(tmp_path: Path) -> None:
    with serving(tmp_path, "--port", "0") as server:
        authorised = {"Authorization": f"Bearer {server.token}"}
        kept = server.connect()
        for begun in (b"", b"GET /v1/tools HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            kept.request("GET", "/v1/tools", headers=authorised)
            assert kept.getresponse().read()
            with Flood(server, begun):
                for _ in range(5):
                    assert server.send("GET", "/v1/tools").status == 200
                    kept.request("GET", "/v1/tools", headers=authorised)
                    response = kept.getresponse()
                    assert (response.status, bool(response.read())) == (200, True)
    assert "Traceback" not in (tmp_path / "stderr").read_text()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_with_a_certificate_those_who_only_knock_take_no_more_than_the_doorway(tmp_path: Path) -> None:
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    named = "-addext subjectAltName=DNS:localhost"
    words = f"{made} {named} -keyout {key} -out {chain}".split()
    subprocess.run(["openssl", *words], check=True, capture_output=True)
    with (
        serving(tmp_path, "--port", "0", serve_certificate=chain, serve_certificate_key=key) as server,
        contextlib.ExitStack() as held,
    ):
        address = ("127.0.0.1", int(server.told["url"].rpartition(":")[2]))
        knocking = [held.enter_context(socket.create_connection(address)) for _ in range(MOST_WAITING + 20)]
        context = ssl.create_default_context(cafile=chain)
        known = held.enter_context(contextlib.closing(HTTPSConnection("localhost", address[1], context=context)))
        for _ in range(2):
            known.request("GET", "/v1/tools", headers={"Authorization": f"Bearer {server.token}"})
            response = known.getresponse()
            assert (response.status, bool(response.read())) == (200, True)
        knocking[0].settimeout(WITHIN_S)
        assert knocking[0].recv(1) == b""


def test_what_cannot_be_served_safely_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    home = tmp_path / "home"
    refused = [
        (["--host", "0.0.0.0"], "serve.certificate"),
        (["--socket", str(tmp_path)], "no socket"),
    ]
    for options, told in refused:
        done = subprocess.run(
            [*COMMAND, "serve", *options], env=environment(home), cwd=tmp_path, capture_output=True, text=True,
            timeout=WITHIN_S,
        )  # fmt: skip
        assert done.returncode == 6
        assert told in done.stderr
    assert not (home / "backstory.db").exists()
    token = run(home, tmp_path, "serve", "--print-token").strip()
    assert token == (home / "serve-token").read_text().strip()
    (home / "serve-token").chmod(0o644)
    done = subprocess.run([*COMMAND, "serve"], env=environment(home), capture_output=True, text=True, timeout=WITHIN_S)
    assert done.returncode == 6
    assert "may be read by others" in done.stderr
