"""Memories and history in dictionaries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from backstory.adapters.stores.memory.conversation import InMemoryConversations
from backstory.domain.history import (
    WITHHELD,
    Change,
    Edit,
    check_not_empty,
    doubts_settled,
    in_sight,
    sources_lost,
    touched,
    with_counted,
    withheld,
)
from backstory.domain.ids import ChangeId, MemoryId, ProjectId, SessionId
from backstory.domain.memory import Memory, is_withheld, searchable_text
from backstory.domain.outline import Outline, outline_of
from backstory.domain.scope import Viewer
from backstory.domain.selection import Selection, selects
from backstory.errors import Conflict
from backstory.ports.store import Capabilities, Order, Use

if TYPE_CHECKING:
    from backstory.domain.doubt import Doubt
    from backstory.domain.dream_state import Summary


class InMemoryMemories:
    """The MemoryStore in a dict. ``rows`` is for the indexes beside it, and so is ``text_since``: the revision with
    which a memory's searchable text last changed. ``summaries`` and ``doubts`` are those of the stores beside it: a
    commit lets go of some."""

    def __init__(self, conversations: InMemoryConversations) -> None:
        self._conversations = conversations
        self.rows: dict[MemoryId, Memory] = {}
        self.text_since: dict[MemoryId, int] = {}
        self.summaries: dict[ProjectId | None, Summary] = {}
        self.doubts: dict[MemoryId, Doubt] = {}
        self._changes: list[Change] = []
        self._sessions: defaultdict[MemoryId, set[SessionId]] = defaultdict(set)
        self._last_number = 0
        self.on_commit: Callable[[Change], None] = lambda change: None
        conversations.is_withheld = lambda memory: memory in self.rows and is_withheld(self.rows[memory])

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(name="memory", location="this process", durable=False, shared_between_processes=False)

    async def get(self, ids: Sequence[MemoryId]) -> dict[MemoryId, Memory]:
        return {memory_id: self.rows[memory_id] for memory_id in ids if memory_id in self.rows}

    async def by_number(self, n: int) -> Memory | None:
        return next((memory for memory in self.rows.values() if memory.n == n), None)

    async def select(
        self, selection: Selection, *, limit: int, offset: int = 0, order: Order = Order.NEWEST
    ) -> list[Memory]:
        meant = [memory for memory in self.rows.values() if selects(selection, memory)]
        meant.sort(key=lambda memory: (memory.times.learned, memory.n), reverse=order is Order.NEWEST)
        return meant[offset : offset + limit]

    async def outlines(self, selection: Selection) -> list[Outline]:
        meant = [outline_of(memory) for memory in self.rows.values() if selects(selection, memory)]
        return sorted(meant, key=lambda outline: (outline.updated, outline.n))

    async def count(self, selection: Selection) -> int:
        return sum(selects(selection, memory) for memory in self.rows.values())

    async def commit(self, change: Change, *, absent: Selection | None = None) -> Change:
        check_not_empty(change)
        if change.key is not None:
            for earlier in self._changes:
                if earlier.key == change.key:
                    return earlier
        if absent is not None and any(selects(absent, memory) for memory in self.rows.values()):
            raise Conflict("somebody else has stored such a memory in the meantime")
        if any(earlier.id == change.id for earlier in self._changes):
            raise Conflict(f"the change {change.id} was committed already")
        if len(set(touched(change))) < len(change.edits):
            raise Conflict(f"the change {change.id} writes one memory twice")
        for edit in change.edits:
            self._check(edit)
        committed = replace(change, edits=tuple(self._write(edit) for edit in change.edits))
        self._changes.append(committed)
        self._conversations.withdraw_showing(withheld(change), because=WITHHELD)
        self._let_go(change)
        self.on_commit(committed)
        return committed

    async def history(
        self, *, memory: MemoryId | None = None, viewer: Viewer | None = None, limit: int = 50
    ) -> list[Change]:
        meant = [
            change
            for change in self._changes
            if (memory is None or memory in touched(change)) and (viewer is None or in_sight(change, self.rows, viewer))
        ]
        return sorted(meant, key=lambda change: (change.at, change.id), reverse=True)[:limit]

    def changes_kept(self) -> list[Change]:
        """The history, oldest first; for the eraser beside this."""
        return self._changes

    async def change(self, change_id: ChangeId) -> Change | None:
        return next((change for change in self._changes if change.id == change_id), None)

    async def record_use(self, use: Use) -> None:
        for memory_id in use.memories:
            if memory_id in self.rows:
                self._count(memory_id, use)

    async def tag_counts(self, selection: Selection, *, limit: int) -> list[tuple[str, int]]:
        counts = Counter(tag for memory in self.rows.values() if selects(selection, memory) for tag in memory.tags)
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit]

    async def close(self) -> None:
        """Nothing to release; what is in it stays until the process ends."""

    def _check(self, edit: Edit) -> None:
        stored = self.rows.get(edit.after.id)
        if edit.before is None and stored is not None:
            raise Conflict(f"a memory with the id {edit.after.id} exists already")
        if edit.before is not None and (stored is None or stored.revision != edit.before.revision):
            raise Conflict(f"memory #{edit.before.n} was changed by somebody else in the meantime; read it again")

    def _write(self, edit: Edit) -> Edit:
        if edit.before is None:
            self._last_number += 1
            after = replace(edit.after, n=self._last_number, revision=1)
        else:
            stored = self.rows[edit.after.id]
            after = replace(with_counted(edit.after, of=stored), n=stored.n, revision=stored.revision + 1)
        if edit.before is None or searchable_text(self.rows[after.id]) != searchable_text(after):
            self.text_since[after.id] = after.revision
        self.rows[after.id] = after
        return replace(edit, after=after)

    def _let_go(self, change: Change) -> None:
        lost = set(sources_lost(change))
        for project, summary in list(self.summaries.items()):
            if not lost.isdisjoint(summary.sources):
                del self.summaries[project]
        for memory_id in doubts_settled(change):
            self.doubts.pop(memory_id, None)

    def _count(self, memory_id: MemoryId, use: Use) -> None:
        memory = self.rows[memory_id]
        counters, times = memory.counters, memory.times
        if use.surfaced:
            counters = replace(counters, surfaced=counters.surfaced + 1)
            times = replace(times, surfaced=use.at)
        else:
            counters = replace(counters, recalled=counters.recalled + 1)
            times = replace(times, used=use.at)
        if use.session is not None and use.session not in self._sessions[memory_id]:
            self._sessions[memory_id].add(use.session)
            counters = replace(counters, sessions=counters.sessions + 1)
        self.rows[memory_id] = replace(memory, counters=counters, times=times)
