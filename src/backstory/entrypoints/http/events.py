"""Changes of memories as server-sent events, for as many listeners as there may be; each sees what its viewer may see.

Whatever wrote a change, this process or another, the store's history tells it. Each listener reads for itself, so that
a slow one holds up nobody.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime

import anyio

from backstory.codecs.record import format_time
from backstory.domain.history import Action, Change
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.memory import Deleted, Memory, status_name
from backstory.entrypoints.http.folders import Desk
from backstory.entrypoints.http.problems import Problem
from backstory.errors import StoreError

log = logging.getLogger(__name__)

NAMES = {
    Action.ADD: "remembered",
    Action.UPDATE: "updated",
    Action.CONFIRM: "confirmed",
    Action.SUPERSEDE: "superseded",
    Action.FORGET: "forgotten",
    Action.PIN: "pinned",
    Action.UNPIN: "unpinned",
    Action.RETAG: "retagged",
    Action.IMPORT: "imported",
    Action.DREAM: "dreamed",
    Action.CONFLICT: "disputed",
    Action.RESOLVE: "resolved",
    Action.CONSOLIDATE: "consolidated",
    Action.FEEDBACK: "rated",
    Action.PRUNE: "pruned",
    Action.TRUST: "trusted",
    Action.MASK: "masked",
    Action.UNDO: "undone",
}
"""How each action is told."""
MISSED = "missed"
"""Told where changes were lost, because there were too many or too old ones: read what you need anew."""
MAX_LISTENERS = 32
LOOK_EVERY_S = 1.0
HEARTBEAT_S = 15.0
WINDOW = 200
"""Changes looked at; of more between two looks, the older ones are missed."""
RESUME_WINDOW = 1_000
MAX_MEMORIES = 50
"""Of one change, in one event."""

_Key = tuple[datetime, ChangeId]


class Changes:
    """Lets listeners in, and wakes them when this process has changed something."""

    def __init__(self) -> None:
        self._listeners = 0
        self._woken = anyio.Event()
        self._turn = 0  # grows with each wake, so that a listener that is reading just then misses none
        self._is_over = False

    def wake(self) -> None:
        """Something may have changed."""
        self._turn += 1
        self._woken.set()
        self._woken = anyio.Event()

    def close(self) -> None:
        """Let every stream end."""
        self._is_over = True
        self.wake()

    async def stream(self, desk: Desk, *, after: str | None) -> AsyncGenerator[bytes, None]:
        """The events for one listener, from now on, or after the change that it has seen last. Raises Problem."""
        if self._listeners >= MAX_LISTENERS or self._is_over:
            told = f"{MAX_LISTENERS} listeners are connected already" if not self._is_over else "The server ends."
            raise Problem(kind="unavailable", detail=told, limit=f"{MAX_LISTENERS} listeners",
                          headers=[(b"retry-after", b"10")])  # fmt: skip
        self._listeners += 1
        try:
            view, turn = _View(desk), self._turn
            missed = await view.begin(after)
            yield b": connected\nretry: 2000\n\n"
            for event in missed:
                yield event
            beat = anyio.current_time() + HEARTBEAT_S
            while not self._is_over:
                if turn == self._turn:
                    with anyio.move_on_after(LOOK_EVERY_S):
                        await self._woken.wait()
                turn = self._turn
                for event in await view.news():
                    beat = anyio.current_time() + HEARTBEAT_S
                    yield event
                if anyio.current_time() >= beat:
                    beat = anyio.current_time() + HEARTBEAT_S
                    yield b": still here\n\n"
        finally:
            self._listeners -= 1


class _View:
    """What one listener has seen. Changes are told once, however late another machine's arrive among the newest."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._seen: set[ChangeId] = set()
        self._floor: _Key | None = None  # what is older was outside of the window, so it is not news

    async def begin(self, after: str | None) -> list[bytes]:
        newest = await self._read(WINDOW if after is None else RESUME_WINDOW)
        self._keep(newest[:WINDOW])
        if after is None:
            return []
        ids = [change.id for change in newest]
        if after not in ids:
            return [_missed()]
        return await self._told(newest[: ids.index(ChangeId(after))])

    async def news(self) -> list[bytes]:
        try:
            newest = await self._read(WINDOW)
        except StoreError as error:
            log.warning("event=changes_not_read reason=%s", error)
            return []
        fresh = [change for change in newest if change.id not in self._seen and self._is_above_floor(change)]
        has_gap = len(fresh) == WINDOW and bool(self._seen)
        self._keep(newest)
        try:
            told = await self._told(fresh)
        except StoreError as error:
            log.warning("event=changes_not_read reason=%s", error)
            return [_missed()]
        return [*([_missed()] if has_gap else []), *told]

    async def _told(self, newest_first: Sequence[Change]) -> list[bytes]:
        """The events, the oldest first. A text is told as it is now: what was forgotten or masked since is not told."""
        ids = {edit.after.id for change in newest_first for edit in change.edits[:MAX_MEMORIES]}
        present = await self._desk.app.backend.memories.get(list(ids)) if ids else {}
        return [_event(change, present) for change in reversed(newest_first)]

    async def _read(self, limit: int) -> list[Change]:
        return await self._desk.app.backend.memories.history(viewer=self._desk.viewer, limit=limit)

    def _keep(self, newest: Sequence[Change]) -> None:
        self._seen = {change.id for change in newest}
        self._floor = _key(newest[-1]) if len(newest) == WINDOW else self._floor

    def _is_above_floor(self, change: Change) -> bool:
        return self._floor is None or _key(change) > self._floor


def _key(change: Change) -> _Key:
    return change.at, change.id


def _missed() -> bytes:
    return f"event: {MISSED}\ndata: {{}}\n\n".encode()


def _event(change: Change, present: Mapping[MemoryId, Memory]) -> bytes:
    """One event; its id is the change's. JSON has no line ends, so no text can begin another event."""
    told = {
        "change": change.id,
        "at": format_time(change.at),
        "event": NAMES[change.action],
        "author": change.author.value,
        "memories": [_memory(edit.after, present.get(edit.after.id)) for edit in change.edits[:MAX_MEMORIES]],
        "more": max(0, len(change.edits) - MAX_MEMORIES),
    }
    return f"id: {change.id}\nevent: {NAMES[change.action]}\ndata: {json.dumps(told)}\n\n".encode()


def _memory(memory: Memory, present: Memory | None) -> dict[str, object]:
    """A memory as the change left it, with the text that it has now; that of a forgotten one is told to nobody."""
    text = None if present is None or isinstance(present.status, Deleted) else present.content
    return {
        "id": memory.id,
        "n": memory.n,
        "state": status_name(memory.status),
        "kind": memory.kind.value,
        "visibility": memory.visibility.value,
        "content": text,
    }
