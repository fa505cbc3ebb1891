"""The standard streams of a process whose output is a protocol."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import AsyncIterator
from typing import BinaryIO

import anyio.to_thread

log = logging.getLogger(__name__)


def take_streams() -> tuple[BinaryIO, BinaryIO]:
    """The protocol's own copies of standard input and output.

    In their place stand an empty input and standard error, so that a stray print, be it a C library's, breaks nothing.
    """
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return source, sink


async def lines(source: BinaryIO, *, max_bytes: int) -> AsyncIterator[bytes]:
    """The lines of an input that are not blank; one that is longer than ``max_bytes`` is left out as a whole."""
    whole = True
    while line := await anyio.to_thread.run_sync(source.readline, max_bytes, abandon_on_cancel=True):
        begins, whole = whole, line.endswith(b"\n")
        if begins and not whole and len(line) == max_bytes:
            log.warning("event=line_skipped reason='longer than %d bytes'", max_bytes)
        elif begins and line.strip():
            yield line
