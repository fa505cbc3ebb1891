"""Where calls of models are booked. What may be spent is decided in ``domain/ledger.py``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from backstory.domain.ids import SessionId
from backstory.domain.ledger import Allowance, Caps, Entry, Spent


class Ledger(Protocol):
    """The calls of all processes that use a store. What is booked is on the disk as surely as a memory is.

    Raises StoreError. Nothing in it is text of a person or a model. It is part of a backup.
    """

    async def admit(self, entry: Entry, *, caps: Caps, since: datetime) -> Allowance | None:
        """Book a call that is about to be made, unless a cap is reached; None when it was booked.

        ``entry`` holds the most that the call can take. ``since`` is when the day began: what was booked at or after
        it counts for the day, also with a time that has not come yet. Looking and booking are one step: no other
        process can book between them. An id that is booked already is left as it is, and admitted.
        """
        ...

    async def book(self, entry: Entry) -> None:
        """Book a call, in the place of what was booked under its id."""
        ...

    async def withdraw(self, entry_id: str) -> None:
        """Take back a call that was not made after all. Nothing happens where it is not booked."""
        ...

    async def spent(
        self, *, since: datetime | None = None, feature: str | None = None, session: SessionId | None = None
    ) -> Spent:
        """The sum of what fits all that is given; ``since`` is inclusive."""
        ...

    async def entries(self, *, since: datetime) -> Sequence[Entry]:
        """The calls booked at or after a moment, the oldest first; at one moment in the order of ids."""
        ...
