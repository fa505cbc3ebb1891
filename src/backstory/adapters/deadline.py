"""How long the uses of a store may take together, as whoever calls them says. What a store does to keep it is in its
``connection.py``."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import timedelta

LEAST_WAIT_S = 0.05
"""What a use may wait for others however late it is: a commit takes 1 to 3 ms, so an everyday collision is over long
before."""

_until: ContextVar[float | None] = ContextVar("until", default=None)


@contextlib.contextmanager
def waiting(limit: timedelta) -> Iterator[None]:
    """Within, all uses of a store together wait until ``limit`` from now for other writers, and for a server; after
    that, each still waits for ``LEAST_WAIT_S``. Worker threads that are started within inherit it."""
    token = _until.set(time.monotonic() + limit.total_seconds())
    try:
        yield
    finally:
        _until.reset(token)


def waiting_until() -> float | None:
    """The moment that ``waiting`` set, in seconds of the monotonic clock; None outside of one."""
    return _until.get()
