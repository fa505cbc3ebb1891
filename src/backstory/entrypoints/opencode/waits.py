"""How long each hook waits for a store that another process keeps busy, or that does not answer.

Each is within what the plugin waits for that hook.
"""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import timedelta
from typing import TypeVar

import anyio

from backstory.errors import StoreUnavailable

HELLO_WAIT = timedelta(seconds=3)
HISTORY_WAIT = timedelta(milliseconds=200)
SNAPSHOT_WAIT = timedelta(milliseconds=150)
COMPACTING_WAIT = timedelta(milliseconds=300)
TOOL_WAIT = timedelta(seconds=8)
EVENT_WAIT = timedelta(seconds=60)
WISH_WAIT = timedelta(seconds=3)  # in each try: a new one soon is better than a long wait for a server that is gone
WITHHELD_WAIT = timedelta(milliseconds=100)
HELLO_WITHIN = timedelta(seconds=4)
PROMPT_SHARE = 0.8  # of a prompt's deadline until it is answered without the store; the rest is for the way back
FIRST_PROMPT_WITHIN_S = 1.5  # of this process, which the plugin gives 2.5 s from its start to say its first word

T = TypeVar("T")


class TooLate(StoreUnavailable):
    """Nobody waits any longer; what was asked of the store may still be done."""


async def within(seconds: float, work: Awaitable[T]) -> T:
    """What ``work`` gives; TooLate, a StoreUnavailable, when it takes longer."""
    with anyio.move_on_after(seconds):
        return await work
    raise TooLate("the store has not answered in time")
