"""One connection: uvicorn's own, which besides waits only so long for its client.

Whoever sends nothing, a header a minute, or the rest of a request that is answered already, and whoever reads nothing
of an answer, would else keep one of the few connections for good, even without a token. Strangers, who have not shown
the token yet, have a part of the connections: whoever fills it pushes out the oldest of them, and nobody else.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from backstory.entrypoints.http.guard import WELCOME
from backstory.entrypoints.http.handshakes import Door

MAX_STRANGERS = 64
"""Connections at once on which no token was shown."""
ACCEPTED_AT_ONCE = 16
"""Connections taken before data is read again: several rounds have to pass until a new stranger is the oldest one."""
HEADERS_WITHIN_S = 15.0
"""From the last answer, or the beginning, to the headers of the next request."""
STRANGERS_HEADERS_WITHIN_S = 5.0
"""The same, where no token was shown yet."""
TAKEN_WITHIN_S = 30.0
"""How long a client may leave more of an answer unread than the transport cares to keep (64 KiB)."""


class PunctualProtocol(H11Protocol):
    """Closes a connection on which the next request does not come in time, or an answer is not taken."""

    _is_known = False
    _since = 0.0
    _overdue: asyncio.TimerHandle | None = None
    _untaken: asyncio.TimerHandle | None = None

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],  # Any: as uvicorn has it
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        door: Door | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, WELCOME: self._welcome}, _loop)
        self._door = door

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        self._since = self.loop.time()
        if self._door is not None:
            self._door.came_in(transport.get_extra_info("socket").fileno())
        self._make_room()
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
            within = HEADERS_WITHIN_S if self._is_known else STRANGERS_HEADERS_WITHIN_S
            self._overdue = self.loop.call_later(within, self._give_up)

    def _welcome(self) -> None:
        self._is_known = True

    def _make_room(self) -> None:
        strangers = [each for each in self.connections if isinstance(each, PunctualProtocol) and not each._is_known]
        if len(strangers) >= MAX_STRANGERS:
            oldest = min(strangers, key=lambda each: each._since)
            self.connections.discard(oldest)  # it is counted until its loss is told, which is later
            oldest.transport.abort()

    def _give_up(self) -> None:
        if self.transport.get_write_buffer_size():  # a close would wait until somebody reads it
            self.transport.abort()
        else:
            self.transport.close()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
