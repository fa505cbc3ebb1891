"""One model server spoken to in JSON over HTTP: deadline, retries, and our errors for everything that can go wrong.

What is asked and how the answer reads is the embedder's matter. No message holds the key, the sent text or any words
of the server, which may repeat either.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backstory.adapters.server_address import authorization, pause_seconds, read_address, retry_after_seconds
from backstory.errors import ModelOutputInvalid, ModelUnavailable

if TYPE_CHECKING:
    import httpx

MAX_ATTEMPTS = 3
MAX_ANSWER_BYTES = 64 * 1024 * 1024
INSTALL = "pip install 'backstory[endpoint]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The server read the request and does not want it as it is (400, 413, 422): usually a text is too long."""

    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Later:
    """This attempt failed in a way that may pass. ``wait_seconds`` is what the server asks for, if it does."""

    reason: str
    wait_seconds: float | None = None


class JsonEndpoint:
    """A server at ``base_url``. Safe to share between threads; connects at the first ``post``.

    ``timeout_seconds`` bounds one ``post`` with all its attempts. Raises ConfigError for an address or a key that
    cannot be sent. Proxies of the environment are used, except for this machine's own addresses.
    """

    def __init__(self, base_url: str, *, api_key: str | None = None, timeout_seconds: float) -> None:
        self._server = read_address(base_url)
        self._address = self._server.shown
        self._headers = {"content-type": "application/json", "user-agent": "backstory"} | authorization(api_key)
        self._timeout_seconds = timeout_seconds
        self._opening = threading.Lock()
        self._client: httpx.Client | None = None

    @property
    def address(self) -> str:
        """Host and port, for messages: without any user name, password or path of the URL."""
        return self._address

    def post(self, path: str, body: Mapping[str, object], *, if_missing: str) -> object:
        """Send ``body`` and return the parsed answer, or ``Refused``. Blocks.

        Tries again after 408, 429, 5xx and a broken connection, waiting as long as ``Retry-After`` asks if that fits
        the timeout. ``if_missing`` says what a 404 means. Raises ModelUnavailable and ModelOutputInvalid.
        """
        content = json.dumps(body).encode("ascii")
        deadline = time.monotonic() + self._timeout_seconds
        attempt = 1
        while True:
            answer = self._attempt(path, content, deadline=deadline, if_missing=if_missing)
            if not isinstance(answer, _Later):
                return answer
            wait = answer.wait_seconds if answer.wait_seconds is not None else pause_seconds(attempt)
            if attempt == MAX_ATTEMPTS or time.monotonic() + wait >= deadline:
                raise ModelUnavailable(f"{self._address} {answer.reason}; tried {attempt} of {MAX_ATTEMPTS} times")
            time.sleep(wait)
            attempt += 1

    def close(self) -> None:
        """Close the connections; a later ``post`` opens new ones."""
        with self._opening:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _attempt(self, path: str, content: bytes, *, deadline: float, if_missing: str) -> object:
        client = self._open()
        import httpx

        remaining = max(deadline - time.monotonic(), 0.001)
        try:
            with client.stream("POST", self._server.base_url + path, content=content, timeout=remaining) as response:
                if not response.is_success:
                    return self._failure(response, if_missing=if_missing)
                return self._parse_json(self._read(response, deadline=deadline))
        except httpx.TimeoutException as error:
            raise self._too_slow() from error
        except httpx.ConnectError as error:
            raise ModelUnavailable(f"{self._address} cannot be reached: {error}") from error
        except httpx.DecodingError as error:
            raise ModelOutputInvalid(f"{self._address} sent an answer that cannot be unpacked") from error
        except (httpx.NetworkError, httpx.RemoteProtocolError):
            return _Later(reason="broke the connection off")
        except httpx.HTTPError as error:
            raise ModelUnavailable(f"{self._address} cannot be reached ({type(error).__name__})") from error

    def _failure(self, response: httpx.Response, *, if_missing: str) -> Refused | _Later:
        status = response.status_code
        if status in (400, 413, 422):
            return Refused(status=status)
        if status in (408, 429) or status >= 500:
            return _Later(
                reason=f"answered {status}", wait_seconds=retry_after_seconds(response.headers.get("retry-after"))
            )
        match status:
            case 401 | 403:
                given = "does not accept the API key" if "authorization" in self._headers else "wants an API key"
                raise ModelUnavailable(f"{self._address} {given} (answered {status})")
            case 404:
                raise ModelUnavailable(f"{if_missing} ({self._address} answered 404)")
            case 301 | 302 | 303 | 307 | 308:
                raise ModelUnavailable(f"{self._address} redirects elsewhere ({status}); set its final address")
            case _:
                raise ModelUnavailable(f"{self._address} answered {status}")

    def _read(self, response: httpx.Response, *, deadline: float) -> bytes:
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > MAX_ANSWER_BYTES:
                raise ModelOutputInvalid(f"{self._address} sent more than {MAX_ANSWER_BYTES} bytes")
            if time.monotonic() > deadline:
                raise self._too_slow()
        return bytes(body)

    def _parse_json(self, body: bytes) -> object:
        try:
            parsed: object = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ModelOutputInvalid(f"{self._address} sent something that is not JSON") from error
        return parsed

    def _too_slow(self) -> ModelUnavailable:
        return ModelUnavailable(f"{self._address} did not answer within {self._timeout_seconds:g} s")

    def _open(self) -> httpx.Client:
        try:
            import httpx
        except ImportError as error:
            raise ModelUnavailable(f"an embedding endpoint needs httpx, not installed here: {INSTALL}") from error
        with self._opening:
            if self._client is None:
                verify, trust_env = self._server.verify, not self._server.is_loopback
                try:
                    self._client = httpx.Client(headers=self._headers, verify=verify, trust_env=trust_env)
                except (OSError, ValueError) as error:
                    raise ModelUnavailable(f"TLS or proxy settings do not work ({type(error).__name__})") from error
            return self._client
