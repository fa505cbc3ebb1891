"""One connection and its transactions. Opening the file is in ``opening.py``, tables are in the files beside this."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from backstory.adapters.blocking import OneAtATime, run_blocking
from backstory.adapters.deadline import LEAST_WAIT_S, waiting_until
from backstory.adapters.stores.sqlite.driver_errors import in_our_words
from backstory.adapters.stores.sqlite.opening import identity, open_file
from backstory.errors import StoreBusy, StoreUnavailable

BUSY_TIMEOUT = timedelta(seconds=10)
_PAUSES_S = (0.001, 0.002, 0.005, 0.01)  # between tries; the last one repeats

T = TypeVar("T")


class Connection:
    """One SQLite connection, used by one caller at a time.

    The file is opened at the first use. WAL lets readers go on while one process writes; a writer tries again and again
    for up to ``busy_timeout``, or for as long as ``deadline.waiting`` says, and lets others use the connection between
    its tries. A caller that is cancelled, as when a network disk hangs, leaves at once; what runs ends alone, and later
    calls wait for it. ``synchronous = FULL``: a commit is on the disk when it returns, so even a
    power cut loses nothing acknowledged (measured here: 1 to 3 ms a commit, against under 1 ms with NORMAL).
    A fork closes the file first and lets both processes open it again: SQLite's locks do not survive one.
    Each transaction looks first whether the path still leads to the file that is open (under 10 µs), and opens the one
    that is there now if it does not: somebody restored a backup, or moved files by hand.
    """

    def __init__(
        self,
        path: Path,
        *,
        on_open: Callable[[sqlite3.Connection, bool], None],
        create: bool = True,
        busy_timeout: timedelta = BUSY_TIMEOUT,
    ) -> None:
        """``on_open`` prepares the opened database; its second argument tells whether it may write."""
        self.path = path.absolute()
        self.read_only = False
        self._create = create
        self._busy_timeout = busy_timeout
        self._on_open = on_open
        self._turn = OneAtATime()
        self._in_use = threading.Lock()
        self._raw: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self.replacements = 0
        """How often another file was found in the place of the one that was open: what was read before it may be of no
        use any more. It grows inside the call that finds it."""
        _CONNECTIONS.add(self)

    async def read(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``fn`` on one unchanging view of the store."""

        def work() -> T:
            with self._in_use, in_our_words(self.path):
                return _in_transaction(self._open(), "BEGIN", fn)

        return await self._when_free(work)

    async def write(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``fn`` in one write transaction: committed when it returns, rolled back when it raises."""

        def work() -> T:
            with self._in_use, in_our_words(self.path):
                return _in_transaction(self._open_for_writing(), "BEGIN IMMEDIATE", fn)

        return await self._when_free(work)

    async def look_then_write(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """The same for one that reads for long before it writes first: others may write until then.

        If one does, what was read is out of date; SQLite refuses the first write, and ``fn`` begins anew. Where that
        goes on for as long as a busy store is waited for, nobody else may write any more from its beginning.
        """

        def work() -> T:
            with self._in_use, in_our_words(self.path):
                return _in_transaction(self._open_for_writing(), "BEGIN", fn)

        try:
            return await self._when_free(work)
        except StoreBusy:
            return await self.write(fn)

    async def close(self) -> None:
        """Close the file. Calling twice is fine; the next use opens it again."""

        def work() -> None:
            with self._in_use:
                self._drop()

        await self._turn.run(work)

    async def _when_free(self, work: Callable[[], T]) -> T:
        """Run ``work`` in turn; again and again while another process is in its way, since SQLite's own waiting would
        hold up everybody else's turn."""
        now = time.monotonic()
        until = max(waiting_until() or now + self._busy_timeout.total_seconds(), now + LEAST_WAIT_S)
        pauses = iter(_PAUSES_S)
        pause = 0.0
        while True:
            try:
                return await self._turn.run(work, abandon_on_cancel=True)
            except StoreBusy:
                if time.monotonic() >= until:
                    raise
            pause = next(pauses, pause)
            await run_blocking(partial(time.sleep, pause))

    def _open(self) -> sqlite3.Connection:
        if self._raw is not None and self._is_replaced():
            self._drop()
            self.replacements += 1
        if self._raw is None:
            opened = open_file(self.path, create=self._create)
            try:
                self._on_open(opened.raw, not opened.read_only)
            except BaseException:
                opened.raw.close()
                raise
            self._raw, self.read_only, self._file = opened.raw, opened.read_only, opened.file
        return self._raw

    def _is_replaced(self) -> bool:
        """Whether the path leads to another file than the open one, or to none. A folder that cannot be looked into
        says nothing."""
        try:
            return identity(self.path) != self._file
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False

    def _open_for_writing(self) -> sqlite3.Connection:
        raw = self._open()
        if self.read_only:
            self._drop()  # it may have become writable since
            raw = self._open()
        if self.read_only:
            raise StoreUnavailable(f"the store {self.path} is read-only; nothing was written")
        return raw

    def _drop(self) -> None:
        if self._raw is None:
            return
        raw, self._raw = self._raw, None
        if self._is_replaced():
            _leave(raw)
        else:
            raw.close()

    def before_fork(self) -> None:
        """Wait for the call that runs, and leave nothing open to the child."""
        self._in_use.acquire()
        self._drop()

    def after_fork(self, *, child: bool) -> None:
        """Go on. In the child the threads that waited for their turn are gone."""
        if child:
            self._turn = OneAtATime()
        self._in_use.release()


def _leave(raw: sqlite3.Connection) -> None:
    """Let go of a file that was moved away while it was open, without closing it.

    The last connection of a file to close folds its log in and removes the log *by its path*: that would be the log of
    the file that is there now, with what was last acknowledged in it. So the connection stays for as long as the
    process does, which costs three descriptors each time that somebody replaces a store.
    """
    import ctypes  # rare, and slow to import

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(raw))


def _in_transaction(raw: sqlite3.Connection, begin: str, fn: Callable[[sqlite3.Connection], T]) -> T:
    raw.execute(begin)
    try:
        result = fn(raw)
        raw.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # a full disk may have rolled back already
            raw.execute("ROLLBACK")
        raise
    return result


_CONNECTIONS: weakref.WeakSet[Connection] = weakref.WeakSet()
_held: list[Connection] = []


def _before_fork() -> None:
    for connection in list(_CONNECTIONS):
        connection.before_fork()
        _held.append(connection)


def _after_fork(*, child: bool) -> None:
    while _held:
        _held.pop().after_fork(child=child)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(child=False),
        after_in_child=lambda: _after_fork(child=True),
    )
