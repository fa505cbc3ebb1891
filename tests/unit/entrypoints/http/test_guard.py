"""The guard before every server: hostile Host, Origin and Authorization headers, bodies and sizes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from backstory.entrypoints.http.guard import Guard, Limits, Message, Receive, Scope, Send
from backstory.entrypoints.http.names import allowed_hosts, allowed_origins
from backstory.errors import ConfigError

TOKEN = "A" * 43
GOOD = [(b"host", b"localhost:4747"), (b"authorization", f"Bearer {TOKEN}".encode())]
PAGE = "https://notes.example"
SMALL = Limits(body_bytes=100, headers=10, header_bytes=2_000, arrive_s=0.05, answer_s=0.05)


@dataclass
class Answer:
    """What came back, and what the application saw."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    reached: bool = False
    seen: bytes = b""

    @property
    def problem(self) -> Mapping[str, Any]:  # Any: JSON
        assert self.headers["content-type"] == "application/problem+json"
        told: dict[str, Any] = json.loads(self.body)
        return told


def ask(
    headers: Sequence[tuple[bytes, bytes]] = GOOD,
    *,
    method: str = "POST",
    path: str = "/v1/recall",
    body: Sequence[bytes] = (b"{}",),
    stalls: bool = False,
    application_stalls: bool = False,
) -> Answer:
    """One request through a guard before an application that reads the body whole and says 200."""
    answer = Answer()

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        answer.reached = True
        answer.seen = (await receive())["body"]
        if application_stalls:
            await anyio.sleep_forever()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"fine"})

    waiting = list(body)

    async def receive() -> Message:
        if not waiting:
            await anyio.sleep_forever()
        chunk = waiting.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(waiting) or stalls}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            answer.body += message["body"]

    guard = Guard(
        application,
        token=TOKEN,
        hosts=allowed_hosts("notes.example, pinned.example:8443"),
        origins=allowed_origins(f"{PAGE} http://localhost:3000"),
        limits=SMALL,
        open_paths={"/v1/health"},
    )
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
             "headers": list(headers)}  # fmt: skip
    anyio.run(guard, scope, receive, send)
    return answer


def with_header(name: str, *values: str) -> list[tuple[bytes, bytes]]:
    """The good headers, with these values in the place of one."""
    kept = [(key, value) for key, value in GOOD if key != name.encode()]
    return [*kept, *((name.encode(), value.encode("latin-1")) for value in values)]


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.0.0.1:4747", "127.9.9.9", "[::1]", "[::1]:4747",
     "[0:0:0:0:0:0:0:1]:80", "notes.example", "Notes.Example:99", "pinned.example:8443"],
)  # fmt: skip
def test_a_request_to_this_machine_or_an_allowed_name_is_served(host: str) -> None:
    answer = ask(with_header("host", host))
    assert (answer.status, answer.body, answer.seen) == (200, b"fine", b"{}")


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:4747", "localhost.evil.example", "127.0.0.1.nip.example", "0.0.0.0", "0.0.0.0:4747",
     "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::]", "[::ffff:127.0.0.1]", "[::1%25lo]", "pinned.example",
     "pinned.example:443", "notes.example.evil.example", "xnotes.example", "10.0.0.1", "169.254.169.254", "",
     "local host", "localhost:", "localhost:99999999", "localhost:-1", "localhost:80:80", "user@localhost",
     "localhost/",     "localhost#", "localhost,evil.example", "[::1", "::1", "[localhost]", "lócalhost",
     "ⓛocalhost".encode().decode("latin-1"),     "*", ".localhost", "localhost\t", "a" * 300],
)  # fmt: skip
def test_a_request_to_any_other_name_reaches_nothing(host: str) -> None:
    answer = ask(with_header("host", host))
    assert answer.status in (400, 421)
    assert answer.problem["field"] == "Host"
    assert not answer.reached


@pytest.mark.parametrize("hosts", [(), ("localhost", "evil.example"), ("localhost", "localhost")])
def test_there_must_be_exactly_one_host(hosts: tuple[str, ...]) -> None:
    assert ask(with_header("host", *hosts)).status == 400


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "*", "", "file://", "https://notes.example.evil.example", "http://notes.example",
     "https://notes.example:8443", "https://notes.example/", "https://notes.example/path", "https://user@notes.example",
     "https://evil.example https://notes.example", "http://localhost", "http://localhost:4747", "http://localhost:3001",
     "https://notes.example#", "https://notes.example?", "chrome-extension://abc",
     "https://[::1", "https://notes.example\\@evil.example"],
)  # fmt: skip
def test_a_web_page_that_was_not_allowed_reaches_nothing_even_with_the_token(origin: str) -> None:
    for method in ("POST", "GET", "OPTIONS"):
        answer = ask([*GOOD, (b"origin", origin.encode()), (b"access-control-request-method", b"POST")], method=method)
        assert answer.status == 403
        assert not answer.reached
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_two_origins_are_refused() -> None:
    page = (b"origin", PAGE.encode())
    assert ask([*GOOD, page, page]).status == 403


@pytest.mark.parametrize(
    "origin", [PAGE, "https://Notes.Example", "https://notes.example:443", "http://localhost:3000"]
)
def test_a_page_that_was_allowed_is_answered_by_its_name_and_needs_the_token_all_the_same(origin: str) -> None:
    page = (b"origin", origin.encode())
    answer = ask([*GOOD, page])
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers
    refused = ask([GOOD[0], page])
    assert refused.status == 401
    assert refused.headers["access-control-allow-origin"] == origin  # so that the page can read why


def test_a_preflight_is_answered_for_allowed_pages_without_token_and_without_reaching_anything() -> None:
    preflight = [GOOD[0], (b"origin", PAGE.encode()), (b"access-control-request-method", b"POST")]
    answer = ask(preflight, method="OPTIONS")
    assert (answer.status, answer.reached, answer.body) == (204, False, b"")
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "*" not in str(answer.headers)
    assert ask([GOOD[0], preflight[2]], method="OPTIONS").status == 401  # from no page: an ordinary request


@pytest.mark.parametrize(
    "values",
    [(), ("",), ("Bearer",), ("Bearer ",), (TOKEN,), (f"Basic {TOKEN}",), (f"Bearer {TOKEN}x",),
     (f"Bearer {TOKEN[:-1]}",),
     (f"Bearer {TOKEN.lower()}",), (f"Bearer\t{TOKEN}",), (f"Bearer {TOKEN}, Bearer {TOKEN}",), (f"Bearer {TOKEN} x",),
     ("Bearer \xff\xfe",), ("Bearer null",), ("Bearer " + "é" * 43,), (f"Bearer {TOKEN}", f"Bearer {TOKEN}"),
     (f"Bearer {TOKEN}", "Bearer x"), (f'Bearer "{TOKEN}"',), (f"Token {TOKEN}",), (f"Bearer\xa0{TOKEN}",)],
)  # fmt: skip
def test_without_exactly_the_token_nothing_is_reached_and_nothing_is_read(values: tuple[str, ...]) -> None:
    answer = ask(with_header("authorization", *values), stalls=True)
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert not answer.reached
    assert TOKEN not in answer.body.decode()


def test_the_scheme_is_read_in_any_case_and_blanks_around_the_token_do_not_matter() -> None:
    assert ask(with_header("authorization", f"bearer  {TOKEN} ")).status == 200


def test_an_open_path_may_be_read_without_token_but_not_written_and_not_under_another_name() -> None:
    host = [GOOD[0]]
    assert ask(host, method="GET", path="/v1/health", body=[b""]).status == 200
    assert ask(host, method="POST", path="/v1/health").status == 401
    for path in ("/v1/health/", "/v1//health", "/V1/health", "/v1/health/../tools", "/v1/health%2f"):
        assert ask(host, method="GET", path=path).status == 401
    assert ask([(b"host", b"evil.example")], method="GET", path="/v1/health").status == 421


@pytest.mark.parametrize("length", ["101", "99999999999999999999"])
def test_a_body_that_says_it_is_too_large_is_not_read(length: str) -> None:
    answer = ask([*GOOD, (b"content-length", length.encode())], stalls=True)
    assert answer.status == 413
    assert answer.problem["limit"] == "100 bytes"


def test_a_body_that_grows_too_large_is_refused_at_the_limit() -> None:
    assert ask(body=[b"x" * 60, b"x" * 40]).seen == b"x" * 100
    answer = ask(body=[b"x" * 60, b"x" * 41, b"x" * 1_000_000])
    assert (answer.status, answer.reached) == (413, False)


@pytest.mark.parametrize("length", ["-1", "1e2", "+5", " ", "0x10", "٣", "9" * 30, "5, 5"])
def test_a_length_that_is_no_number_is_refused(length: str) -> None:
    answer = ask([*GOOD, (b"content-length", length.encode())])
    assert (answer.status, answer.problem["field"]) == (400, "Content-Length")


def test_two_lengths_are_refused() -> None:
    assert ask([*GOOD, (b"content-length", b"2"), (b"content-length", b"2")]).status == 400


def test_a_body_that_does_not_arrive_is_given_up() -> None:
    answer = ask(stalls=True)
    assert (answer.status, answer.reached) == (408, False)


def test_an_answer_that_does_not_begin_is_given_up() -> None:
    assert ask(application_stalls=True).status == 504


def test_too_many_and_too_long_headers_are_refused() -> None:
    assert ask([*GOOD, *[(b"x", b"y")] * 20]).status == 431
    assert ask([*GOOD, (b"x", b"y" * 3_000)]).status == 431
    assert ask(path="/" + "x" * 3_000).status == 431


def test_every_answer_says_that_it_is_not_kept_framed_or_guessed_at() -> None:
    for answer in (ask(), ask([GOOD[0]])):
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"


def test_a_web_socket_is_closed() -> None:
    told: list[Message] = []

    async def send(message: Message) -> None:
        told.append(message)

    async def nothing(*_: object) -> Message:
        return {}

    guard = Guard(nothing, token=TOKEN, hosts=allowed_hosts(""))  # type: ignore[arg-type] # never called
    anyio.run(guard, {"type": "websocket"}, nothing, send)
    assert told == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize(
    "setting", ["*", "null", "notes.example", "https://*", "https://notes.example/x", "https://*.example"]
)
def test_there_is_no_way_to_allow_every_page(setting: str) -> None:
    with pytest.raises(ConfigError, match="allowed_origins"):
        allowed_origins(setting)


@pytest.mark.parametrize("setting", ["*", "http://notes.example", "a b*", "notes.example:x"])
def test_there_is_no_way_to_allow_every_host(setting: str) -> None:
    with pytest.raises(ConfigError, match="allowed_hosts"):
        allowed_hosts(setting)
