"""The ledger in a dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from backstory.domain.ids import SessionId
from backstory.domain.ledger import Allowance, Caps, Entry, Spent, Standing, may_call


class InMemoryLedger:
    """The Ledger in a dict. Nothing in it waits, so that no other task comes between looking and booking."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    async def admit(self, entry: Entry, *, caps: Caps, since: datetime) -> Allowance | None:
        if entry.id in self._entries:
            return None
        standing = Standing(
            day=self._sum(since, None, None),
            feature=self._sum(since, entry.feature, None),
            session=None if entry.session is None else self._sum(None, None, entry.session),
        )
        reached = may_call(entry.feature, caps, standing)
        if reached is None:
            self._entries[entry.id] = entry
        return reached

    async def book(self, entry: Entry) -> None:
        self._entries[entry.id] = entry

    async def withdraw(self, entry_id: str) -> None:
        self._entries.pop(entry_id, None)

    async def spent(
        self, *, since: datetime | None = None, feature: str | None = None, session: SessionId | None = None
    ) -> Spent:
        return self._sum(since, feature, session)

    async def entries(self, *, since: datetime) -> Sequence[Entry]:
        found = [entry for entry in self._entries.values() if entry.at >= since]
        return sorted(found, key=lambda entry: (entry.at, entry.id))

    def _sum(self, since: datetime | None, feature: str | None, session: SessionId | None) -> Spent:
        fitting = [
            entry
            for entry in self._entries.values()
            if (since is None or entry.at >= since)
            and feature in (None, entry.feature)
            and session in (None, entry.session)
        ]
        return Spent(
            tokens=sum(entry.input_tokens + entry.output_tokens for entry in fitting),
            cost=sum(entry.cost or 0 for entry in fitting),
        )
