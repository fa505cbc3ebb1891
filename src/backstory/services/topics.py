"""Memories by type and topic, the way opencode-plugin-git-memory handles them, for its tools.

How they are told apart and scored is ``domain/topics.py``'s; writing goes through ``remember.py`` wherever it can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from backstory.domain.admission import TextLimits
from backstory.domain.consolidation import Found, Group, Pass
from backstory.domain.draft import Draft
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.interchange import foreign_id
from backstory.domain.labels import canonical_area
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Kind, Memory, Visibility
from backstory.domain.outline import Outline
from backstory.domain.provenance import Origin, Provenance, lowest
from backstory.domain.scope import Viewer, may_change, visible
from backstory.domain.selection import Selection
from backstory.domain.topics import best_first, duplicates, in_time, topic_of, type_of
from backstory.errors import InputError
from backstory.ports.store import MemoryStore
from backstory.ports.system import Clock, IdSource
from backstory.services.consolidate import Consolidate, Plan
from backstory.services.conversation import Aside, at_once
from backstory.services.counting import count_recalled
from backstory.services.imported_texts import admit_memory, not_in_the_future
from backstory.services.remember import Remember, Remembered

_ALL = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """What somebody wants remembered under a type and a topic."""

    type: str
    topic: str
    content: str
    issue: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenIn:
    """What became of records: how many came in, how many were here already, and why others could not."""

    added: int
    known: int
    refused: tuple[str, ...]


class Topics:
    """What may be read and changed from one place, by type and topic."""

    def __init__(
        self,
        store: MemoryStore,
        remember: Remember,
        consolidate: Consolidate,
        *,
        clock: Clock,
        ids: IdSource,
        limits: TextLimits,
        aside: Aside = at_once,
    ) -> None:
        """``aside`` runs the masking of what is imported: about 0.3 s for 1,000 records."""
        self._store = store
        self._remember = remember
        self._consolidate = consolidate
        self._clock = clock
        self._ids = ids
        self._limits = limits
        self._aside = aside

    async def all(self, viewer: Viewer) -> list[Memory]:
        """The current memories in sight, oldest first. Cost: reads all of them, up to 1 s for 10,000."""
        selection = Selection(viewer=viewer, now=self._clock.now())
        return in_time(await self._store.select(selection, limit=_ALL))

    async def outlines(self, viewer: Viewer) -> list[Outline]:
        """All of the same at a glance, oldest first, in about 50 ms for 10,000."""
        return await self._store.outlines(Selection(viewer=viewer, now=self._clock.now()))

    async def whole(self, outlines: Sequence[Outline]) -> list[Memory]:
        """The memories themselves, in the same order; those that went away since are left out."""
        found = await self._store.get([outline.id for outline in outlines])
        return [found[outline.id] for outline in outlines if outline.id in found]

    async def of(self, viewer: Viewer, type_name: str, topic: str) -> list[Memory]:
        """Those of exactly this type and topic that may be changed from here, oldest first."""
        wanted = canonical_area(topic)  # the form in which topics are kept
        meant = [
            outline
            for outline in await self.outlines(viewer)
            if (type_of(outline), topic_of(outline)) == (type_name, wanted)
        ]
        return [memory for memory in await self.whole(meant) if may_change(memory, viewer)]

    async def count_shown(self, memories: Sequence[Memory], viewer: Viewer) -> None:
        """Count memories as recalled, where the store can be written."""
        await count_recalled(self._store, memories, viewer, self._clock.now())

    async def remember(self, record: TopicRecord, *, viewer: Viewer, provenance: Provenance) -> Remembered:
        """Store a statement, also where the same is known under any topic."""
        draft = Draft(
            content=record.content,
            kind=Kind(record.type),
            visibility=Visibility.PROJECT,
            area=record.topic,
            tags=[tag for tag in record.tags if tag.strip()],
            issue=record.issue if record.issue and record.issue.strip() else None,
            origin=Origin.AGENT,
            provenance=provenance,
            append=True,
        )
        return await self._remember.remember(draft, viewer=viewer, author=Author.AGENT)

    async def update(
        self, memory: Memory, content: str, *, issue: str | None, tags: Sequence[str] | None, viewer: Viewer
    ) -> Change | None:
        """Reword a memory; issue and tags stay unless given. None when it says so already."""
        revision = Revision(content=content, issue=issue, tags=None if tags is None else tuple(tags))
        return await self._remember.update(memory.id, revision, viewer=viewer, author=Author.AGENT)

    async def forget(self, memories: Sequence[Memory], *, reason: str, viewer: Viewer) -> Change:
        """Hide memories, as one change that can be undone."""
        refs = [memory.id for memory in memories]
        return await self._remember.forget(refs, viewer=viewer, author=Author.AGENT, reason=reason)

    @staticmethod
    def best(memories: Sequence[Memory], query: str) -> Memory | None:
        """The one that a query means: the best by its words."""
        return next(iter(best_first(memories, query)), None)

    async def compact(self, viewer: Viewer, *, dry_run: bool) -> tuple[int, int]:
        """How many memories there are, and how many of them are equal to another in every field; those go, superseded
        by the first, unless ``dry_run``."""
        memories = [memory for memory in await self.all(viewer) if may_change(memory, viewer)]
        groups = tuple(
            Group(found_by=Pass.EXACT, kept=kept, removed=removed)
            for kept, removed in duplicates(memories)
            if all(_same_readers(kept, other) for other in removed)
        )
        plan = Plan(found={Pass.EXACT: Found(groups=groups)}, compared=len(memories))
        if not dry_run:
            await self._consolidate.carry_out(plan, viewer=viewer, author=Author.AGENT)
        return len(memories), len(plan.removed)

    async def take_in(
        self, memories: Sequence[Memory], *, viewer: Viewer, provenance: Provenance, dry_run: bool = False
    ) -> TakenIn:
        """Store what records tell, with their own times, as imported: it is found by who looks, and offered to nobody.

        The same record again is known again, also where it came in from a file; two that are equal in one call are two.
        All or nothing is written, what cannot come in aside; with ``dry_run`` nothing. Raises InputError outside a
        project.
        """
        if viewer.project is None:
            raise InputError("there is no project here to import into", field="data")
        arriving, refused = await self._aside(partial(self._admit_all, memories, viewer, provenance))
        known = await self._store.get(list(arriving))
        for name in [name for name, memory in known.items() if not visible(memory, viewer)]:
            elsewhere = arriving.pop(name)  # known to others; here it is another memory
            own = _derived(elsewhere, viewer.project)
            arriving[own] = replace(elsewhere, id=own)
        known = await self._store.get(list(arriving))
        fresh = [memory for name, memory in arriving.items() if name not in known]
        if fresh and not dry_run:
            await self._store.commit(
                Change(
                    id=ChangeId(self._ids.new_id()),
                    at=self._clock.now(),
                    author=Author.AGENT,
                    action=Action.IMPORT,
                    edits=tuple(Edit(before=None, after=memory) for memory in fresh),
                    session=viewer.session,
                )
            )
        return TakenIn(added=len(fresh), known=len(known), refused=tuple(refused))

    def _admit_all(
        self, memories: Sequence[Memory], viewer: Viewer, provenance: Provenance
    ) -> tuple[dict[MemoryId, Memory], list[str]]:
        """What can come in, by the id that it gets, and why the rest cannot."""
        arriving: dict[MemoryId, Memory] = {}
        equal: Counter[MemoryId] = Counter()
        refused = []
        for number, memory in enumerate(memories, start=1):
            try:
                admitted = self._admitted(memory, viewer, provenance)
            except InputError as error:
                refused.append(f"record {number}: {error}")
                continue
            equal[memory.id] += 1
            name = _nth(memory, equal[memory.id])
            arriving[name] = replace(admitted, id=name)
        return arriving, refused

    def _admitted(self, memory: Memory, viewer: Viewer, provenance: Provenance) -> Memory:
        told = memory.provenance
        memory = replace(
            memory,
            project=viewer.project,
            provenance=replace(provenance, origin_system=told.origin_system, origin_id=told.origin_id, raw=told.raw),
        )
        origin = lowest((memory.origin, Origin.IMPORTED))
        admitted = admit_memory(memory, max_chars=self._limits.max_chars, origin=origin, label="")
        return not_in_the_future(admitted, self._clock.now())


def _nth(memory: Memory, number: int) -> MemoryId:
    """An id for one of several equal records: always the same one for the first, the second and so on."""
    return memory.id if number == 1 else _derived(memory, str(number))


def _derived(memory: Memory, by: str) -> MemoryId:
    return foreign_id(memory.provenance.origin_system or "", (memory.id, by), learned=memory.times.learned)


def _same_readers(one: Memory, other: Memory) -> bool:
    return (one.visibility, one.project, one.session, one.sensitivity) == (
        other.visibility,
        other.project,
        other.session,
        other.sensitivity,
    )
