"""Opening the file safely, transactions, and the driver's errors in our words. Tables are in the files beside this."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from backstory.adapters.blocking import OneAtATime
from backstory.adapters.stores.sqlite import migrations
from backstory.errors import BackstoryError, SchemaTooNew, StoreDamaged, StoreError, StoreUnavailable

APPLICATION_ID = 0x42535459  # "BSTY": tells our file from any other SQLite database
BUSY_TIMEOUT_MS = 10_000

T = TypeVar("T")


class Connection:
    """One SQLite connection, used by one caller at a time.

    The file is opened at the first use. WAL lets readers go on while one process writes; writers queue on SQLite's
    lock for up to ``BUSY_TIMEOUT_MS``. ``synchronous = FULL``: a commit is on the disk when it returns, so even a
    power cut loses nothing acknowledged (measured here: 1 to 3 ms a commit, against under 1 ms with NORMAL).
    """

    def __init__(self, path: Path, *, on_open: Callable[[sqlite3.Connection, bool], None], create: bool = True) -> None:
        """``on_open`` prepares the opened database; its second argument tells whether it may write."""
        self.path = path
        self.read_only = False
        self._create = create
        self._on_open = on_open
        self._turn = OneAtATime()
        self._raw: sqlite3.Connection | None = None

    async def read(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``fn`` on the connection, outside any write transaction."""

        def work() -> T:
            with self._in_our_words():
                return fn(self._open())

        return await self._turn.run(work)

    async def write(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``fn`` in one write transaction: committed when it returns, rolled back when it raises."""

        def work() -> T:
            with self._in_our_words():
                return self._transaction(fn)

        return await self._turn.run(work)

    async def close(self) -> None:
        """Close the file. Calling twice is fine."""

        def work() -> None:
            if self._raw is not None:
                self._raw.close()
                self._raw = None

        await self._turn.run(work)

    def _transaction(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        raw = self._open()
        if self.read_only:
            raise StoreUnavailable(f"the store {self.path} is read-only; nothing was written")
        raw.execute("BEGIN IMMEDIATE")
        try:
            result = fn(raw)
            raw.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # a full disk may have rolled back already
                raw.execute("ROLLBACK")
            raise
        return result

    def _open(self) -> sqlite3.Connection:
        if self._raw is None:
            self._raw = self._connect()
        return self._raw

    def _connect(self) -> sqlite3.Connection:
        exists = self.path.exists()
        if not exists:
            self._make_folder()
        raw = self._connect_writable() if self._writable(exists) else self._connect_read_only()
        try:
            raw.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
            raw.execute("PRAGMA foreign_keys = ON")
            version = self._check_identity(raw)
            if not self.read_only:
                _use_wal(raw)
                raw.execute("PRAGMA synchronous = FULL")
            if version < migrations.latest_version():
                self._migrate(raw)
            self._on_open(raw, not self.read_only)
        except BaseException:
            raw.close()
            raise
        return raw

    def _writable(self, exists: bool) -> bool:
        self.read_only = exists and not _can_write(self.path)
        return not self.read_only

    def _connect_writable(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, cached_statements=64)

    def _connect_read_only(self) -> sqlite3.Connection:
        # immutable: on a read-only disk nobody can write, and SQLite could not make its -shm file there
        uri = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1"
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)

    def _make_folder(self) -> None:
        if not self._create:
            raise StoreUnavailable(f"there is no store at {self.path}")
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # made here, not by SQLite, so that nobody else can read it even for a moment
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))

    def _check_identity(self, raw: sqlite3.Connection) -> int:
        """The file's schema version; 0 for a new, empty file. Never writes."""
        version = int(raw.execute("PRAGMA user_version").fetchone()[0])
        application = int(raw.execute("PRAGMA application_id").fetchone()[0])
        tables = int(raw.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
        if tables and application != APPLICATION_ID:
            raise StoreDamaged(f"{self.path} is a database of another program; it was left as it is")
        if version > migrations.latest_version():
            raise SchemaTooNew(
                f"the store {self.path} has format {version}, this Backstory reads up to "
                f"{migrations.latest_version()}; upgrade Backstory. Nothing was changed"
            )
        return version

    def _migrate(self, raw: sqlite3.Connection) -> None:
        if self.read_only:
            raise StoreUnavailable(
                f"the store {self.path} has an older format and is read-only, so it cannot be opened"
            )
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

    @contextlib.contextmanager
    def _in_our_words(self) -> Iterator[None]:
        try:
            yield
        except BackstoryError:
            raise
        except sqlite3.Error as error:
            raise _translate(error, self.path) from error
        except OSError as error:
            raise StoreUnavailable(f"the store {self.path} cannot be opened: {error.strerror or error}") from error


def _use_wal(raw: sqlite3.Connection) -> None:
    """Switch to write-ahead logging. Several processes may open a new file at once, and SQLite does not wait for its
    busy timeout here; one of them wins and the others find it done."""
    for attempt in range(50):
        try:
            if raw.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
                return
            raw.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or attempt == 49:
                raise
            time.sleep(0.1)


def _can_write(path: Path) -> bool:
    """Whether SQLite could write here: the file, and the folder that takes its journal.

    Asks by opening, since a read-only file system refuses even those whose permission bits would allow it.
    """
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError:
        return False
    return os.access(path.parent, os.W_OK)


_MEANINGS = (
    ("locked", StoreUnavailable, "is busy: another process has been writing for too long; try again"),
    ("busy", StoreUnavailable, "is busy: another process has been writing for too long; try again"),
    ("readonly", StoreUnavailable, "is read-only; nothing was written"),
    ("full", StoreUnavailable, "could not be written: the disk is full. Nothing of this change was kept"),
    ("disk i/o error", StoreUnavailable, "could not be read or written: the disk reports an error"),
    ("unable to open", StoreUnavailable, "cannot be opened: check the path and its permissions"),
    ("not a database", StoreDamaged, "is not a database; it was left as it is"),
    ("malformed", StoreDamaged, "is damaged; it was left as it is. Restore a backup, or move it away to start anew"),
)


def _translate(error: sqlite3.Error, path: Path) -> StoreError:
    text = str(error).lower()
    for sign, kind, meaning in _MEANINGS:
        if sign in text:
            return kind(f"the store {path} {meaning}")
    return StoreError(f"the store {path} failed: {error}")
