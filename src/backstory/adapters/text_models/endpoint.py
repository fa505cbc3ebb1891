"""One model server spoken to in JSON over HTTP, asynchronously, so that a cancelled question ends at the server too.

What is asked and how the answer reads is in ``openai.py``. No message holds the key, the sent text or any words of the
server, which may repeat either.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from backstory.adapters.blocking import running_loop
from backstory.adapters.server_address import authorization, pause_seconds, read_address, retry_after_seconds
from backstory.errors import ConfigError, ModelOutputInvalid, ModelUnavailable

if TYPE_CHECKING:
    import asyncio

    import anyio
    import httpx

MAX_ANSWER_BYTES = 8 * 1024 * 1024
MAX_REFUSAL_BYTES = 64 * 1024
CONNECT_SECONDS = 10.0
INSTALL = "pip install 'backstory[endpoint]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The server does not want the request as it is (400, 413, 422). ``said`` is outside text, never to be shown."""

    status: int
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Later:
    """This attempt failed in a way that may pass. ``wait_seconds`` is what the server asks for, if it does."""

    reason: str
    wait_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedToWait:
    """The server wants to be asked again in so many seconds, which is beyond the deadline. ``reason`` may be shown."""

    seconds: float
    reason: str


@dataclass(slots=True, kw_only=True)
class Requests:
    """The requests of one question, counted while they are made: ``sent``, and how many of them had no answer yet."""

    sent: int = 0
    unanswered: int = 0

    def sending(self) -> None:
        """One goes out."""
        self.sent += 1
        self.unanswered += 1

    def not_sent(self) -> None:
        """The last one never reached the server."""
        self.sent -= 1
        self.unanswered -= 1

    def answered(self) -> None:
        """The server answered the last one, be it with an error."""
        self.unanswered -= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """What belongs to one event loop: connections, and how many may be in use at once."""

    client: httpx.AsyncClient
    limiter: anyio.CapacityLimiter


class AsyncJsonEndpoint:
    """A server at ``base_url``; connects at the first ``post``, anew for each event loop.

    ``retries`` are attempts beyond the first, ``concurrency`` the requests under way at once; more of them wait. Raises
    ConfigError for an address or a key that cannot be sent. Redirects are never followed: the key stays with the server
    it was given for. Proxies of the environment are used, except for this machine's own addresses.
    """

    def __init__(self, base_url: str, *, api_key: str | None, retries: int, concurrency: int) -> None:
        self._server = read_address(base_url)
        if self._server.names_user:
            raise ConfigError("the base URL must not hold a user name or password", option="base_url")
        self._headers = {"user-agent": "backstory", "content-type": "application/json"} | authorization(api_key)
        self._retries = retries
        self._concurrency = concurrency
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = WeakKeyDictionary()

    @property
    def shown(self) -> str:
        """Host and port, for messages."""
        return self._server.shown

    async def post(
        self, path: str, body: Mapping[str, object], *, deadline: float, if_missing: str, requests: Requests
    ) -> object:
        """Send ``body`` and return the parsed answer, ``Refused`` or ``AskedToWait``.

        Tries again after 408, 429, 5xx, a broken connection and an error in place of an answer, waiting as long as
        ``Retry-After`` asks; when that goes beyond ``deadline`` (of ``time.monotonic``), it ends at once. The caller
        ends everything else at the deadline. ``if_missing`` says what a 404 means. ``requests`` is counted up, however
        this ends. Raises ModelUnavailable and ModelOutputInvalid.
        """
        import anyio

        content = json.dumps(body).encode("ascii")
        attempt = 1
        line = self._line()
        while True:
            async with line.limiter:
                requests.sending()
                answer = await self._attempt(line.client, path, content, if_missing=if_missing, requests=requests)
            if not isinstance(answer, _Later):
                return answer
            wait = answer.wait_seconds if answer.wait_seconds is not None else pause_seconds(attempt)
            tried = f"{self.shown} {answer.reason}; tried {attempt} of {self._retries + 1} times"
            if answer.wait_seconds is not None and time.monotonic() + wait >= deadline:
                return AskedToWait(reason=tried, seconds=wait)
            if attempt > self._retries or time.monotonic() + wait >= deadline:
                raise ModelUnavailable(tried)
            await anyio.sleep(wait)
            attempt += 1

    async def close(self) -> None:
        """Close the connections of this event loop; a later ``post`` opens new ones."""
        loop = running_loop()
        line = self._lines.pop(loop, None) if loop is not None else None
        if line is not None:
            await line.client.aclose()

    async def _attempt(
        self, client: httpx.AsyncClient, path: str, content: bytes, *, if_missing: str, requests: Requests
    ) -> object:
        import httpx

        try:
            async with client.stream("POST", self._server.base_url + path, content=content) as response:
                if not response.is_success:
                    requests.answered()
                    return await self._failure(response, if_missing=if_missing)
                parsed = self._parse(await self._read(response, most=MAX_ANSWER_BYTES))
                requests.answered()
                return parsed
        except (httpx.ConnectError, httpx.ConnectTimeout):
            requests.not_sent()
            return _Later(reason="cannot be reached")
        except httpx.DecodingError as error:
            raise ModelOutputInvalid(f"{self.shown} sent an answer that cannot be unpacked") from error
        except (httpx.NetworkError, httpx.RemoteProtocolError, httpx.TimeoutException):
            return _Later(reason="broke the connection off")
        except httpx.HTTPError as error:
            raise ModelUnavailable(f"{self.shown} cannot be reached ({type(error).__name__})") from error

    async def _failure(self, response: httpx.Response, *, if_missing: str) -> Refused | _Later:
        status = response.status_code
        if status in (400, 413, 422):
            said = await self._read(response, most=MAX_REFUSAL_BYTES)
            return Refused(status=status, said=said.decode("utf-8", "replace"))
        if status in (408, 429) or status >= 500:
            wait = retry_after_seconds(response.headers.get("retry-after"))
            return _Later(reason=f"answered {status}", wait_seconds=wait)
        match status:
            case 401 | 403:
                given = "does not accept the API key" if "authorization" in self._headers else "wants an API key"
                raise ModelUnavailable(f"{self.shown} {given} (answered {status})")
            case 404:
                raise ModelUnavailable(f"{if_missing} ({self.shown} answered 404)")
            case 301 | 302 | 303 | 307 | 308:
                raise ModelUnavailable(f"{self.shown} redirects elsewhere ({status}); set its final address")
            case _:
                raise ModelUnavailable(f"{self.shown} answered {status}")

    async def _read(self, response: httpx.Response, *, most: int) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > most:
                raise ModelOutputInvalid(f"{self.shown} sent more than {most} bytes")
        return bytes(body)

    def _parse(self, body: bytes) -> object:
        try:
            parsed: object = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ModelOutputInvalid(f"{self.shown} sent something that is not JSON") from error
        if isinstance(parsed, dict) and parsed.get("error") and not parsed.get("choices"):
            return _Later(reason="answered with an error")  # gateways do, under status 200
        return parsed

    def _line(self) -> _Line:
        loop = running_loop()
        assert loop is not None
        line = self._lines.get(loop)
        if line is None:
            line = self._lines[loop] = self._connect()
        return line

    def _connect(self) -> _Line:
        try:
            import httpx
        except ImportError as error:
            raise ModelUnavailable(f"a model endpoint needs httpx, not installed here: {INSTALL}") from error
        import anyio

        try:
            client = httpx.AsyncClient(
                headers=self._headers,
                verify=self._server.verify,
                trust_env=not self._server.is_loopback,
                timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
                follow_redirects=False,
            )
        except (OSError, ValueError) as error:
            raise ModelUnavailable(f"TLS or proxy settings do not work ({type(error).__name__})") from error
        return _Line(client=client, limiter=anyio.CapacityLimiter(self._concurrency))
