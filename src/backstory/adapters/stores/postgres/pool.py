"""A few connections that callers share. Opened as they are needed; what a caller does with one is elsewhere.

Not ``psycopg_pool``: its threads connect behind the caller, who then learns only that he waited too long, not that the
password is wrong; a command that asks once should start no thread; and threads do not survive a fork.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from psycopg.pq import TransactionStatus

from backstory.adapters.deadline import LEAST_WAIT_S
from backstory.adapters.stores.postgres.bounded import BoundedConnection
from backstory.errors import StoreBusy


class Pool:
    """At most ``size`` connections, each used by one caller at a time. The one given back last is the next to go out,
    so that those not needed stay untouched."""

    def __init__(self, connect: Callable[[float], BoundedConnection], *, size: int) -> None:
        """``connect`` is told how many seconds are left to whoever waits for it; none, where it is below zero."""
        self._connect = connect
        self._free = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._idle: list[BoundedConnection] = []
        self._generation = 0

    @contextlib.contextmanager
    def connection(self, *, until: float) -> Iterator[BoundedConnection]:
        """A connection outside any transaction; StoreBusy where none was given back until then, by the monotonic
        clock, or within ``LEAST_WAIT_S``."""
        if not self._free.acquire(timeout=max(until - time.monotonic(), LEAST_WAIT_S)):
            raise StoreBusy("the Postgres store is busy: all connections of this process have been in use for too long")
        try:
            with self._lock:
                generation = self._generation
                raw = self._idle.pop() if self._idle else None
            if raw is None:
                raw = self._connect(until - time.monotonic())
            try:
                yield raw
            finally:
                self._give_back(raw, generation)
        finally:
            self._free.release()

    def drop_all(self) -> None:
        """Close the idle connections now, and those in use when they are given back."""
        with self._lock:
            self._generation += 1
            idle, self._idle = self._idle, []
        for raw in idle:
            raw.close()

    def _give_back(self, raw: BoundedConnection, generation: int) -> None:
        with self._lock:
            usable = not raw.closed and raw.info.transaction_status is TransactionStatus.IDLE
            if usable and generation == self._generation:
                self._idle.append(raw)
                return
        raw.close()
