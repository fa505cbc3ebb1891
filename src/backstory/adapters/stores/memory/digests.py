"""Digests of sessions in a dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from backstory.adapters.stores.digest_rules import check_added
from backstory.domain.digest import DigestState, DigestUpdate, Piece, SessionDigest
from backstory.domain.ids import SessionId


class InMemoryDigests:
    """The DigestStore in a dict. Nothing in it waits, so that no other task comes between looking and writing."""

    def __init__(self, digests: dict[SessionId, SessionDigest] | None = None) -> None:
        """``digests`` is where they are kept, if others must reach them too."""
        self._digests = {} if digests is None else digests

    async def digest(self, session: SessionId) -> SessionDigest | None:
        return self._digests.get(session)

    async def revision(self, session: SessionId) -> int:
        known = self._digests.get(session)
        return 0 if known is None else known.state.revision

    async def apply(self, update: DigestUpdate) -> bool:
        session = update.state.session
        if await self.revision(session) != update.state.revision:
            return False
        known = self._digests.get(session)
        pieces = () if known is None else known.pieces
        check_added(update, {piece.id for piece in pieces})
        state = replace(update.state, revision=update.state.revision + 1)
        self._digests[session] = SessionDigest(state=state, pieces=_after(pieces, update))
        return True

    async def due(self, *, now: datetime, limit: int) -> Sequence[SessionId]:
        waiting = [digest.state for digest in self._digests.values() if _has_work(digest.state, now)]
        waiting.sort(key=lambda state: state.session)
        waiting.sort(key=lambda state: state.updated_at, reverse=True)
        return [state.session for state in waiting[:limit]]

    async def forget(self, session: SessionId) -> bool:
        return self._digests.pop(session, None) is not None


def _after(pieces: Sequence[Piece], update: DigestUpdate) -> tuple[Piece, ...]:
    changed = {piece.id: piece for piece in update.changed if piece.session == update.state.session}
    dropped = set(update.dropped)
    return tuple(
        replace(piece, parent=changed[piece.id].parent, active=changed[piece.id].active)
        if piece.id in changed
        else piece
        for piece in (*pieces, *update.added)
        if piece.id not in dropped
    )


def _has_work(state: DigestState, now: datetime) -> bool:
    return (
        (state.due or state.forced)
        and (state.lease is None or state.lease.expires_at <= now)
        and (state.not_before is None or state.not_before <= now)
    )
