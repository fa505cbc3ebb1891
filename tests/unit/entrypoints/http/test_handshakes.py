"""Who may stand in the door of a server with a certificate."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from backstory.entrypoints.http import handshakes
from backstory.entrypoints.http.handshakes import Door

WITHIN_S = 5.0


def test_who_does_not_get_on_with_the_handshake_makes_room_and_who_is_in_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "MOST_WAITING", 2)
    with ExitStack() as held:
        door = held.enter_context(Door(socket.create_server(("127.0.0.1", 0))))
        door.settimeout(WITHIN_S)
        clients, taken = [], []
        for number in range(5):
            clients.append(held.enter_context(socket.create_connection(door.getsockname(), timeout=WITHIN_S)))
            taken.append(held.enter_context(door.accept()[0]))
            if number == 0:
                door.came_in(taken[0].fileno())
        for out in (1, 2):
            assert clients[out].recv(1) == b""
        for there in (0, 3, 4):
            taken[there].sendall(b"x")
            assert clients[there].recv(1) == b"x"


def test_the_number_of_a_connection_that_was_closed_may_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "MOST_WAITING", 1)
    with Door(socket.create_server(("127.0.0.1", 0))) as door:
        door.settimeout(WITHIN_S)
        for _ in range(3):
            with socket.create_connection(door.getsockname(), timeout=WITHIN_S) as client, door.accept()[0] as taken:
                taken.sendall(b"x")
                assert client.recv(1) == b"x"


def test_a_door_takes_over_the_socket_that_it_is_made_of() -> None:
    opened = socket.create_server(("127.0.0.1", 0))
    address = opened.getsockname()
    with Door(opened) as door:
        assert (door.getsockname(), opened.fileno()) == (address, -1)
