"""One connection: uvicorn's own, which besides waits only so long for its client.

Whoever sends nothing, a header a minute, or the rest of a request that is answered already, and whoever reads nothing
of an answer, would else keep one of the few connections for good, even without a token.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_WITHIN_S = 15.0
"""From the last answer, or the beginning, to the headers of the next request."""
TAKEN_WITHIN_S = 30.0
"""How long a client may leave more of an answer unread than the transport cares to keep (64 KiB)."""


class PunctualProtocol(H11Protocol):
    """Closes a connection on which the next request does not come in time, or an answer is not taken."""

    _overdue: asyncio.TimerHandle | None = None
    _untaken: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._untaken = self.loop.call_later(TAKEN_WITHIN_S, self.transport.abort)

    def resume_writing(self) -> None:
        _cancel(self._untaken)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._overdue)
        _cancel(self._untaken)
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Count the time in which no request is being answered; what is sent in it does not set it back."""
        if self.cycle is not None and not self.cycle.response_complete:
            _cancel(self._overdue)
            self._overdue = None
        elif self._overdue is None:
            self._overdue = self.loop.call_later(HEADERS_WITHIN_S, self._give_up)

    def _give_up(self) -> None:
        if self.transport.get_write_buffer_size():  # a close would wait until somebody reads it
            self.transport.abort()
        else:
            self.transport.close()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
