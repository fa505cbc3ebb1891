"""The address, the key and the waiting times of a model server, as HTTP clients of ours need them."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from backstory.errors import ConfigError

FIRST_PAUSE_SECONDS = 0.25
"""Before the second attempt, then twice as long each time; varied by half, so that clients do not return in step."""

_LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|::1")
_SECONDS = re.compile(r"\d{1,9}(\.\d{1,9})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """``base_url`` ends without a slash. ``shown`` is host and port, all of it that messages may hold.

    ``names_user``: a user name or a password stands in it, which logs of the HTTP library would repeat.
    """

    base_url: str
    shown: str
    is_loopback: bool
    names_user: bool = False

    @property
    def verify(self) -> bool:
        """Whether certificates matter. Loading them takes longer than a request over plain HTTP to this machine."""
        return not (self.is_loopback and self.base_url.startswith("http:"))


def read_address(base_url: str) -> ServerAddress:
    """Check a base URL. Raises ConfigError for one that cannot be read or has ? or #."""
    written = base_url.strip()
    try:
        parts = urlsplit(written)
        port = parts.port
    except ValueError as error:
        raise ConfigError("the base URL cannot be read", option="base_url") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ConfigError("the base URL must look like https://host/path, without ? and #", option="base_url")
    return ServerAddress(
        base_url=written.rstrip("/"),
        shown=parts.hostname if port is None else f"{parts.hostname}:{port}",
        is_loopback=_LOOPBACK.fullmatch(parts.hostname) is not None,
        names_user=parts.username is not None,
    )


def authorization(api_key: str | None) -> dict[str, str]:
    """The header that carries a key; none without one. Raises ConfigError for a key that no header can carry."""
    key = (api_key or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ConfigError("the API key holds characters that no HTTP header can carry", option="api_key")
    return {"authorization": f"Bearer {key}"} if key else {}


def pause_seconds(attempt: int) -> float:
    """How long to wait after a failed attempt, the first being 1, when the server names no time."""
    return FIRST_PAUSE_SECONDS * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.5)


def retry_after_seconds(value: str | None) -> float | None:
    """Seconds from now, 0 or more; None for no value or nonsense. Reads both forms of RFC 9110, section 10.2.3."""
    if value is None:
        return None
    if _SECONDS.fullmatch(value.strip()):
        return float(value)
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):  # the latter for an offset of many digits
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max((aware - datetime.now(UTC)).total_seconds(), 0.0)
