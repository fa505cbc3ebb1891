"""One answer on standard output, in time: whatever hangs or fails, the agent that waits gets its answer and goes on."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType


class Deadline:
    """When time is up, ``neutral`` is written, ``late`` called, and the process ends with 0.

    A thread watches, for a call that waits in the system; a signal as well, for a long computation that lets no other
    thread run. ``answer`` ends the watch.
    """

    def __init__(
        self, *, within_s: float, neutral: bytes, late: Callable[[], None], stdout: int = 1, stderr: int = 2
    ) -> None:
        self._began = time.monotonic()
        self._within_s = within_s
        self._neutral = neutral
        self._late_too = late
        self._stdout = stdout
        self._stderr = stderr
        self._answering = threading.Lock()
        self._is_answered = False
        self._woken = threading.Event()
        self._watch = threading.Thread(target=self._wait, daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        signal.signal(signal.SIGALRM, self._rung)
        signal.setitimer(signal.ITIMER_REAL, self._within_s)
        self._watch.start()

    def within(self, within_s: float) -> None:
        """Let it be another time, counted from the beginning."""
        self._within_s = within_s
        signal.setitimer(signal.ITIMER_REAL, max(self._left_s(), 0.001))
        self._woken.set()

    def answer(self, data: bytes) -> None:
        """Write the answer, once; a reader that has gone is no failure."""
        if self._answering.acquire(blocking=False):
            _write(self._stdout, data)
        self._is_answered = True
        self._woken.set()
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._watch.join()

    def _wait(self) -> None:
        while not self._is_answered:
            if self._left_s() <= 0:
                self._late()
            self._woken.wait(max(self._left_s(), 0.001))
            self._woken.clear()

    def _rung(self, number: int, frame: FrameType | None) -> None:
        self._late()

    def _left_s(self) -> float:
        return self._began + self._within_s - time.monotonic()

    def _late(self) -> None:
        if self._answering.acquire(blocking=False):
            _write(self._stdout, self._neutral)
            _write(self._stderr, f"backstory hook: no answer within {self._within_s * 1000:.0f} ms\n".encode())
            try:
                self._late_too()
            finally:
                os._exit(0)


def _write(stream: int, data: bytes) -> None:
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(stream, data) :]
