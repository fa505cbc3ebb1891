"""Where the digests of sessions are kept: derived from evidence, and written by one process at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from backstory.domain.digest import DigestUpdate, SessionDigest
from backstory.domain.ids import SessionId


class DigestStore(Protocol):
    """Digests, one for each session at most. Sessions need not be known to the archive."""

    async def digest(self, session: SessionId) -> SessionDigest | None:
        """A session's state with all its pieces in the order in which they were added; None where it has none."""
        ...

    async def revision(self, session: SessionId) -> int:
        """How often a session's digest was written, 0 for never. Cheap: reads one row."""
        ...

    async def apply(self, update: DigestUpdate) -> bool:
        """Write a change durably and whole, if the session's digest is still at ``update.state.revision``; it is one
        further afterwards. False, and nothing is written, when somebody else was first.

        ``changed`` and ``dropped`` pieces that are not there are left alone. Raises InputError when an ``added`` piece
        has an id that the session has already.
        """
        ...

    async def due(self, *, now: datetime, limit: int) -> Sequence[SessionId]:
        """Sessions with ``due`` or ``forced`` work that nobody holds a live lease of and whose ``not_before`` has
        passed, the most recently updated first."""
        ...

    async def forget(self, session: SessionId) -> bool:
        """Remove a session's digest for good; False when there was none."""
        ...
