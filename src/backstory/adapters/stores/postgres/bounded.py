"""Connections to a server that may stand still. The server's own limits are set in ``opening.py``."""

from __future__ import annotations

import re
import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg

GRACE_S = 2.0
"""How much longer than the server was told to take at most we wait for its answer."""

_LIMIT = re.compile(r"\bstatement_timeout TO (?:(\d+)|'(\d+)min')")

T = TypeVar("T")


class ServerSilent(psycopg.OperationalError):
    """The server has said nothing for too long; the connection is closed."""


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that is closed, with ServerSilent, when its server says nothing for ``silence_s`` seconds.

    ``statement_timeout`` runs on the server, so it ends nothing where the server's machine is gone or its processes
    stand still. Here it is watched from this side too: a statement that sets it sets ``silence_s`` to ``GRACE_S`` more.
    """

    silence_s: float | None = None
    """None waits for ever, as after a statement that takes the server's limit away."""

    def execute(self, query: Any, *arguments: Any, **options: Any) -> psycopg.Cursor[Any]:  # Any: as the driver's
        if isinstance(query, str) and (limits := _LIMIT.findall(query)):
            self.silence_s = _silence(*limits[-1])
        return super().execute(query, *arguments, **options)

    def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **options: Any) -> T:  # Any: as the driver's
        try:
            return super().wait(_watched(gen, self.silence_s), *arguments, **options)
        except ServerSilent:
            self.pgconn.finish()
            raise


def _silence(milliseconds: str, minutes: str) -> float | None:
    limit_s = int(milliseconds) / 1000 if milliseconds else 60.0 * int(minutes)
    return limit_s + GRACE_S if limit_s else None


def _watched(gen: Generator[Any, Any, T], silence_s: float | None) -> Generator[Any, Any, T]:
    """What ``gen`` does, until the socket is not ready for too long. The driver looks in every 0.1 s."""
    heard_at = time.monotonic()
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if ready:
                heard_at = time.monotonic()
            elif silence_s is not None and time.monotonic() - heard_at > silence_s:
                raise ServerSilent(f"no answer within {silence_s:.1f} s")
            wanted = gen.send(ready)
    except StopIteration as done:
        result: T = done.value
        return result
