"""What a request to the model shows of memory, apart from a new prompt: frozen blocks and the session's snapshot.

What it leaves out of its own history is in ``histories.py``.
"""

from __future__ import annotations

from typing import Any

from backstory.domain.ids import MessageId, SessionId
from backstory.entrypoints.opencode import protocol
from backstory.entrypoints.opencode.histories import HistoryHooks
from backstory.entrypoints.opencode.waits import COMPACTING_WAIT, SNAPSHOT_WAIT
from backstory.entrypoints.places import Place, Places


class RequestHooks:
    """Requests to the model in all folders."""

    def __init__(self, places: Places, histories: HistoryHooks) -> None:
        self._places = places
        self._histories = histories
        self._thawed: set[str] = set()  # sessions whose snapshot was renewed when their compaction began

    async def blocks(self, params: protocol.Blocks) -> dict[str, Any]:
        """Frozen texts, for a host that was restarted."""
        place = await self._places.place(params.directory)
        return {"blocks": await place.app.blocks.replay([MessageId(item) for item in params.messages])}

    async def snapshot(self, params: protocol.Snapshot) -> dict[str, Any]:
        """The constant text of a session."""
        with self._places.waiting(SNAPSHOT_WAIT):
            place = await self._places.place(params.directory)
            self._histories.note_system(place, SessionId(params.session), params.system)
            viewer = place.viewer(params.session)
            return {"text": await place.app.blocks.snapshot(viewer, session=SessionId(params.session))}

    async def compacting(self, params: protocol.Compacting) -> dict[str, Any]:
        """A compaction begins: the next request may have a new snapshot. ``summary`` spares the host its own."""
        with self._places.waiting(COMPACTING_WAIT):
            place = await self._places.place(params.directory)
            await place.app.blocks.renew_snapshot(SessionId(params.session))
            self._thawed.add(params.session)
            summary = await self._summary(place, params)
            return {"context": await self._histories.compacting(place, SessionId(params.session)), "summary": summary}

    async def _summary(self, place: Place, params: protocol.Compacting) -> str | None:
        sessions = place.app.long_sessions
        if sessions is None or params.messages is None:
            return None
        return await sessions.requests.compaction_summary(SessionId(params.session), protocol.listed(params.messages))

    async def compacted(self, place: Place, session: str) -> None:
        """Events come late: a snapshot that was renewed when the compaction began may have been shown since."""
        if session in self._thawed:
            self._thawed.discard(session)
        else:
            await place.app.blocks.renew_snapshot(SessionId(session))
