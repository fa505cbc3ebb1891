"""What the tests of capture share: what is kept of a prompt, and what that costs."""

from __future__ import annotations

import time
from collections.abc import Callable

from backstory.domain.capture import capture


def kept(text: str) -> list[str]:
    return [captured.content for captured in capture(text)]


def cpu_s(call: Callable[[], object]) -> float:
    """Best of three, in seconds of CPU time."""
    took = []
    for _ in range(3):
        start = time.process_time()
        call()
        took.append(time.process_time() - start)
    return min(took)
