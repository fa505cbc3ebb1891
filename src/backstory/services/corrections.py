"""What was corrected since, so that the old statement is not believed where it stands in the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from backstory.domain.evidence_passages import EvidencePassage, PassageNumber
from backstory.domain.history import Action, Change
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Deleted, Memory, Superseded
from backstory.domain.outdated import Correction, is_outdated
from backstory.domain.provenance import is_injectable, lowest
from backstory.domain.scope import Viewer, visible
from backstory.domain.selection import CURRENT, Selection
from backstory.domain.text import analyse_query
from backstory.ports.index import TextIndex
from backstory.ports.store import MemoryStore
from backstory.ports.system import Clock

MOST_SUPERSEDED = 2000
"""Superseded memories that passages are held against; where there are more, the newest."""
_CHAIN = 20
_WORDS = 12
_CANDIDATES = 8
_CHANGES = 10


class Corrections:
    """Finds passages that say what a superseded or reworded memory said."""

    def __init__(self, store: MemoryStore, text: TextIndex | None, *, clock: Clock) -> None:
        """``text`` finds the memories that were put into other words; without it only superseded ones are known."""
        self._store = store
        self._text = text
        self._clock = clock

    async def outdated(self, passages: Sequence[EvidencePassage], viewer: Viewer) -> Mapping[PassageNumber, Correction]:
        """The passages that say what was corrected, as far as the viewer may know. Cost: one selection, one search of
        the text index for each passage, and some µs for each of both: 0.5 s for 20 passages and 2,000 superseded."""
        if not passages:
            return {}
        found: dict[PassageNumber, Correction] = {}
        superseded = await self._superseded(viewer)
        former: dict[MemoryId, Sequence[Correction]] = {}
        for passage in passages:
            for correction in [*superseded, *await self._reworded(passage, viewer, former)]:
                if is_outdated(passage, correction) and await self._is_one(correction):
                    found[passage.number] = correction
                    break
        return found

    async def _is_one(self, correction: Correction) -> bool:
        """Whether anything was corrected, and by somebody's decision."""
        return correction.is_one and (correction.surely or await self._was_decided(correction.was))

    async def _superseded(self, viewer: Viewer) -> list[Correction]:
        selection = Selection(viewer=viewer, now=self._clock.now(), states=frozenset({"superseded"}))
        memories = await self._store.select(selection, limit=MOST_SUPERSEDED)
        heirs = await self._heirs(memories)
        found = []
        for memory in memories:
            assert isinstance(memory.status, Superseded)
            now = heirs.get(memory.status.by)
            if not is_injectable(lowest(each.origin for each in (memory, now) if each is not None)):
                continue  # a file that says something was replaced corrects nothing that was said here
            shown = now if now is not None and visible(now, viewer) else None
            found.append(Correction(was=memory, now=shown, at=memory.status.since))
        return found

    async def _heirs(self, memories: Sequence[Memory]) -> Mapping[MemoryId, Memory]:
        """For the id of each successor, what holds in the end; left out where that was forgotten."""
        known: dict[MemoryId, Memory] = {}
        wanted = {memory.status.by for memory in memories if isinstance(memory.status, Superseded)}
        for _ in range(_CHAIN):
            missing = [memory for memory in wanted if memory not in known]
            loaded = await self._store.get(missing)
            known |= loaded
            wanted = {memory.status.by for memory in loaded.values() if isinstance(memory.status, Superseded)}
            if not wanted - set(known):
                break
        return {memory: heir for memory in known if (heir := _end_of(memory, known)) is not None}

    async def _reworded(
        self, passage: EvidencePassage, viewer: Viewer, former: dict[MemoryId, Sequence[Correction]]
    ) -> list[Correction]:
        """What current memories said before somebody put them into other words, of those that share the passage's.
        ``former`` are those looked at already."""
        if self._text is None:
            return []
        terms = [term.token for term in analyse_query(passage.text) if term.weight == 1.0]
        telling = sorted(terms, key=len, reverse=True)[:_WORDS]
        selection = Selection(viewer=viewer, now=self._clock.now(), states=CURRENT)
        hits = (await self._text.search_text(telling, selection, limit=_CANDIDATES)).hits
        found: list[Correction] = []
        for memory in (await self._store.get([hit.id for hit in hits])).values():
            if memory.id not in former:
                reworded = memory.times.updated > memory.times.learned
                former[memory.id] = await self._former(memory, viewer) if reworded else []
            found += former[memory.id]
        return found

    async def _former(self, memory: Memory, viewer: Viewer) -> list[Correction]:
        found = []
        for change in await self._store.history(memory=memory.id, limit=_CHANGES):
            was = _before(change, memory.id)
            if change.action is Action.UPDATE and was is not None and visible(was, viewer):
                found.append(Correction(was=replace(was, provenance=memory.provenance), now=memory, at=change.at))
        return [each for each in found if each.was.content != memory.content]

    async def _was_decided(self, memory: Memory) -> bool:
        """Whether somebody replaced a memory; what was merged with its like is as true as before."""
        for change in await self._store.history(memory=memory.id, limit=_CHANGES):
            if any(edit.after.id == memory.id and isinstance(edit.after.status, Superseded) for edit in change.edits):
                return change.action is not Action.CONSOLIDATE
        return True


def _end_of(memory: MemoryId, known: Mapping[MemoryId, Memory]) -> Memory | None:
    seen: set[MemoryId] = set()
    while memory in known and memory not in seen:
        seen.add(memory)
        status = known[memory].status
        if isinstance(status, Deleted):
            return None
        if not isinstance(status, Superseded):
            return known[memory]
        memory = status.by
    return None


def _before(change: Change, memory: MemoryId) -> Memory | None:
    return next((edit.before for edit in change.edits if edit.after.id == memory), None)
