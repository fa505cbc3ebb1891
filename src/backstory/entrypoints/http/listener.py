"""Where a server listens: a port of this machine or a Unix socket; anything else only with a certificate."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from backstory.config.serving import ServeSettings
from backstory.entrypoints.http.names import is_loopback
from backstory.errors import ConfigError

BACKLOG = 1024
"""Connections that wait to be taken; the system may keep fewer."""

_MAX_SOCKET_PATH = 100
"""Bytes; the system takes 107, or 103 on macOS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """An open socket. ``host`` is the address that clients may use as Host; ``path`` is a Unix socket's."""

    socket: socket.socket
    url: str
    host: str
    path: Path | None = None


def check_reach(serve: ServeSettings) -> None:
    """Refuse to be reached from other machines in the clear. Raises ConfigError."""
    if (serve.certificate is None) != (serve.certificate_key is None):
        missing = "serve.certificate" if serve.certificate is None else "serve.certificate_key"
        raise ConfigError(
            f"{missing} is not set: a certificate needs its key, and a key its certificate", option=missing
        )
    for name, path in (("certificate", serve.certificate), ("certificate_key", serve.certificate_key)):
        if path is not None and not os.access(path, os.R_OK):
            raise ConfigError(f"serve.{name}: {path} cannot be read", option=f"serve.{name}")
    if serve.socket is None and serve.certificate is None and not is_loopback(serve.host.strip("[]").lower()):
        raise _in_the_clear(serve.host)


def _check_chain(serve: ServeSettings) -> None:
    """Refuse what TLS would find out only once it is said that the server listens. Raises ConfigError."""
    if serve.certificate is None:
        return
    import ssl

    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(serve.certificate, serve.certificate_key, password="")  # nobody is asked for one
    except (OSError, ValueError) as error:
        told = f"{serve.certificate} and {serve.certificate_key} are no certificate chain and its key"
        raise ConfigError(
            f"serve.certificate: {told}, both in PEM, the key without a passphrase", option="serve.certificate"
        ) from error


def _in_the_clear(host: str) -> ConfigError:
    return ConfigError(
        f"serve.host: {host[:60]!r} can be reached from other machines, and memories and the token could be read on the"
        " way; set serve.certificate and serve.certificate_key, or use 127.0.0.1 or a Unix socket",
        option="serve.host",
    )


@contextlib.contextmanager
def listening(serve: ServeSettings) -> Iterator[Listener]:
    """Listen where the settings say, and take a Unix socket's file away at the end. Raises ConfigError."""
    check_reach(serve)
    _check_chain(serve)
    with _unix(serve.socket) if serve.socket is not None else _port(serve) as listener:
        yield listener


@contextlib.contextmanager
def _port(serve: ServeSettings) -> Iterator[Listener]:
    host = serve.host.strip("[]").lower()
    try:
        found = socket.getaddrinfo(host, serve.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        if serve.certificate is None and not is_loopback(str(address[0])):  # whatever the name was said to mean
            raise _in_the_clear(host)
        opened = socket.socket(family, kind, protocol)
    except (OSError, ValueError) as error:  # the latter for what cannot be a name at all
        raise ConfigError(f"serve.host: {host[:60]!r} is no address of this machine", option="serve.host") from error
    with opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind(address)
            opened.listen(BACKLOG)
        except (OSError, OverflowError) as error:
            raise _not_bound(serve, error) from error
        name, port = opened.getsockname()[:2]
        scheme = "http" if serve.certificate is None else "https"
        shown = "localhost" if name in ("0.0.0.0", "::") else f"[{name}]" if ":" in name else name
        yield Listener(socket=opened, url=f"{scheme}://{shown}:{port}", host=name)


def _not_bound(serve: ServeSettings, error: OSError | OverflowError) -> ConfigError:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EADDRINUSE:
        told = (
            f"serve.port: {serve.port} is taken by another program, maybe by another `backstory serve`; choose --port"
        )
        return ConfigError(told, option="serve.port")
    if number == errno.EACCES:
        return ConfigError(f"serve.port: {serve.port} is not for ordinary users; choose --port", option="serve.port")
    return ConfigError(f"serve.host: {serve.host[:60]!r} is no address of this machine", option="serve.host")


@contextlib.contextmanager
def _unix(path: Path) -> Iterator[Listener]:
    if len(os.fsencode(path)) > _MAX_SOCKET_PATH:
        told = f"serve.socket: {path} is longer than {_MAX_SOCKET_PATH} bytes, which no socket's path may be"
        raise ConfigError(told, option="serve.socket")
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with opened:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _clear(path)
            _bind_for_owner(opened, path)
            opened.listen(BACKLOG)
            made = path.lstat()
        except OSError as error:
            told = f"serve.socket: {path} cannot be listened on: {(error.strerror or str(error)).lower()}"
            raise ConfigError(told, option="serve.socket") from error
        try:
            yield Listener(socket=opened, url="http://localhost", host="localhost", path=path)
        finally:
            with contextlib.suppress(OSError):
                if os.path.samestat(made, path.lstat()):  # not one that another server put there since
                    path.unlink()


def _bind_for_owner(opened: socket.socket, path: Path) -> None:
    """Bind so that there is no moment in which others may connect."""
    mask = os.umask(0o177)
    try:
        opened.bind(str(path))
    finally:
        os.umask(mask)


def _clear(path: Path) -> None:
    """Remove a socket that nobody answers on any more. Raises ConfigError where somebody does, or it is no socket."""
    try:
        told = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(told.st_mode):
        raise ConfigError(f"serve.socket: {path} is there already and is no socket", option="serve.socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError:  # it is there, but does not take us: not ours to remove
            pass
    raise ConfigError(f"serve.socket: another server listens on {path} already", option="serve.socket")
