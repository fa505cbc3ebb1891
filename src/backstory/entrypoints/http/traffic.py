"""Which requests are being answered, so that work in the background waits for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import anyio

GIVE_WAY_WITHIN_S = 2.0
"""The longest that work waits for requests, so that steady traffic does not starve it."""


class Traffic:
    """Counts requests."""

    def __init__(self) -> None:
        self._running = 0
        self._quiet = anyio.Event()
        self._quiet.set()

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """One request is being answered."""
        self._running += 1
        if self._running == 1:
            self._quiet = anyio.Event()
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._quiet.set()

    async def give_way(self) -> None:
        """Wait until no request is being answered, for a while."""
        with anyio.move_on_after(GIVE_WAY_WITHIN_S):
            await self._quiet.wait()
