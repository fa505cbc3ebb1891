"""The door of a server with a certificate: how many may stand in it, whose TLS handshake is not done yet.

Until then a connection is neither uvicorn's nor counted by it, and costs a file and some 300 KiB.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Any

MOST_WAITING = 128
"""Far more than come in the time that a handshake takes, and far fewer than the files that a process may open."""


class Door(socket.socket):
    """A listening socket on which whoever is taken while ``MOST_WAITING`` are in their handshake puts out the oldest of
    them. It takes over the socket that it is made of."""

    def __init__(self, opened: socket.socket) -> None:
        super().__init__(opened.family, opened.type, opened.proto, fileno=opened.detach())
        self._waiting: dict[int, socket.socket] = {}

    def accept(self) -> tuple[socket.socket, Any]:  # Any: an address, as its family has it
        """As every socket's."""
        taken, address = super().accept()
        self.came_in(taken.fileno())  # a number is given again once its connection is closed
        self._waiting[taken.fileno()] = taken
        if len(self._waiting) > MOST_WAITING:
            oldest = self._waiting.pop(next(iter(self._waiting)))
            with contextlib.suppress(OSError):  # it is closed already
                oldest.shutdown(socket.SHUT_RDWR)
        return taken, address

    def came_in(self, number: int) -> None:
        """The handshake of the connection with this file number is done."""
        self._waiting.pop(number, None)
