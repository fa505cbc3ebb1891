"""A few connections that callers share. Opened as they are needed; what a caller does with one is elsewhere.

Not ``psycopg_pool``: its threads connect behind the caller, who then learns only that he waited too long, not that the
password is wrong; a command that asks once should start no thread; and threads do not survive a fork.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from backstory.errors import StoreBusy

_Raw = psycopg.Connection[Any]


class Pool:
    """At most ``size`` connections, each used by one caller at a time. The one given back last is the next to go out,
    so that those not needed stay untouched."""

    def __init__(self, connect: Callable[[], _Raw], *, size: int) -> None:
        self._connect = connect
        self._free = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._idle: list[_Raw] = []
        self._generation = 0

    @contextlib.contextmanager
    def connection(self, *, wait_s: float) -> Iterator[_Raw]:
        """A connection outside any transaction; StoreBusy where none was given back within ``wait_s`` seconds."""
        if not self._free.acquire(timeout=max(wait_s, 0.0)):
            raise StoreBusy("the Postgres store is busy: all connections of this process have been in use for too long")
        try:
            with self._lock:
                generation = self._generation
                raw = self._idle.pop() if self._idle else None
            if raw is None:
                raw = self._connect()
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

    def _give_back(self, raw: _Raw, generation: int) -> None:
        with self._lock:
            usable = not raw.closed and raw.info.transaction_status is TransactionStatus.IDLE
            if usable and generation == self._generation:
                self._idle.append(raw)
                return
        raw.close()
