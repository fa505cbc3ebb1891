"""Keepsakes in a dictionary."""

from __future__ import annotations

from collections.abc import Sequence

from backstory.domain.interchange import Keepsake

KeepsakeKey = tuple[str, str, str]
"""Format, store and key."""


class InMemoryKeepsakes:
    """The KeepsakeStore in a dict, which others must reach too: what is pruned or erased goes from it."""

    def __init__(self, rows: dict[KeepsakeKey, Keepsake]) -> None:
        self._rows = rows

    async def put(self, keepsakes: Sequence[Keepsake]) -> int:
        new = {(one.format, one.store, one.key): one for one in keepsakes}
        changed = sum(self._rows.get(key) != one for key, one in new.items())
        self._rows.update(new)
        return changed

    async def kept(self, format_name: str) -> Sequence[Keepsake]:
        return [one for key, one in sorted(self._rows.items()) if one.format == format_name]

    async def forget(self, format_name: str, *, store: str | None = None) -> int:
        gone = [key for key in self._rows if key[0] == format_name and store in (None, key[1])]
        for key in gone:
            del self._rows[key]
        return len(gone)
