"""The ASGI application: each address to its handler, each failure to a problem, and the guard before it all."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as Asked
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from backstory.bootstrap import App
from backstory.config.serving import ServeSettings
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.http import guard
from backstory.entrypoints.http.bodies import Place
from backstory.entrypoints.http.events import Changes
from backstory.entrypoints.http.failures import problem_of, unexpected
from backstory.entrypoints.http.folders import Desk, Folders
from backstory.entrypoints.http.handlers import Request
from backstory.entrypoints.http.names import allowed_hosts, allowed_origins
from backstory.entrypoints.http.openapi import describe
from backstory.entrypoints.http.operations import OPERATIONS, Operation
from backstory.entrypoints.http.page import POLICY, render
from backstory.entrypoints.http.problems import Problem
from backstory.entrypoints.http.reading import read, read_json, read_parameters, read_words
from backstory.entrypoints.http.streaming import EventStream
from backstory.entrypoints.http.traffic import Traffic
from backstory.entrypoints.places import Places
from backstory.entrypoints.tools.catalogue import offered
from backstory.errors import BackstoryError

if TYPE_CHECKING:
    from backstory.entrypoints.mcp.http import McpApplication

MCP_PATH = "/mcp"
OPEN_PATHS = frozenset({"/v1/health", "/openapi.json", "/docs"})
"""What needs no token: none of it tells anything about the memory."""
STORE_WAIT = timedelta(seconds=8)


class Server:
    """What the addresses share: folders, the stream of changes, and who is told that memories may have changed."""

    def __init__(self, app: App, *, traffic: Traffic | None = None, changed: Callable[[], None] = lambda: None) -> None:
        self.traffic = traffic or Traffic()
        self.changes = Changes()
        self.places = Places(app)
        self._app = app
        self._folders = Folders(app, self.places)
        self._changed = changed

    def routes(self) -> list[BaseRoute]:
        """All addresses."""
        document = describe(offered(self._app.settings))
        described = json.dumps(document, ensure_ascii=False).encode()
        page = render(document).encode()
        return [
            *(self._route(path) for path in dict.fromkeys(operation.path for operation in OPERATIONS)),
            Route("/v1/events", _told_failures(self._events), methods=["GET"]),
            Route("/v1/hooks/{event}", _told_failures(self._hook), methods=["POST"]),
            Route("/openapi.json", partial(_constant, described, "application/json"), methods=["GET"]),
            Route("/docs", partial(_constant, page, "text/html; charset=utf-8"), methods=["GET"]),
        ]

    def _route(self, path: str) -> Route:
        """One address with all its methods, so that whoever takes another one is told of each."""
        by_method = {operation.method: operation for operation in OPERATIONS if operation.path == path}
        return Route(path, _told_failures(partial(self._answer, by_method)), methods=list(by_method))

    async def _answer(self, by_method: Mapping[str, Operation], asked: Asked) -> Response:
        operation = by_method["GET" if asked.method == "HEAD" else asked.method]
        with self.traffic.request(), self.places.waiting(STORE_WAIT):
            said = await read(operation, asked)
            desk = await self._desk(said, operation)
            shape = await operation.handler(Request(desk=desk, path=asked.path_params, said=said))
        if operation.method == "POST":
            self._note_change()
        return _json(shape)

    def _note_change(self) -> None:
        """Something may have been stored."""
        self._changed()
        self.changes.wake()

    async def _desk(self, said: Place, operation: Operation) -> Desk:
        if operation.said is None:  # health, which touches no store
            return Desk(app=self._app, viewer=Viewer(project=None, audience=Audience.MODEL))
        return await self._folders.desk(said.project, said.session)

    async def _events(self, asked: Asked) -> Response:
        said = await read_parameters(Place, asked)
        desk = await self._folders.desk(said.project, said.session)
        after = asked.headers.get("last-event-id") or None
        return await EventStream.begun(self.changes.stream(desk, after=after))

    async def _hook(self, asked: Asked) -> Response:
        from backstory.entrypoints.http.hooks import answer_hook

        with self.traffic.request():
            payload = await read_json(asked)
            said = read_words(asked, "agent")
            word, agent = asked.path_params["event"], said.get("agent", "generic")
            hooked = await answer_hook(self._folders, word, agent, payload, changed=self._note_change)
        self._note_change()
        response = _json(hooked.response)
        response.background = hooked.afterwards
        return response

    def mcp(self) -> McpApplication | None:
        """The Model Context Protocol over the same store; None where its SDK is not installed."""
        if find_spec("mcp") is None:
            return None
        from backstory.entrypoints.mcp.http import mcp_app

        return mcp_app(self._app, changed=self._note_change, traffic=self.traffic)


def application(
    app: App,
    *,
    token: str,
    serve: ServeSettings | None = None,
    host: str = "localhost",
    server: Server | None = None,
    limits: guard.Limits | None = None,
) -> guard.Application:
    """The whole application, guarded. ``host`` is the address it listens on. Raises ConfigError."""
    chosen = serve or app.settings.serve
    server = server or Server(app)
    mcp = server.mcp()
    more = [] if mcp is None else [Route(MCP_PATH, _Mounted(mcp.asgi))]

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with contextlib.nullcontext() if mcp is None else mcp.running():
            yield

    inner = Starlette(
        routes=[*server.routes(), *more], exception_handlers={HTTPException: _on_http_exception}, lifespan=lifespan
    )
    inner.router.redirect_slashes = False
    return guarded(cast(guard.Application, inner), token=token, serve=chosen, host=host, limits=limits)


def guarded(
    inner: guard.Application,
    *,
    token: str,
    serve: ServeSettings,
    host: str = "localhost",
    limits: guard.Limits | None = None,
) -> guard.Guard:
    """Any application behind the guard that the settings ask for. Raises ConfigError."""
    own = [] if host in ("0.0.0.0", "::", "localhost") else [host]
    return guard.Guard(
        inner,
        token=token,
        hosts=allowed_hosts(serve.allowed_hosts, also=own),
        origins=allowed_origins(serve.allowed_origins),
        limits=limits or guard.Limits(body_bytes=serve.body_max_bytes),
        open_paths=OPEN_PATHS,
    )


class _Mounted:
    """An application at one address; the router takes methods of objects for something else."""

    def __init__(self, mounted: guard.Application) -> None:
        self._mounted = mounted

    async def __call__(self, scope: guard.Scope, receive: guard.Receive, send: guard.Send) -> None:
        await self._mounted(scope, receive, send)


def _json(shape: object) -> Response:
    """JSON in UTF-8; half a character from an old store is escaped, as JSON allows."""
    text = json.dumps(shape, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "backslashreplace"), media_type="application/json")


async def _constant(data: bytes, media_type: str, asked: Asked) -> Response:
    return Response(data, media_type=media_type, headers={"content-security-policy": POLICY})


def _told(problem: Problem) -> Response:
    response = Response(problem.body(), status_code=problem.status)
    response.raw_headers = problem.all_headers()
    return response


def _told_failures(endpoint: Callable[[Asked], Awaitable[Response]]) -> Callable[[Asked], Awaitable[Response]]:
    """The outer loop of a request: whatever goes wrong becomes a problem, and the server lives on."""

    async def answer(asked: Asked) -> Response:
        try:
            return await endpoint(asked)
        except Problem as problem:
            return _told(problem)
        except BackstoryError as error:
            return _told(problem_of(error))
        except Exception as error:
            return _told(unexpected(error))

    return answer


async def _on_http_exception(asked: Asked, error: Exception) -> Response:
    """What the router raises: an unknown address, or a method that an address does not take."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = [(name.lower().encode(), value.encode()) for name, value in (error.headers or {}).items()]
        return _told(Problem(kind="method-not-allowed", detail="Another method is needed here", headers=allowed))
    if error.status_code == 404:
        return _told(Problem(kind="not-found", detail="There is nothing at this address", hint="see /docs"))
    return _told(Problem(kind="malformed", detail=str(error.detail)[:200]))
