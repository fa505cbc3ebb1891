"""Let derived facts go that have faded, as one change that can be undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.lifecycle import forget
from backstory.domain.memory import Deleted, Memory, Superseded
from backstory.domain.pruning import PruningPolicy, Removal, to_prune
from backstory.domain.scope import Audience, Viewer, may_change
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.errors import Conflict
from backstory.ports.store import MemoryStore, Order
from backstory.ports.system import Clock, IdSource

_ATTEMPTS = 3
_PAGE = 2000
_DECISIONS = frozenset({Action.UPDATE, Action.CONFIRM, Action.RESOLVE, Action.TRUST, Action.UNDO})
_CHANGES = 200  # of one memory; a person's word among more than that is older than anybody's patience


class Pruning:
    """Lists and removes the derived facts of a project that have faded, and global ones."""

    def __init__(self, store: MemoryStore, *, clock: Clock, ids: IdSource, policy: PruningPolicy) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._policy = policy

    async def plan(self, viewer: Viewer) -> list[Removal]:
        """What ``prune`` would remove now, least worth first.

        What a person reworded, said again, decided for or brought back (from an earlier pruning, say) stays, and what
        the viewer may not change. Cost: reads every memory in sight, and the changes to those that would go.
        """
        person = replace(viewer, audience=Audience.PERSON, all_projects=False)
        memories = [memory for memory in await self._in_sight(person) if may_change(memory, person)]
        now = self._clock.now()
        decided = _Decisions(self._store)
        kept = {memory.id for memory in memories if not may_change(memory, viewer)}
        while True:
            removals = to_prune(memories, now=now, policy=self._policy, kept=kept)
            held = {removal.memory.id for removal in removals if await decided.keep(removal.memory)}
            if not held:
                return removals
            kept |= held

    async def prune(self, viewer: Viewer, *, author: Author) -> Change | None:
        """Remove what ``plan`` lists: it is forgotten, each with its reason. None when there is nothing to remove."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._prune(viewer, author)
            except Conflict:
                continue  # somebody changed one of them since; it may be worth more now
        return await self._prune(viewer, author)

    async def _prune(self, viewer: Viewer, author: Author) -> Change | None:
        removals = await self.plan(viewer)
        if not removals:
            return None
        now = self._clock.now()
        return await self._store.commit(
            Change(
                id=ChangeId(self._ids.new_id()),
                at=now,
                author=author,
                action=Action.PRUNE,
                edits=tuple(Edit(before=gone.memory, after=_pruned(gone, now)) for gone in removals),
                reason=f"{len(removals)} derived {'fact' if len(removals) == 1 else 'facts'} faded",
                session=viewer.session,
            )
        )

    async def _in_sight(self, viewer: Viewer) -> Sequence[Memory]:
        selection = Selection(viewer=viewer, now=self._clock.now(), states=EVERY_STATE - {"deleted"})
        memories: list[Memory] = []
        while True:
            page = await self._store.select(selection, limit=_PAGE, offset=len(memories), order=Order.OLDEST)
            memories += page
            if len(page) < _PAGE:
                return memories


class _Decisions:
    """Which memories a person reworded, said again, decided for or brought back.

    A change is read once for all the memories in it, however many they are; one that was only added is not asked for.
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._kept: set[MemoryId] = set()
        self._writes: Counter[MemoryId] = Counter()
        self._read: set[ChangeId] = set()

    async def keep(self, memory: Memory) -> bool:
        """Whether a memory is to be kept for that."""
        writes = memory.revision - 1  # without the one that added it
        if self._writes[memory.id] < writes:
            for change in await self._store.history(memory=memory.id, limit=min(writes, _CHANGES)):
                self._learn(change)
        return memory.id in self._kept

    def _learn(self, change: Change) -> None:
        if change.id in self._read:
            return
        self._read.add(change.id)
        decides = change.author is Author.USER and change.action in _DECISIONS
        for edit in change.edits:
            self._writes[edit.after.id] += edit.before is not None
            if decides and not isinstance(edit.after.status, Superseded | Deleted):
                self._kept.add(edit.after.id)


def _pruned(removal: Removal, now: datetime) -> Memory:
    return forget(removal.memory, now=now, reason=f"pruned: {removal.reason}")
