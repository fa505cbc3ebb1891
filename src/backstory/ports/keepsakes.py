"""Where keepsakes of other products' stores are kept (``domain/interchange.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from backstory.domain.interchange import Keepsake


class KeepsakeStore(Protocol):
    """Keepsakes by format, store and key. One with a ``session`` goes when that session's evidence is pruned or erased;
    all of them are searched when a text is erased."""

    async def put(self, keepsakes: Sequence[Keepsake]) -> int:
        """Keep them, each in place of the one with its format, store and key, all or none. Returns how many are new or
        differ from what was kept."""
        ...

    async def kept(self, format_name: str) -> Sequence[Keepsake]:
        """All of a format, by store and then by key."""
        ...

    async def forget(self, format_name: str, *, store: str | None = None) -> int:
        """Remove a format's, or one store's, for good. Returns how many there were."""
        ...
