"""Who calls: the client's name, its session, and the project that it works in, for each call anew."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.types import InputRequiredResult, ListRootsRequest, ListRootsResult
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from backstory.bootstrap import App
from backstory.config import Settings
from backstory.domain.admission import admit_evidence
from backstory.domain.ids import SessionId
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.mcp.roots import project_folder
from backstory.entrypoints.places import Places
from backstory.entrypoints.tools import Call
from backstory.errors import InputError

log = logging.getLogger(__name__)

Context: TypeAlias = ServerRequestContext[Any, Any]  # Any: the SDK's own state, and whatever carries a request
Responses: TypeAlias = Mapping[str, Any] | None  # Any: the SDK's union of all that a client may be asked

ROOTS = "roots"
ROOTS_WITHIN_S = 3.0
ASK_AGAIN_AFTER_S = 60.0  # a client that did not answer is not waited for at every call
MAX_CONNECTIONS = 1000
SESSION_HEADER = "mcp-session-id"
NO_PROJECT = (
    "No project folder is known here, so only memories that count everywhere are seen. Keep with scope global what"
    " counts everywhere; for a project's own, the user has to open its folder in this program."
)
_AGENT_CHARS = 80


class _Root(BaseModel):
    uri: str


class _Roots(BaseModel):
    """As the SDK's own, but a root that is no file spoils none of the others."""

    roots: list[_Root]


@dataclass(slots=True, kw_only=True)
class Connection:
    """What is known of one client: its session, and the folder of its roots once it has told them."""

    session: SessionId | None
    folder: Path | None = None
    has_told: bool = False
    turn: int = 0  # counts up whenever its roots change
    silent_until: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standpoint:
    """From where one call is made. ``notes`` are sentences that its answer should end with."""

    app: App
    viewer: Viewer
    agent: str | None
    notes: Sequence[str] = field(default=())

    def call(self, tool: str) -> Call:
        """The call of a tool from here."""
        return Call(app=self.app, viewer=self.viewer, tool=tool, agent=self.agent)


class Clients:
    """All clients of one server. ``folder`` stands in for the roots of those that tell none; None for a server that
    many projects share. Without ``asks_roots`` it counts for all."""

    def __init__(self, app: App, *, folder: Path | None, asks_roots: bool = True) -> None:
        self._asks_roots = asks_roots
        self._app = app
        self._places = Places(app)
        self._folder = folder
        self._connections: OrderedDict[str, Connection] = OrderedDict()

    def roots_changed(self, ctx: Context) -> None:
        """The client works elsewhere now; the next call asks where."""
        connection = self._connection(ctx)
        connection.turn += 1
        connection.has_told, connection.folder, connection.silent_until = False, None, 0.0

    async def asked(self, ctx: Context, responses: Responses) -> Standpoint | InputRequiredResult:
        """The standpoint of a call, or the question for the roots that has to be answered before it.

        What the address of the server names comes before the roots. Clients of the newer protocol cannot be asked while
        they wait: they get the question as the answer, and call again with theirs. Raises InputError for an address
        that names no folder, StoreError, and ConfigError for a project whose settings cannot be used.
        """
        if self._may_ask(ctx) and _is_modern(ctx):
            told = (responses or {}).get(ROOTS)
            if not isinstance(told, ListRootsResult):
                return InputRequiredResult(input_requests={ROOTS: ListRootsRequest()})
            connection = self._connection(ctx)
            connection.folder = await _folder([str(root.uri) for root in told.roots])
            connection.has_told = True
            return await self._at(ctx, connection.folder or self._folder)
        return await self.standpoint(ctx)

    async def standpoint(self, ctx: Context) -> Standpoint:
        """The standpoint of a request that cannot be answered with a question. Raises as ``asked``."""
        return await self._at(ctx, await self._place_of(ctx))

    async def settings(self, ctx: Context) -> Settings:
        """The settings where a client works; no store is asked. Raises InputError and ConfigError as ``asked``."""
        folder = await self._place_of(ctx)
        return (self._app if folder is None else self._places.app_in(str(folder))).settings

    async def _place_of(self, ctx: Context) -> Path | None:
        """Where a client works. One of the newer protocol that has roots, but was not asked yet, is nowhere."""
        if not self._may_ask(ctx):
            return _named_folder(ctx) or self._folder
        connection = self._connection(ctx)
        if _is_modern(ctx):
            return (connection.folder or self._folder) if connection.has_told else None
        if not connection.has_told:
            await self._ask(ctx, connection)
        return connection.folder or self._folder

    async def _ask(self, ctx: Context, connection: Connection) -> None:
        if anyio.current_time() < connection.silent_until:
            return
        turn = connection.turn
        try:
            told = await ctx.session.send_request(
                ListRootsRequest(),
                _Roots,
                request_read_timeout_seconds=ROOTS_WITHIN_S,
                metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
            )
        except (MCPError, ValidationError) as error:
            log.warning("event=roots_not_told reason=%r", str(error))
            connection.silent_until = anyio.current_time() + ASK_AGAIN_AFTER_S
            return
        folder = await _folder([root.uri for root in told.roots])
        if turn == connection.turn:  # else they changed meanwhile, and the next call asks again
            connection.folder, connection.has_told = folder, True

    async def _at(self, ctx: Context, folder: Path | None) -> Standpoint:
        agent, session = _agent(ctx), self._connection(ctx).session
        if folder is None:
            viewer = Viewer(project=None, session=session, audience=Audience.MODEL)
            return Standpoint(app=self._app, viewer=viewer, agent=agent, notes=(NO_PROJECT,))
        place = await self._places.place(str(folder))
        notes = self._places.untold_faults(str(folder))
        return Standpoint(app=place.app, viewer=place.viewer(session), agent=agent, notes=notes)

    def _may_ask(self, ctx: Context) -> bool:
        capabilities = ctx.session.client_capabilities
        has_roots = capabilities is not None and capabilities.roots is not None
        return has_roots and self._asks_roots and _named_folder(ctx) is None

    def _connection(self, ctx: Context) -> Connection:
        """What is known of the client. Over stdio there is one; over HTTP its session header tells them apart.

        Without that header (the newer protocol has none) each request stands for itself.
        """
        if ctx.request is None:
            return self._connections.setdefault("", Connection(session=SessionId(f"mcp_{secrets.token_hex(12)}")))
        header = ctx.request.headers.get(SESSION_HEADER)
        if header is None:
            return Connection(session=None)
        # the header opens the session for whoever knows it, so it is not kept in a store
        name = hashlib.blake2b(header.encode(), digest_size=12).hexdigest()
        known = self._connections.setdefault(name, Connection(session=SessionId(f"mcp_{name}")))
        self._connections.move_to_end(name)
        if len(self._connections) > MAX_CONNECTIONS:
            self._connections.popitem(last=False)
        return known


async def _folder(uris: Sequence[str]) -> Path | None:
    return await anyio.to_thread.run_sync(project_folder, uris)


def _named_folder(ctx: Context) -> Path | None:
    """The folder that the address of a server over HTTP names: ``/mcp?project=/home/me/shop``."""
    named = None if ctx.request is None else ctx.request.query_params.get("project")
    if not named:
        return None
    try:
        folder = Path(named)
        if folder.is_absolute() and folder.is_dir():
            return folder
    except (OSError, ValueError):
        pass
    raise InputError(f"{named[:200]!r} is no folder of this machine", field="project")


def _is_modern(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def _agent(ctx: Context) -> str | None:
    """The client's name and version, as it tells them."""
    params = ctx.session.client_params
    if params is None:
        return None
    told = f"{params.client_info.name} {params.client_info.version}"
    return " ".join(admit_evidence(told).split())[:_AGENT_CHARS] or None
