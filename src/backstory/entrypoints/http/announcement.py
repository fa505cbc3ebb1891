"""The note ``serve.json`` that tells other commands where a server listens, and whether it still does.

The server holds a lock on the note while it runs, and only its own user can: so no other program that took its port, or
its process number, is ever handed the token.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILE = "serve.json"

_MAX_BYTES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """A running server: its address (``http://127.0.0.1:4747``), or the Unix socket it listens on, and its process.

    ``store`` is a fingerprint of its store's address (``bootstrap.store_address``): only who wants that store asks it.
    """

    url: str
    socket: Path | None
    pid: int
    version: str
    store: str = ""

    def as_json(self) -> dict[str, object]:
        """What ``serve --json`` prints; the note has the store's fingerprint beside it."""
        socket = None if self.socket is None else str(self.socket)
        return {"url": self.url, "socket": socket, "pid": self.pid, "version": self.version}


def running_server(data_dir: Path) -> Announcement | None:
    """The server that runs over this data folder; None if there is none, or if its note is stale or not to be trusted.

    It costs no connection and imports nothing heavy.
    """
    try:
        handle = os.open(data_dir / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        told = os.fstat(handle)
        if not stat.S_ISREG(told.st_mode) or told.st_uid != os.geteuid() or told.st_mode & 0o077:
            return None
        return _read(os.read(handle, _MAX_BYTES)) if _is_locked(handle) else None
    finally:
        os.close(handle)


@contextlib.contextmanager
def announced(data_dir: Path, announcement: Announcement) -> Iterator[Path]:
    """Put the note there, for its owner alone, as long as the server runs. The latest of several servers is told."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = data_dir / FILE
    handle, name = tempfile.mkstemp(dir=data_dir, prefix=f".{FILE}.")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        os.write(handle, json.dumps(announcement.as_json() | {"store": announcement.store}).encode() + b"\n")
        Path(name).replace(path)
        yield path
    finally:
        with contextlib.suppress(OSError):
            Path(name).unlink(missing_ok=True)
            if os.path.samestat(os.fstat(handle), path.lstat()):
                path.unlink()
        os.close(handle)


def _is_locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _read(data: bytes) -> Announcement | None:
    try:
        fields = json.loads(data)
        return Announcement(
            url=str(fields["url"]),
            socket=None if fields["socket"] is None else Path(fields["socket"]),
            pid=int(fields["pid"]),
            version=str(fields["version"]),
            store=str(fields["store"]),
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
