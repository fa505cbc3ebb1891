"""When a model server is left alone for a while: after repeated failures, or because it asked for it."""

from __future__ import annotations

import time
from collections.abc import Callable

from backstory.errors import ModelUnavailable

MAX_ASKED_SECONDS = 600.0
"""The longest rest a server can ask for; then it is tried again whatever it said."""


class CoolDown:
    """Counts failures in a row, by feature: what is too slow for one deadline may be fast enough for another.

    After ``failures`` of them the feature is refused for ``seconds``, and after that again at the next failure.
    ``now`` tells seconds that never step back.
    """

    def __init__(self, *, failures: int = 3, seconds: float = 30.0, now: Callable[[], float] = time.monotonic) -> None:
        self._failures = failures
        self._seconds = seconds
        self._now = now
        self._failed: dict[str, int] = {}
        self._until: dict[str, float] = {}
        self._asked_until = 0.0

    def check(self, feature: str) -> None:
        """Raises ModelUnavailable while the server is left alone."""
        asked = self._asked_until - self._now()
        if asked > 0:
            raise ModelUnavailable(f"the model server asked to be left alone for another {asked:.0f} s")
        left = self._until.get(feature, 0.0) - self._now()
        if left > 0:
            failed = self._failed[feature]
            raise ModelUnavailable(f"the model failed {failed} times in a row; it is tried again in {left:.0f} s")

    def failed(self, feature: str) -> None:
        """A call of this feature came to nothing by the server's doing."""
        self._failed[feature] = self._failed.get(feature, 0) + 1
        if self._failed[feature] >= self._failures:
            self._until[feature] = self._now() + self._seconds

    def succeeded(self, feature: str) -> None:
        """A call of this feature was answered."""
        self._failed.pop(feature, None)
        self._until.pop(feature, None)

    def asked(self, seconds: float) -> None:
        """The server asked everyone to wait; at most ``MAX_ASKED_SECONDS`` are granted."""
        self._asked_until = max(self._asked_until, self._now() + min(seconds, MAX_ASKED_SECONDS))
