"""By which names a server may be addressed, and which web pages may call it: against DNS rebinding and other pages.

A page whose own name was rebound to this machine sends that name as Host; any page that calls sends its Origin.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from backstory.errors import ConfigError

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252}))(?::(?P<port>[0-9]{1,5}))?")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SEPARATORS = re.compile(r"[\s,]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A name and, if one was given, a port: how a client addresses a server, or how a setting allows it to."""

    name: str
    port: int | None = None


def parse_host(text: str) -> Address | None:
    """A Host header; None for what is none. Names are lower case, IPv6 addresses stand without brackets."""
    found = _HOST.fullmatch(text)
    if found is None:
        return None
    port = None if found["port"] is None else int(found["port"])
    if port is not None and port > 65_535:
        return None
    name = found["name"].lower()
    if not name.startswith("["):
        return Address(name=name.removesuffix("."), port=port)
    try:
        return Address(name=ipaddress.IPv6Address(name[1:-1]).compressed, port=port)
    except ValueError:
        return None


def is_loopback(name: str) -> bool:
    """Whether a name or address can only mean this machine, whatever a name server says."""
    if name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        return address == ipaddress.IPv6Address("::1")
    return address.is_loopback


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedHosts:
    """The loopback names with any port, and what the setting adds; an entry with a port means that port alone."""

    more: frozenset[Address] = frozenset()

    def allow(self, address: Address) -> bool:
        """Whether a client may address the server so."""
        return is_loopback(address.name) or bool({address, Address(name=address.name)} & self.more)


def allowed_hosts(setting: str, *, also: Iterable[str] = ()) -> AllowedHosts:
    """What ``serve.allowed_hosts`` says; ``also`` are addresses that the server listens on. Raises ConfigError."""
    more = {Address(name=name) for name in also}
    for entry in _entries(setting):
        address = parse_host(entry)
        if address is None:
            told = f"serve.allowed_hosts: {entry!r} is no host name, such as notes.example or notes.example:8443"
            raise ConfigError(told, option="serve.allowed_hosts")
        more.add(address)
    return AllowedHosts(more=frozenset(more))


def allowed_origins(setting: str) -> frozenset[str]:
    """What ``serve.allowed_origins`` says, each as ``parse_origin`` gives it. Raises ConfigError; there is no ``*``."""
    origins = set()
    for entry in _entries(setting):
        origin = parse_origin(entry)
        if origin is None:
            told = f"serve.allowed_origins: {entry!r} is no origin, such as https://notes.example"
            raise ConfigError(told, option="serve.allowed_origins")
        origins.add(origin)
    return frozenset(origins)


def parse_origin(text: str) -> str | None:
    """An Origin header in lower case, without the scheme's own port; None for ``null`` and whatever is none."""
    try:
        parts = urlsplit(text)
        address = parse_host(parts.netloc)
    except ValueError:
        return None
    if (
        parts.scheme not in _DEFAULT_PORTS
        or address is None
        or text.lower() != f"{parts.scheme}://{parts.netloc}".lower()
    ):
        return None
    port = "" if address.port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{address.port}"
    name = f"[{address.name}]" if ":" in address.name else address.name
    return f"{parts.scheme}://{name}{port}"


def _entries(setting: str) -> list[str]:
    return [entry for entry in _SEPARATORS.split(setting) if entry]
