"""Opening the file safely: who may read it, whether it is ours, which format it has. Transactions are elsewhere."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path

from backstory.adapters.stores.sqlite import migrations
from backstory.errors import SchemaTooNew, StoreDamaged, StoreUnavailable

APPLICATION_ID = 0x42535459  # "BSTY": tells our file from any other SQLite database

# Closing any descriptor of a file drops this process's locks on it (POSIX), SQLite's too. So the file is made under
# this lock, and never opened beside SQLite afterwards.
_MAKING = threading.Lock()

# What SQLite says where it may not make the -shm file of a log: on a read-only disk, and in a read-only folder.
_NO_SHM = ("unable to open", "readonly database")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A connection to a store of the current format, in a transaction of its own for each statement; ``file`` is the
    ``identity`` of what was opened."""

    raw: sqlite3.Connection
    read_only: bool
    file: tuple[int, int]


def identity(path: Path) -> tuple[int, int]:
    """Which file a path leads to: device and inode. Raises OSError."""
    status = os.stat(path)  # noqa: PTH116 - asked at each transaction: half the time of Path.stat
    return status.st_dev, status.st_ino


def is_there(path: Path) -> bool:
    """Whether there is a file; one that may not be looked at is there, and opening it says what is wrong."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def open_file(path: Path, *, create: bool) -> Opened:
    """Open the store, make it if it is not there and ``create``, and bring its format up to date.

    Neither this nor the connection waits for other processes: SQLite says "locked", and the caller tries again.

    Another program's database, damaged files and newer formats are refused before anything is written. A store on a
    read-only disk, or in a folder that may not be written, is opened for reading. Symbolic links are followed.
    """
    real = Path(os.path.realpath(path))
    with _MAKING:
        exists = real.exists()
        if not exists:
            _make(real, path, create=create)
    read_only = exists and not (os.access(real, os.W_OK) and os.access(real.parent, os.W_OK))
    _check_not_emptied(real, path)
    file = identity(real)  # before it is opened: one that takes its place in between is noticed at the next look
    raw = _connect_read_only(real) if read_only else _connect(real)
    try:
        version = check_identity(raw, path)
        if not read_only:
            if raw.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                raw.execute("PRAGMA journal_mode = WAL")
            raw.execute("PRAGMA synchronous = FULL")
        raw.execute("PRAGMA foreign_keys = ON")
        if version < migrations.latest_version():
            _migrate(raw, path, read_only=read_only)
    except BaseException:
        raw.close()
        raise
    return Opened(raw=raw, read_only=read_only, file=file)


def _make(real: Path, path: Path, *, create: bool) -> None:
    if not create:
        raise StoreUnavailable(f"there is no store at {path}")
    real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # made here, not by SQLite, so that nobody else can read it even for a moment
    with contextlib.suppress(FileExistsError):
        os.close(os.open(real, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _connect(real: Path) -> sqlite3.Connection:
    return sqlite3.connect(real, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=64)


def _connect_read_only(real: Path) -> sqlite3.Connection:
    """Read what is there, including what a write-ahead log beside it holds."""
    raw = _connect_by_uri(real, "mode=ro")
    try:
        raw.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return raw
    except sqlite3.OperationalError as error:
        raw.close()
        if not any(sign in str(error) for sign in _NO_SHM):
            raise
    # SQLite can make no -shm file here. Without a log nothing is missing from the file itself.
    log = real.with_name(f"{real.name}-wal")
    if log.exists() and log.stat().st_size:
        raise StoreUnavailable(
            f"the store {real} is read-only, and its last writes are still in {log.name}; make the folder writable once"
        )
    return _connect_by_uri(real, "mode=ro&immutable=1")


def _connect_by_uri(real: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{real.as_uri()}?{options}", uri=True, timeout=0, isolation_level=None, check_same_thread=False
    )


def open_to_look(path: Path) -> sqlite3.Connection:
    """A connection that reads a store, or what is in its place, and never writes; raises what the driver raises.

    Nothing is checked, and an older format stays as it is.
    """
    real = Path(os.path.realpath(path))
    if not real.exists():
        raise StoreUnavailable(f"there is no store at {path}")
    _check_not_emptied(real, path)
    return _connect_read_only(real)


def is_emptied(path: Path) -> bool:
    """Whether a file has no byte but a log that holds something, which SQLite would throw away.

    SQLite never empties a file, and writes a new one's first page before its log: somebody else cut it off, perhaps on
    a full disk.
    """
    log = path.with_name(f"{path.name}-wal")
    return path.stat().st_size == 0 and log.exists() and log.stat().st_size > 0


def _check_not_emptied(real: Path, path: Path) -> None:
    if is_emptied(real):
        raise StoreDamaged(f"{path} is empty, but its log is not: the store was cut off; it was left as it is")


def check_identity(raw: sqlite3.Connection, path: Path) -> int:
    """The file's format version; 0 for a new, empty file. Never writes."""
    raw.execute("BEGIN")  # one view of it all: another process may be making the store right now
    version = int(raw.execute("PRAGMA user_version").fetchone()[0])
    application = int(raw.execute("PRAGMA application_id").fetchone()[0])
    tables = int(raw.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    raw.execute("COMMIT")
    if application != APPLICATION_ID and (application or version or tables):
        raise StoreDamaged(f"{path} is a database of another program; it was left as it is")
    if version > migrations.latest_version():
        raise SchemaTooNew(
            f"the store {path} has format {version}, this Backstory reads up to "
            f"{migrations.latest_version()}; upgrade Backstory. Nothing was changed"
        )
    return version


def _migrate(raw: sqlite3.Connection, path: Path, *, read_only: bool) -> None:
    if read_only:
        raise StoreUnavailable(f"the store {path} has an older format and is read-only, so it cannot be opened")
    raw.execute("BEGIN IMMEDIATE")
    try:
        # another process may have migrated while this one waited for the lock
        version = int(raw.execute("PRAGMA user_version").fetchone()[0])
        migrations.apply(raw, from_version=version)
        raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        raw.execute(f"PRAGMA user_version = {max(version, migrations.latest_version())}")
        raw.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            raw.execute("ROLLBACK")
        raise
