"""Who may speak to a server: the ASGI middleware before everything else. What is refused here reaches no application.

It looks, in this order, at the size of the headers, the Host, the Origin, the token and the body; a request that is
refused is not read any further than that.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass
from typing import Any

import anyio

from backstory.entrypoints.http.names import AllowedHosts, parse_host, parse_origin
from backstory.entrypoints.http.problems import Headers, Problem
from backstory.entrypoints.http.token import is_token

Scope = MutableMapping[str, Any]  # Any: ASGI's own dictionaries
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

WELCOME = "backstory.welcome"
"""Name in a request's state of what is called when the token was right, by a server that treats strangers otherwise."""
METHODS = "GET, POST, DELETE"
_REQUEST_HEADERS = "authorization, content-type, last-event-id, mcp-session-id, mcp-protocol-version"
_READABLE_HEADERS = "mcp-session-id"
_PREFLIGHT_S = 600
_ALWAYS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most a client may ask for. ``arrive_s`` is for the whole body, ``answer_s`` until the answer begins."""

    body_bytes: int = 1_000_000
    headers: int = 64
    header_bytes: int = 16_384
    arrive_s: float = 15.0
    answer_s: float = 60.0


class Guard:
    """The middleware. ``open_paths`` may be read without a token; they must tell nothing about the memory."""

    def __init__(
        self,
        application: Application,
        *,
        token: str,
        hosts: AllowedHosts,
        origins: Collection[str] = (),
        limits: Limits | None = None,
        open_paths: Collection[str] = (),
    ) -> None:
        self._application = application
        self._token = token
        self._hosts = hosts
        self._origins = frozenset(origins)
        self._limits = limits or Limits()
        self._open_paths = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it; there are no web sockets."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
        elif scope["type"] == "http":
            await self._request(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Answer(send)
        try:
            self._check_size(scope)
            self._check_host(scope)
            answer.origin = self._checked_origin(scope)
            if answer.origin is not None and _is_preflight(scope):
                await answer.preflight()
                return
            if not (scope["method"] in ("GET", "HEAD") and scope["path"] in self._open_paths):
                self._check_token(scope)
                answer.is_known = True
            body = await self._body(scope, receive)
            await self._answered(scope, _Replay(body, receive), answer)
        except Problem as problem:
            if not answer.has_begun:
                await answer.refuse(problem)

    async def _answered(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        with anyio.move_on_after(self._limits.answer_s) as answer.patience:
            await self._application(scope, receive, answer.send)
        if answer.patience.cancelled_caught and not answer.has_begun:
            within = f"{self._limits.answer_s:g} seconds"
            raise Problem(kind="no-answer-in-time", detail="It may still have been done; look before you ask again.",
                          limit=within)  # fmt: skip

    def _check_size(self, scope: Scope) -> None:
        headers = scope["headers"]
        size = sum(len(name) + len(value) for name, value in headers) + len(scope.get("raw_path") or b"")
        size += len(scope.get("query_string") or b"")
        if len(headers) > self._limits.headers or size > self._limits.header_bytes:
            limit = f"{self._limits.headers} headers, {self._limits.header_bytes:,} bytes"
            raise Problem(kind="too-many-headers", detail=f"{len(headers)} headers, {size:,} bytes", limit=limit)

    def _check_host(self, scope: Scope) -> None:
        given = _values(scope, b"host")
        address = parse_host(given[0]) if len(given) == 1 else None
        if address is None:
            raise Problem(kind="malformed", detail="There must be one Host header, a name or an address", name="Host")
        if not self._hosts.allow(address):
            hint = "address it as localhost, or name it in serve.allowed_hosts"
            raise Problem(kind="wrong-host", detail="This server does not go by that name", name="Host", hint=hint)

    def _checked_origin(self, scope: Scope) -> str | None:
        """The web page that calls, if one does. Programs that are no browsers send none."""
        given = _values(scope, b"origin")
        if not given:
            return None
        origin = parse_origin(given[0]) if len(given) == 1 else None
        if origin is None or origin not in self._origins:
            hint = "the user can allow it with serve.allowed_origins"
            raise Problem(kind="forbidden-origin", detail="Its origin is not allowed", name="Origin", hint=hint)
        return given[0]

    def _check_token(self, scope: Scope) -> None:
        given = _raw_values(scope, b"authorization")
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        if scheme.lower() != b"bearer" or not is_token(token.strip(b" "), self._token):
            detail = "Send `Authorization: Bearer TOKEN`; the token is in the file that `backstory serve` names."
            challenge = [(b"www-authenticate", b'Bearer realm="backstory"')]
            raise Problem(kind="not-authorised", detail=detail, name="Authorization", headers=challenge)
        welcome: Callable[[], None] | None = scope.get("state", {}).get(WELCOME)
        if welcome is not None:
            welcome()

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body, which is small: an application never waits for a slow sender, nor counts what it reads."""
        self._check_length(scope)
        chunks: list[bytes] = []
        size = 0
        with anyio.move_on_after(self._limits.arrive_s):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Problem(kind="malformed", detail="The body ended too early")
                chunks.append(message.get("body", b""))
                size += len(chunks[-1])
                if size > self._limits.body_bytes:
                    raise self._too_large(size)
                if not message.get("more_body", False):
                    return b"".join(chunks)
        raise Problem(kind="too-slow", detail="The body did not arrive", limit=f"{self._limits.arrive_s:g} seconds")

    def _check_length(self, scope: Scope) -> None:
        given = _values(scope, b"content-length")
        if not given:
            return
        if len(given) > 1 or not (given[0].isascii() and given[0].isdigit()) or len(given[0]) > 20:
            raise Problem(kind="malformed", detail="It must be one whole number of bytes", name="Content-Length")
        if int(given[0]) > self._limits.body_bytes:
            raise self._too_large(int(given[0]))

    def _too_large(self, size: int) -> Problem:
        limit = f"{self._limits.body_bytes:,} bytes"
        hint = "the setting is serve.body_max_bytes"
        return Problem(kind="too-large", detail=f"The body has {size:,} bytes or more", limit=limit, hint=hint)


class _Answer:
    """The way back: adds what every answer says, and remembers whether it has begun. A stream may take its time."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.origin: str | None = None
        self.has_begun = False
        self.is_known = False
        self.patience = anyio.CancelScope()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            self.patience.deadline = math.inf
            given = list(message.get("headers", []))
            said = {name.lower() for name, _ in given}
            missing = [(name, value) for name, value in _ALWAYS if name not in said]
            message = {**message, "headers": [*given, *missing, *self._cross_origin()]}
        await self._send(message)

    async def preflight(self) -> None:
        headers: Headers = [
            (b"access-control-allow-methods", METHODS.encode()),
            (b"access-control-allow-headers", _REQUEST_HEADERS.encode()),
            (b"access-control-max-age", str(_PREFLIGHT_S).encode()),
        ]
        await self.send({"type": "http.response.start", "status": 204, "headers": headers})
        await self.send({"type": "http.response.body", "body": b""})

    async def refuse(self, problem: Problem) -> None:
        """Say what is wrong; with somebody who has not shown the token, that ends the connection."""
        headers = problem.all_headers() + ([] if self.is_known else [(b"connection", b"close")])
        await self.send({"type": "http.response.start", "status": problem.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": problem.body()})

    def _cross_origin(self) -> Headers:
        """Only for a page that was checked, by its name; never for all, never with cookies."""
        if self.origin is None:
            return []
        exposed = (b"access-control-expose-headers", _READABLE_HEADERS.encode())
        return [(b"access-control-allow-origin", self.origin.encode("latin-1")), (b"vary", b"Origin"), exposed]


class _Replay:
    """A body that has arrived, given once; after it only the end of the connection is heard of."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


def _is_preflight(scope: Scope) -> bool:
    return scope["method"] == "OPTIONS" and bool(_values(scope, b"access-control-request-method"))


def _raw_values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key.lower() == name]


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for value in _raw_values(scope, name)]
