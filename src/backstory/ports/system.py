"""What services need from the machine itself: the time, new ids, the size of a text in tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


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
