"""The history of a running OpenCode, through its HTTP API: this machine only, no proxy, no redirect, reading only."""

from __future__ import annotations

import base64
import ipaddress
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from email.message import Message as Headers
from typing import IO

from backstory.adapters.formats.opencode_history.source import ToldMessage
from backstory.adapters.formats.outside_files import Json, Unfit, is_id, json_of
from backstory.codecs.opencode import moment
from backstory.domain.interchange import Unreadable
from backstory.errors import InputError
from backstory.ports.formats import ReadLimits

ANSWER_TIMEOUT_S = 60.0
_PAGE = 10_000
_PAGES = 1_000


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Headers, newurl: str
    ) -> None:
        return None


class Server:
    """A server at an address such as ``http://127.0.0.1:4096``. No folder is ever named to it, since it would open
    that, plugins and all."""

    def __init__(self, url: str, limits: ReadLimits) -> None:
        """Raises InputError for an address that is not of this machine."""
        self._url = _checked(url)
        self._limits = limits
        self._last: tuple[str, list[Json]] | None = None
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())

    def sessions(self) -> Iterator[Json | Unreadable]:
        """All in the server's history, whatever folder they are of. Memory for every session's ``info``."""
        known: dict[str, Json] = {}
        for info in self._listed():
            if isinstance(info, dict) and is_id(info.get("id")):
                known.setdefault(info["id"], info)
            else:
                yield Unreadable(where="a session", reason="its id is none")
        yield from sorted(known.values(), key=lambda info: (_created(info), info["id"]))

    def infos(self, session: str) -> Iterator[Json]:
        try:
            told = self._told(session)
        except (InputError, Unfit):
            return  # the messages themselves say so
        infos = (item.get("info") for item in told if isinstance(item, dict))
        yield from (info for info in infos if isinstance(info, dict))

    def messages(self, session: str) -> Iterator[ToldMessage | Unreadable]:
        """Memory for the whole session, which the server tells in one answer."""
        try:
            told = self._told(session)
        except (InputError, Unfit) as problem:
            yield Unreadable(where=f"session {session}", reason=str(problem))
            return
        for item in told:
            info, parts = (item.get("info"), item.get("parts")) if isinstance(item, dict) else (None, None)
            if isinstance(info, dict) and is_id(info.get("id")):
                yield ToldMessage(info=info | {"sessionID": session}, parts=parts if isinstance(parts, list) else [])
            else:
                yield Unreadable(where=f"session {session}, a message", reason="not what OpenCode tells")

    def remarks(self) -> Iterator[str]:
        yield from ()

    def close(self) -> None:
        """Every answer was closed as it was read."""

    def _told(self, session: str) -> list[Json]:
        """A session's messages; the session asked about last is not asked about twice."""
        if self._last is None or self._last[0] != session:
            told, _ = self._get(f"/session/{urllib.parse.quote(session, safe='')}/message")
            self._last = (session, told if isinstance(told, list) else [])
        return self._last[1]

    def _listed(self) -> Iterator[Json]:
        """Page by page, the last changed first: the next page begins with the time at which this one ends, and may
        repeat sessions of that time."""
        cursor = ""
        seen: set[str] = set()
        for _ in range(_PAGES):
            path = f"/experimental/session?archived=true&limit={_PAGE}{cursor}"
            try:
                told, headers = self._get(path)
            except Unfit as problem:
                raise InputError(
                    f"{self._url} is no OpenCode that tells its sessions: {problem}", field="path"
                ) from None
            if not isinstance(told, list):
                raise InputError(f"{self._url} is no OpenCode that tells its sessions", field="path")
            yield from told
            ids = {str(info.get("id")) for info in told if isinstance(info, dict)}
            following = headers.get("x-next-cursor")
            if not following or not following.isdecimal() or ids <= seen:
                return
            seen |= ids
            cursor = f"&cursor={int(following) + 1}"

    def _get(self, path: str) -> tuple[Json, Headers]:
        """An answer. Raises InputError where there is none, Unfit where it is not JSON."""
        request = urllib.request.Request(self._url + path, headers={"Accept": "application/json", **_authorisation()})
        try:
            with self._opener.open(request, timeout=ANSWER_TIMEOUT_S) as response:
                content = response.read(self._limits.file_bytes + 1)
                headers = response.headers
        except urllib.error.HTTPError as error:
            error.close()
            hint = "set OPENCODE_SERVER_PASSWORD to its password" if error.code == 401 else None
            raise InputError(f"{self._url} answered {error.code}", field="path", hint=hint) from None
        except (OSError, ValueError, urllib.error.URLError) as error:
            raise InputError(f"no OpenCode answers at {self._url}: {error}", field="path") from error
        if len(content) > self._limits.file_bytes:
            raise Unfit(f"an answer larger than {self._limits.file_bytes:,} bytes")
        return json_of(content), headers


def is_address(place: str) -> bool:
    """Whether a place is the address of a server and no path."""
    return place.startswith(("http://", "https://"))


def _checked(url: str) -> str:
    try:
        parts = urllib.parse.urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise InputError("the address of the OpenCode server cannot be read", field="path") from None
    if parts.username or parts.password:
        raise InputError("the address holds a password", field="path", hint="set OPENCODE_SERVER_PASSWORD instead")
    if not _is_loopback(host):
        raise InputError(
            f"{host[:100]!r} is not this machine; only an OpenCode on the loopback address is read",
            field="path",
            hint="forward its port (ssh -L 4096:127.0.0.1:4096 HOST) and give http://127.0.0.1:4096",
        )
    return f"{parts.scheme}://{parts.netloc}"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _authorisation() -> dict[str, str]:
    """As OpenCode's own variables say; only ever sent to this machine."""
    password = os.environ.get("OPENCODE_SERVER_PASSWORD")
    if not password:
        return {}
    name = os.environ.get("OPENCODE_SERVER_USERNAME") or "opencode"
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode("ascii")}


def _created(info: dict[str, Json]) -> float:
    times = info.get("time")
    created = moment(times.get("created")) if isinstance(times, dict) else None
    return created.timestamp() if created else 0.0
