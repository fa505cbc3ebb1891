"""A stream of events as an answer: each is handed on at once, and whoever does not take them is let go."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator

import anyio
from starlette.responses import Response

from backstory.entrypoints.http.guard import Receive, Scope, Send

SEND_WITHIN_S = 30.0
"""How long a listener may take for one event."""


class EventStream(Response):
    """The answer, whose first event is there already, so that what fails before it is an ordinary failure."""

    def __init__(self, first: bytes, events: AsyncGenerator[bytes, None]) -> None:
        super().__init__(b"", media_type="text/event-stream")
        del self.headers["content-length"]
        self.headers["x-accel-buffering"] = "no"
        self._first = first
        self._events = events

    @classmethod
    async def begun(cls, events: AsyncGenerator[bytes, None]) -> EventStream:
        """The answer. Raises what the first event raises."""
        return cls(await anext(events), events)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the events end, the listener goes, or it takes none for too long."""
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b""})
                return
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_until_gone, receive, tasks.cancel_scope)
                await self._send_all(send)
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._events.aclose()  # its place is free again

    async def _send_all(self, send: Send) -> None:
        with anyio.move_on_after(SEND_WITHIN_S) as patience:
            await send({"type": "http.response.body", "body": self._first, "more_body": True})
            patience.deadline = math.inf
            async for event in self._events:
                patience.deadline = anyio.current_time() + SEND_WITHIN_S
                await send({"type": "http.response.body", "body": event, "more_body": True})
                patience.deadline = math.inf
            await send({"type": "http.response.body", "body": b""})


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
