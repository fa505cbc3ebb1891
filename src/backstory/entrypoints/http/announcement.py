"""The note ``serve.json`` that tells other commands where a server listens, and whether it still does.

The server holds a lock on the note while it runs, and only its own user can: so no other program that took its port, or
its process number, is ever handed the token. Each server has a note under a name of its own, too, so that of several
over one folder those that still run are found when the one that was told ends, however it ends.
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
_OWN = f".{FILE}."
"""How the names of the servers' own notes begin."""

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
    told = _told(data_dir / FILE)
    if told is not None or not os.path.lexists(data_dir / FILE):
        return told
    return next((found for note in _own_notes(data_dir) if (found := _told(note)) is not None), None)


@contextlib.contextmanager
def announced(data_dir: Path, announcement: Announcement) -> Iterator[Path]:
    """Put the note there, for its owner alone, as long as the server runs. The latest of several servers is told, and
    when that one ends the latest of those that are left."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = data_dir / FILE
    handle, name = tempfile.mkstemp(dir=data_dir, prefix=_OWN)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        os.write(handle, json.dumps(announcement.as_json() | {"store": announcement.store}).encode() + b"\n")
        _tell(Path(name), path)
        yield path
    finally:
        with contextlib.suppress(OSError):
            Path(name).unlink(missing_ok=True)
            _hand_over(data_dir, handle)
        os.close(handle)


def _tell(note: Path, path: Path) -> None:
    beside = note.with_name(f"~{note.name}")
    try:
        os.link(note, beside)
    except OSError:  # a file system without a second name for a file
        note.replace(path)
        return
    beside.replace(path)


def _hand_over(data_dir: Path, handle: int) -> None:
    """Take our note away, if it is the one that is told, and tell of a server that still runs. Notes of servers that
    were killed go, too; an empty one is of a server that only starts."""
    path = data_dir / FILE
    left = _own_notes(data_dir)
    running = [note for note in left if _told(note) is not None]
    for note in left:
        if note not in running and note.stat().st_size:
            note.unlink()
    if os.path.samestat(os.fstat(handle), path.lstat()):
        _tell(running[0], path) if running else path.unlink()


def _own_notes(data_dir: Path) -> list[Path]:
    """The servers' own notes, the latest first."""
    found = []
    for entry in os.scandir(data_dir):
        if entry.name.startswith(_OWN):
            with contextlib.suppress(OSError):  # its server has just ended
                found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path))
    return [Path(name) for _, name in sorted(found, reverse=True)]


def _told(note: Path) -> Announcement | None:
    """What a note tells, while its server holds it."""
    try:
        handle = os.open(note, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        told = os.fstat(handle)
        if not stat.S_ISREG(told.st_mode) or told.st_uid != os.geteuid() or told.st_mode & 0o077:
            return None
        return _read(os.read(handle, _MAX_BYTES)) if _is_locked(handle) else None
    finally:
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
