"""One server of a Patroni cluster with its agent, and the ways in which it may go down."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from bench.patroni_programs import Programs

HOST = "127.0.0.1"


class Fall(Enum):
    """How a node goes down. In each case neither server nor agent can say goodbye, or start the other again."""

    KILL = "kill"
    """Both get SIGKILL; the machine stays, and refuses connections."""

    SILENCE = "silence"
    """The same, and who connects gets no answer, as from a machine without power. Old connections are cut."""

    FREEZE = "freeze"
    """Both, and all their processes, stand still: connections stay open and nothing answers, as with a dead disk."""


@dataclass(slots=True)
class Node:
    """A server, its agent, and where both are reached."""

    name: str
    folder: Path
    port: int
    rest_port: int
    is_up: bool = False
    _agent: subprocess.Popen[bytes] | None = None
    _silence: list[socket.socket] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self, programs: Programs) -> None:
        """Start the agent, which starts the server; what is left of former ones goes first."""
        self.kill()
        # a machine whose first process reaps no orphans shows the dead server as alive, and its id would be believed
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        command = [programs.patroni, self.folder / "patroni.json"]
        self._agent = programs.start(command, home=self.folder, log=self.folder / "patroni.log")
        self.is_up = True

    def bring_down(self, fall: Fall) -> None:
        """Let it fall, until it is started again."""
        if fall is Fall.FREEZE:
            self.is_up = False
            _send(signal.SIGSTOP, self._processes())
            return
        self.kill()
        if fall is Fall.SILENCE:
            self._silence = _silent(self.port)

    def kill(self) -> None:
        """Kill the agent and the server with all its processes, whatever state they are in. Calling twice is fine."""
        self.is_up = False
        if self._agent is not None:
            _send(signal.SIGKILL, self._processes())
            self._agent.wait()
            self._agent = None
        for one in self._silence:
            one.close()
        self._silence.clear()

    def _processes(self) -> list[int]:
        """The agent first, then the server, then the server's children."""
        assert self._agent is not None
        found = [self._agent.pid]
        with contextlib.suppress(OSError, ValueError, IndexError):  # no server has been started yet
            server = int((self.data / "postmaster.pid").read_text().splitlines()[0])
            children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
            found += [server, *map(int, children)]
        return found


def _send(what: signal.Signals, processes: Iterable[int]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):  # it ended with the one before it
            os.kill(process, what)


def _silent(port: int) -> list[socket.socket]:
    """Sockets that make the system leave requests for a connection unanswered: the queue of a listener is full."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((HOST, port))
    listener.listen(0)
    fillers = []
    for _ in range(3):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex((HOST, port))
        fillers.append(filler)
    return [listener, *fillers]
