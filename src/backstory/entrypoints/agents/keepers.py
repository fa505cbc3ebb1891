"""How many processes may keep what was said at a time: a store that hangs must not pile them up, one for each hook."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

MOST = 8
FILE = "hook.lock"


@contextlib.contextmanager
def keeper(data_dir: Path) -> Iterator[bool]:
    """Whether this process may be one of them, as long as it is in here; it never waits. The system takes the place of
    a process that dies back. Where there can be no such file there is no limit."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(data_dir / FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError:
        yield True
        return
    try:
        yield any(_is_free(handle, place) for place in range(MOST))
    finally:
        os.close(handle)


def _is_free(handle: int, place: int) -> bool:
    """Take one byte of the file, whatever is in it."""
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except OSError:
        return False
    return True
