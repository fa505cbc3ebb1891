"""How an adapter runs a blocking driver: in a worker thread under an event loop, in place where there is none.

One-shot commands drive a service's coroutine without an event loop, because importing one costs more than the command
itself takes; so nothing here imports asyncio or anyio before a loop is known to run. Which drivers block is elsewhere.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

    import anyio

T = TypeVar("T")

_given_up: ContextVar[threading.Event | None] = ContextVar("given_up", default=None)
"""In the thread of an ``aside``: set once its caller has gone."""


class _GivenUpError(Exception):
    """Nobody waits for this any more; nobody sees it either."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread, or None. Never imports asyncio: what is not imported does not run."""
    if "asyncio" not in sys.modules:
        return None
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def run_blocking(
    fn: Callable[[], T], *, limiter: anyio.CapacityLimiter | None = None, abandon_on_cancel: bool = False
) -> T:
    """Call ``fn`` without holding up an event loop, and give back what it returns or raises.

    Without a running loop it is called in place and the coroutine never suspends. Under a loop a cancelled caller
    still waits for ``fn`` to end, unless ``abandon_on_cancel`` lets the thread finish alone and drops its result.
    """
    if running_loop() is None:
        _stop_if_given_up()
        return fn()
    import anyio.to_thread

    return await anyio.to_thread.run_sync(fn, limiter=limiter, abandon_on_cancel=abandon_on_cancel)


def drive(coroutine: Coroutine[Any, Any, T]) -> T:  # Any: nothing is sent in and nothing is yielded
    """Run a coroutine that never waits for anything but its own blocking adapters, to its end.

    Adapters run their driver in place where no event loop runs, so a service called from a command never suspends.
    Importing an event loop costs more than a cold recall (measured: 75 ms for asyncio, 115 with anyio, against 70 ms
    for the whole command), so commands do without. A coroutine that does suspend is a bug and raises RuntimeError.
    """
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("it waited for an event loop where none runs; use anyio.run for work that needs deadlines")


async def aside(work: Callable[[], Coroutine[Any, Any, T]]) -> T:  # Any: nothing is sent in and nothing is yielded
    """See ``ports.system.Aside``: one trip to a worker thread, in which all adapters run their drivers in place.

    A trip costs 0.3 to 1 ms of waiting for threads; a recall makes four reads. Where the caller is cancelled, the call
    that runs is the last: a later one might open a store again that was closed meanwhile.
    """
    if running_loop() is None:
        return await work()
    given_up = threading.Event()

    def alone() -> T:
        _given_up.set(given_up)  # in this call's copy of the context
        return drive(work())

    try:
        return await run_blocking(alone, abandon_on_cancel=True)
    finally:
        given_up.set()


def _stop_if_given_up() -> None:
    given_up = _given_up.get()
    if given_up is not None and given_up.is_set():
        raise _GivenUpError


class OneAtATime:
    """Runs blocking calls one after another, whichever threads and event loops they come from.

    For drivers that are not safe to enter twice. Callers of one loop queue without taking a thread, in order. A call
    must not make another call on the same object: it would wait for itself.
    """

    def __init__(self) -> None:
        self._entered = threading.Lock()
        self._queue: tuple[asyncio.AbstractEventLoop, anyio.CapacityLimiter] | None = None

    async def run(self, fn: Callable[[], T], *, abandon_on_cancel: bool = False) -> T:
        """Like ``run_blocking``; an abandoned call keeps later ones waiting until it has ended."""
        loop = running_loop()
        limiter = self._limiter(loop) if loop is not None else None

        def alone() -> T:
            with self._entered:
                _stop_if_given_up()  # it may have waited for long
                return fn()

        return await run_blocking(alone, limiter=limiter, abandon_on_cancel=abandon_on_cancel)

    def _limiter(self, loop: asyncio.AbstractEventLoop) -> anyio.CapacityLimiter:
        """The queue of this loop; a limiter wakes only waiters of its own loop, so another loop gets a new one."""
        queue = self._queue
        if queue is None or queue[0] is not loop:
            import anyio

            queue = self._queue = (loop, anyio.CapacityLimiter(1))
        return queue[1]
