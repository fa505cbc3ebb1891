"""What services need from the machine itself: the time, new ids, the size of a text in tokens."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The present moment, aware, in UTC. May stand still or step back when the machine's clock does."""
        ...


class IdSource(Protocol):
    """Makes identifiers nobody else has."""

    def new_id(self) -> str:
        """A fresh ULID in canonical upper-case form.

        Ids of one source are all different and sort as text in the order they were made, also within a millisecond
        and when the clock steps back. Safe to call from several threads.
        """
        ...


class TokenCounter(Protocol):
    """Says how much of a model's window a text takes."""

    def count(self, text: str) -> int:
        """The number of tokens of ``text``: 0 for the empty text, at least 1 for any other.

        Special-token marks such as ``<|endoftext|>`` count as the plain text they are. Any text is accepted, lone
        surrogates included. At most 2 s for 1 MB.
        """
        ...


class Aside(Protocol):
    """Runs work of many small steps away from an event loop."""

    async def __call__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:  # Any: nothing is sent in or yielded
        """What the coroutine that ``work`` makes returns or raises.

        It may wait for blocking adapters only, not for timers or the network. A cancelled caller does not wait for its
        end, so nothing may be written in it.
        """
        ...
