"""The machine's clock, and ids made from it. The form of an id is ``domain/ids.py``."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from backstory.domain.ids import make_ulid

_RANDOM_BYTES = 10
_RANDOM_LIMIT = 1 << (8 * _RANDOM_BYTES)
# Within one millisecond the random part grows by a random step, so that one id does not give away the next, and two
# processes forked in that millisecond part ways.
_STEP_BITS = 40


class SystemClock:
    """The wall clock of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class UlidSource:
    """ULIDs that never go backwards, drawn from the operating system's randomness.

    When the clock stands still or steps back, the newest millisecond seen is kept and the random part grows; should
    it run over, the millisecond moves on by one. ``now_ms`` gives milliseconds since 1970.
    """

    def __init__(self, now_ms: Callable[[], int] = _now_ms) -> None:
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._time_ms = -1
        self._random = 0

    def new_id(self) -> str:
        with self._lock:
            self._advance(self._now_ms())
            return make_ulid(time_ms=self._time_ms, randomness=self._random.to_bytes(_RANDOM_BYTES, "big"))

    def _advance(self, now_ms: int) -> None:
        if now_ms > self._time_ms:
            self._time_ms, self._random = now_ms, secrets.randbits(8 * _RANDOM_BYTES)
            return
        self._random += 1 + secrets.randbits(_STEP_BITS)
        if self._random >= _RANDOM_LIMIT:
            self._time_ms, self._random = self._time_ms + 1, secrets.randbits(8 * _RANDOM_BYTES)
