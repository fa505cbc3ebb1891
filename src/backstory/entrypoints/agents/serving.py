"""Asking a running ``backstory serve`` instead of opening the store: it has the embedding model loaded."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from backstory.entrypoints.agents.calls import GENERIC, GenericFormat, HookCall

if TYPE_CHECKING:
    from http.client import HTTPConnection

    from backstory.entrypoints.http.announcement import Announcement

WITHIN_S = 0.15
"""For each step of the conversation. After it there is still time to answer without the server."""

_MAX_BYTES = 1_000_000
_HERE = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a server says: the text that goes before the model, if any."""

    text: str | None


def from_server(data_dir: Path, call: HookCall, *, store: str) -> Reply | None:
    """What a running server answers to a call; None where none runs on this machine over ``store`` (see
    ``bootstrap.store_address``).

    Raises OSError or ValueError when it does not answer, or not as it should.
    """
    from backstory.entrypoints.http.announcement import running_server

    server = running_server(data_dir)
    if server is None or server.store != store:
        return None
    connection = _connection(server)
    return None if connection is None else _ask(connection, _token(data_dir), call)


def _ask(connection: HTTPConnection, token: str, call: HookCall) -> Reply:
    from http.client import HTTPException

    payload = GenericFormat().tell(call)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Host": "localhost"}
    try:
        connection.request("POST", f"/v1/hooks/{call.event}?agent={GENERIC}", json.dumps(payload), headers)
        response = connection.getresponse()
        body = response.read(_MAX_BYTES + 1)
        if response.status != 200:
            raise OSError(f"it answered {response.status}")
        return _reply(body)
    except HTTPException as error:
        raise OSError(f"it does not speak HTTP: {type(error).__name__}") from error
    finally:
        connection.close()


def _reply(body: bytes) -> Reply:
    """Nothing but a text goes on to the agent, whatever else a server says."""
    if len(body) > _MAX_BYTES:
        raise ValueError(f"it says more than {_MAX_BYTES:,} bytes")
    try:
        said = json.loads(body)
    except RecursionError:
        raise ValueError("its answer is nested too deep") from None
    text = said.get("context", 0) if isinstance(said, dict) else 0
    if text is not None and not isinstance(text, str):
        raise ValueError("its answer has no context")
    return Reply(text=text)


def _connection(server: Announcement) -> HTTPConnection | None:
    from http.client import HTTPConnection

    if server.socket is not None:
        connection = HTTPConnection("localhost", timeout=WITHIN_S)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(WITHIN_S)
        connection.sock.connect(str(server.socket))
        return connection
    address = urlsplit(server.url)
    if address.scheme != "http" or address.hostname not in _HERE or address.port is None:
        return None
    return HTTPConnection(address.hostname, address.port, timeout=WITHIN_S)


def _token(data_dir: Path) -> str:
    from backstory.entrypoints.http.token import read_token
    from backstory.errors import ConfigError

    try:
        token = read_token(data_dir)
    except ConfigError as error:
        raise OSError(str(error)) from error
    if token is None:
        raise OSError("there is no token")
    return token
