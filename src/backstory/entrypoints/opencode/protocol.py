"""The messages between plugin.js and this process: JSON-RPC 2.0 lines (docs/reference/bridge-protocol.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from backstory.domain.digest_plan import Listed
from backstory.domain.ids import MessageId

PROTOCOL = 1

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
UNKNOWN_METHOD = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


class Params(BaseModel):
    """Base of all parameters: a newer plugin may say more than is known here."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class InDirectory(Params):
    """Every hook says for which folder it fires."""

    directory: str


class Hello(InDirectory):
    """An instance of the plugin has loaded."""

    protocol: int
    plugin_version: str | None = None
    api: int | None = None
    worktree: str | None = None
    project_id: str | None = None
    pid: int | None = None


class Goodbye(InDirectory):
    """An instance of the plugin was disposed of."""


class InSession(InDirectory):
    """A hook of one session."""

    session: str = Field(min_length=1)


class ChatMessage(InSession):
    """A user's message, before the model sees it. ``child``: a sub-agent's session, or a helper's.

    ``typed``: what a person typed of it, if that is not the whole text (a command's arguments).
    """

    message: str = Field(min_length=1)
    agent: str | None = None
    text: str = ""
    typed: str | None = None
    child: bool = False
    parent: str | None = None


class Dropped(InSession):
    """The plugin did not wait for the answer to a message and showed nothing."""

    message: str = Field(min_length=1)


class Blocks(InSession):
    """Which frozen texts belong to these messages?"""

    messages: list[str]


class Snapshot(InSession):
    """The constant text of a session. ``system`` is what stands before it, where the host tells that."""

    system: str | None = None


class ListedMessage(Params):
    """One message of a request, without what it says."""

    id: str = Field(min_length=1)
    role: str
    synthetic: bool = False
    summary: bool = False


class History(InSession):
    """A request is about to be sent: which of its messages, oldest first, are replaced by a digest?"""

    agent: str | None = None
    messages: list[ListedMessage]


class Compacting(InSession):
    """The host is about to summarise a session. ``messages``, where it would take the summary from us, are what it
    stands for, and last the host's own request for it."""

    messages: list[ListedMessage] | None = None


class ToolCall(InSession):
    """The model calls one of our tools."""

    name: str
    arguments: Any = None  # whatever the model wrote; the tool checks it
    message: str | None = None
    agent: str | None = None
    call: str | None = None


class Event(InDirectory):
    """Something happened in the host; the properties are the host's own shapes."""

    type: str
    properties: dict[str, Any] = Field(default_factory=dict)
    child: bool = False
    parent: str | None = None


def listed(messages: Sequence[ListedMessage]) -> list[Listed]:
    """A request's messages as the rules on digests see them."""
    return [
        Listed(id=MessageId(item.id), role=item.role, synthetic=item.synthetic, summary=item.summary)
        for item in messages
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """One line read: a request (with ``id``), a notification (without), or an answer to a request of ours."""

    id: str | int | None
    method: str | None
    params: Mapping[str, Any]
    result: Any = None
    error: Mapping[str, Any] | None = None


class Malformed(Exception):
    """A line that is no message, or parameters that do not fit; never leaves this package."""

    def __init__(self, code: int, message: str, *, request_id: str | int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.request_id = request_id


def read_line(line: bytes) -> Incoming:
    """Parse one line; halves of characters in it become U+FFFD. Raises Malformed."""
    try:
        message = json.loads(line)
        if _SURROGATE_ESCAPE.search(line):
            message = _whole(message)
    except (ValueError, RecursionError) as error:
        raise Malformed(PARSE_ERROR, f"not JSON: {error}") from error
    if not isinstance(message, dict):
        raise Malformed(INVALID_REQUEST, "a message is an object")
    request_id = message.get("id")
    if isinstance(request_id, bool) or not isinstance(request_id, str | int | None):
        raise Malformed(INVALID_REQUEST, "id is a text or a whole number")
    method, params = message.get("method"), message.get("params") or {}
    if method is not None and (not isinstance(method, str) or not isinstance(params, dict)):
        raise Malformed(INVALID_REQUEST, "method is a text, params an object", request_id=request_id)
    return Incoming(
        id=request_id, method=method, params=params, result=message.get("result"), error=message.get("error")
    )


def _whole(value: Any) -> Any:
    """JavaScript cuts texts inside characters; a lone half can neither be stored nor searched."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return value


_P = TypeVar("_P", bound=Params)


def read_params(kind: type[_P], incoming: Incoming) -> _P:
    """Check the parameters of a message. Raises Malformed naming what is wrong."""
    try:
        return kind.model_validate(incoming.params)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise Malformed(INVALID_PARAMS, f"{where}: {first['msg']}", request_id=incoming.id) from error


def request_line(request_id: str, method: str, params: Mapping[str, Any]) -> bytes:
    """A request of ours to the plugin."""
    return _line({"id": request_id, "method": method, "params": params})


def notification_line(method: str, params: Mapping[str, Any]) -> bytes:
    """Something the plugin is told and does not answer."""
    return _line({"method": method, "params": params})


def result_line(request_id: str | int, result: Any) -> bytes:
    """The answer to a request."""
    return _line({"id": request_id, "result": result})


def error_line(request_id: str | int | None, code: int, message: str) -> bytes:
    """The failure of a request."""
    return _line({"id": request_id, "error": {"code": code, "message": message}})


def _line(message: Mapping[str, Any]) -> bytes:
    # ASCII escapes keep every character safe on the way, lone surrogates and line separators included
    return json.dumps({"jsonrpc": "2.0", **message}).encode("ascii") + b"\n"
