"""Connections and their transactions. Opening the schema is in ``opening.py``, tables are in the files beside this."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from backstory.adapters.blocking import run_blocking
from backstory.adapters.deadline import LEAST_WAIT_S, waiting_until
from backstory.adapters.stores.postgres.driver_errors import in_our_words
from backstory.adapters.stores.postgres.opening import Server, connect, open_schema, parse_address, settings
from backstory.adapters.stores.postgres.pool import Pool
from backstory.errors import StoreUnavailable

TIMEOUT = timedelta(seconds=10)
POOL_SIZE = 8  # calls of one process that run at once; a server has 100 connections unless told otherwise
_MOST_LOSSES = 2  # the first may be of a connection that was useless long ago
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.2

_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_COLLISIONS = (errors.SerializationFailure, errors.DeadlockDetected)

T = TypeVar("T")
_Raw = psycopg.Connection[Any]


class Connection:
    """A store's connections to its server; several calls run at once, each on a connection of its own.

    Nothing is opened before the first use. A connection that the server has closed, as in a failover, is replaced by
    a new one, and the call is made again. A commit is as durable as the server's ``synchronous_commit`` makes it.
    A fork leaves the child without connections; it opens its own.
    """

    def __init__(
        self,
        dsn: str,
        *,
        on_open: Callable[[_Raw], object],
        schema: str = "backstory",
        tenant: str = "default",
        create: bool = True,
        timeout: timedelta = TIMEOUT,
    ) -> None:
        """``on_open`` prepares a store that may be written, in a write transaction of its own. ``timeout`` bounds each
        call's waiting: for a connection of this process, for a host, for locks and other writers; and each of its
        statements. ``deadline.waiting`` may leave it less. A server that says nothing for 2 s longer is given up.
        Raises ConfigError for a ``dsn`` that is none."""
        self._address = parse_address(dsn, schema=schema, tenant=tenant, timeout=timeout)
        self._on_open = on_open
        self._create = create
        self._timeout = timeout
        self._start_anew()
        _CONNECTIONS.add(self)

    def _start_anew(self) -> None:
        self._pool = Pool(lambda left_s: connect(self._address, within_s=left_s), size=POOL_SIZE)
        self._opening = threading.Lock()
        self._server: Server | None = None

    @property
    def location(self) -> str:
        """Where the store is, for people: neither user nor password."""
        return self._address.location

    @property
    def read_only(self) -> bool:
        """Whether the server was found to take no writes: a standby. False before the first use."""
        return self._server is not None and self._server.read_only

    @property
    def has_vector(self) -> bool:
        """Whether pgvector can be used, and ``pgvector.sql`` has run. False before the first use."""
        return self._server is not None and self._server.vector_schema is not None

    @property
    def vector_schema(self) -> str | None:
        """The schema of pgvector's types; it is in the search path of every transaction, behind the store's own."""
        return None if self._server is None else self._server.vector_schema

    @property
    def vector_version(self) -> tuple[int, ...]:
        """The version of pgvector, such as (0, 8, 1); empty without it."""
        return () if self._server is None else self._server.vector_version

    async def read(self, fn: Callable[[_Raw], T]) -> T:
        """Run ``fn`` on one unchanging view of the store. It may run again where a connection is lost.

        A caller that is cancelled leaves at once, and what runs ends alone.
        """

        def work() -> T:
            with in_our_words(seeks_writer=self._address.seeks_writer):
                return self._run(_READ, fn, again=fn)

        return await run_blocking(work, abandon_on_cancel=True)

    async def write(self, fn: Callable[[_Raw], T], *, again: Callable[[_Raw], T] | None = None) -> T:
        """Run ``fn`` in one transaction: committed when it returns, rolled back when it raises.

        It runs again when the server took it back for another writer's sake, and when the connection was lost before
        the commit. When it is lost during the commit, nobody knows whether that went through: then ``again`` runs,
        which finds out and does what is missing; without one, or without the time for it, StoreUnavailable says so.
        Nor does a caller know that was cancelled: it leaves at once, and what runs may still be committed.
        """

        def work() -> T:
            with in_our_words(seeks_writer=self._address.seeks_writer):
                return self._run(_WRITE, fn, again=again)

        return await run_blocking(work, abandon_on_cancel=True)

    async def close(self) -> None:
        """Close all connections. Calling twice is fine; the next use opens new ones."""

        def work() -> None:  # not in turn with an opening: that may be waiting for a server that is gone
            self._pool.drop_all()
            self._server = None

        await run_blocking(work)

    def after_fork_in_child(self) -> None:
        """Leave the parent's connections to it, unused and unclosed, and its locks as they are."""
        self._start_anew()

    def _run(self, begin: str, fn: Callable[[_Raw], T], *, again: Callable[[_Raw], T] | None) -> T:
        until = self._until()
        pause = _FIRST_PAUSE_S
        losses = 0
        told_read_only = False
        while True:
            try:
                opens = self._server is None
                server = self._opened(until, writing=begin is _WRITE)
                if opens:
                    until = self._until()  # bringing a store up to date is not waiting
                with self._pool.connection(until=until) as raw:
                    return _in_transaction(raw, self._head(begin, server, left_s=until - time.monotonic()), fn)
            except _UnknownOutcome as error:
                self._pool.drop_all()  # what made this one useless has met the others too
                if again is None or time.monotonic() >= until:
                    raise StoreUnavailable(
                        "the connection to the Postgres store was lost during a commit; look whether it went through"
                    ) from error
                fn = again
            except _Lost as error:
                self._pool.drop_all()
                losses += 1
                if losses > _MOST_LOSSES or time.monotonic() >= until:
                    raise error.reason from error
            except errors.ReadOnlySqlTransaction:
                if told_read_only:
                    raise
                told_read_only = True  # a primary that became a standby; another may have taken its place
                self._server = None
                self._pool.drop_all()
            except (errors.UndefinedTable, errors.InvalidSchemaName):
                self._server = None  # somebody is restoring the schema, or has dropped it
                raise
            except _COLLISIONS:
                if time.monotonic() >= until:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _until(self) -> float:
        """When a call that begins now has to have done its waiting, by the monotonic clock."""
        now = time.monotonic()
        until = now + self._timeout.total_seconds()
        return max(min(until, waiting_until() or until), now + LEAST_WAIT_S)

    def _head(self, begin: str, server: Server, *, left_s: float | None = None) -> str:
        timeout = self._timeout
        return f"{begin}; {settings(self._address, vector_schema=server.vector_schema, timeout=timeout, left_s=left_s)}"

    def _opened(self, until: float, *, writing: bool) -> Server:
        server = self._server
        if server is not None and not (writing and server.read_only):
            return server
        if not self._opening.acquire(timeout=max(until - time.monotonic(), LEAST_WAIT_S)):
            raise StoreUnavailable("the Postgres store is still being opened by another caller of this process")
        try:
            if self._server is None or (writing and self._server.read_only):  # it may have become writable since
                self._pool.drop_all()
                self._server = self._open(until)
            server = self._server
        finally:
            self._opening.release()
        if writing and server.read_only:
            raise StoreUnavailable("the Postgres store is read-only; nothing was written")
        return server

    def _open(self, until: float) -> Server:
        with self._pool.connection(until=until) as raw:
            server = open_schema(raw, self._address, create=self._create, timeout=self._timeout)
            if not server.read_only:
                try:
                    _in_transaction(raw, self._head(_WRITE, server), self._on_open)
                except _UnknownOutcome as error:
                    raise _Lost(error.reason) from error  # it does no harm to prepare a store twice
        return server


class _Lost(Exception):
    """The connection ended before the commit: nothing was written."""

    def __init__(self, reason: psycopg.Error) -> None:
        super().__init__(str(reason))
        self.reason = reason


class _UnknownOutcome(Exception):
    """The connection ended during the commit."""

    def __init__(self, reason: psycopg.Error) -> None:
        super().__init__(str(reason))
        self.reason = reason


def _in_transaction(raw: _Raw, head: str, fn: Callable[[_Raw], T]) -> T:
    try:
        raw.execute(head)
        result = fn(raw)
    except psycopg.Error as error:
        if raw.closed:
            raise _Lost(error) from error
        _roll_back(raw)
        raise
    except BaseException:
        _roll_back(raw)
        raise
    _commit(raw)
    return result


def _commit(raw: _Raw) -> None:
    """Raises also where the commit is on this server only: it did not wait for the standby that it promised."""
    warnings: list[str] = []

    def note(diagnostic: errors.Diagnostic) -> None:
        if diagnostic.severity_nonlocalized == "WARNING":
            warnings.append(diagnostic.message_primary or "")

    raw.add_notice_handler(note)
    try:
        done = raw.execute("COMMIT").statusmessage
    except psycopg.Error as error:
        if raw.closed:
            raise _UnknownOutcome(error) from error
        raise  # a refusal: all is rolled back
    finally:
        raw.remove_notice_handler(note)
    if done != "COMMIT":
        raise psycopg.InternalError("a statement failed and its error was not raised; the transaction was rolled back")
    if warnings:
        raise StoreUnavailable("the Postgres store has written the change, but no standby has confirmed it in time")


def _roll_back(raw: _Raw) -> None:
    with contextlib.suppress(psycopg.Error):  # the pool closes what is not as it was
        raw.execute("ROLLBACK")


_CONNECTIONS: weakref.WeakSet[Connection] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for connection in list(_CONNECTIONS):
        connection.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
