"""A line between a store and its Postgres that a test can cut, and that can fall silent in either direction."""

from __future__ import annotations

import contextlib
import socket
import threading
import time


class Proxy:
    """Stands between a store and the server, and cuts the line or lets it fall silent when it is told to."""

    def __init__(self, socket_folder: str) -> None:
        self._server = f"{socket_folder}/.s.PGSQL.5432"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.accepted = 0
        self._cut: bytes | None = None
        self._silent_after: list[bytes] = []
        self._forward = False
        self._silent = False
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_at(self, statement: bytes, *, forward: bool = False) -> None:
        """Cut the line once, at this statement; ``forward`` says whether the server still gets it."""
        self._cut, self._forward = statement, forward

    @property
    def has_cut(self) -> bool:
        return self._cut is None

    def fall_silent(self, *after: bytes, forward: bool = False) -> None:
        """Swallow all answers from now on, or from when these statements have come one after another, on lines old and
        new; ``forward`` says whether the server still gets what is sent."""
        self._silent_after, self._silent, self._forward = list(after), not after, forward

    @property
    def is_silent(self) -> bool:
        return self._silent

    def answer_again(self) -> None:
        """Lines that have swallowed something stay useless; new ones are as good as any."""
        self._silent_after, self._silent = [], False

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(self._server)
            threading.Thread(target=self._upward, args=(client, upstream), daemon=True).start()
            threading.Thread(target=self._downward, args=(client, upstream), daemon=True).start()

    def _upward(self, client: socket.socket, upstream: socket.socket) -> None:
        while data := _receive(client):
            if self._cut is not None and self._cut in data:
                self._cut = None
                client.shutdown(socket.SHUT_RDWR)
                if self._forward:
                    upstream.sendall(data)
                    time.sleep(0.2)
                break
            if self._silent_after and self._silent_after[0] in data:
                self._silent_after.pop(0)
                self._silent = not self._silent_after
            if not self._silent or self._forward:
                with contextlib.suppress(OSError):  # it has ended this session
                    upstream.sendall(data)
        with contextlib.suppress(OSError):
            upstream.shutdown(socket.SHUT_RDWR)

    def _downward(self, client: socket.socket, upstream: socket.socket) -> None:
        while data := _receive(upstream):
            if self._silent:
                continue
            try:
                client.sendall(data)
            except OSError:
                return
        if not self._silent:
            client.close()


def _receive(end: socket.socket) -> bytes:
    try:
        return end.recv(65536)
    except OSError:
        return b""
