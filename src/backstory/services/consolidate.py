"""Find memories that say the same, show what would go, and let one stand for all of them. What says the same is decided
in ``domain/consolidation.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from backstory.domain.consolidation import (
    NOTHING_BEFORE,
    Before,
    Doubtful,
    Found,
    Group,
    Pass,
    comparable,
    like_worded,
    near_in_meaning,
    same_words,
)
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.lifecycle import supersede
from backstory.domain.memory import Memory
from backstory.domain.merged_memory import merged
from backstory.domain.scope import Viewer, may_change
from backstory.domain.selection import Selection
from backstory.errors import ModelError
from backstory.ports.store import MemoryStore
from backstory.ports.system import Clock, IdSource
from backstory.services.conversation import Aside, at_once
from backstory.services.near_in_meaning import NearInMeaning, Progress
from backstory.services.repercussions import Repercussions

EVERY_PASS = tuple(Pass)
QUICKLY = {Pass.WORDING: 3_000, Pass.MEANING: 1_000}
"""Memories that a pass compares where somebody waits for an answer within 10 s: 2 s for their wording, 3 s for their
meaning."""
_ALL = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run would do: nothing is changed until it is carried out.

    ``found`` has what each pass found, in their order; ``compared`` is how many memories took part. ``skipped`` says
    of each pass that was asked for and left out, why.
    """

    found: Mapping[Pass, Found]
    compared: int
    skipped: Mapping[Pass, str] = field(default_factory=dict)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of all passes, the surest first."""
        return tuple(group for found in self.found.values() for group in found.groups)

    @property
    def doubtful(self) -> tuple[Doubtful, ...]:
        """The pairs that a person has to look at."""
        return tuple(pair for found in self.found.values() for pair in found.doubtful)

    @property
    def removed(self) -> tuple[Memory, ...]:
        """All memories that another takes the place of, whole."""
        return tuple(memory for group in self.groups for memory in group.removed)

    @property
    def more_groups(self) -> int:
        """How many groups are left for further runs."""
        return sum(found.more_groups for found in self.found.values())

    @property
    def more_doubtful(self) -> int:
        """How many pairs were found and are not told."""
        return sum(found.more_doubtful for found in self.found.values())


class Consolidate:
    """Consolidation of the memories that may be changed from one place."""

    def __init__(
        self,
        store: MemoryStore,
        meaning: NearInMeaning,
        *,
        clock: Clock,
        ids: IdSource,
        aside: Aside = at_once,
    ) -> None:
        """``aside`` runs the comparing, which takes seconds for thousands."""
        self._store = store
        self._meaning = meaning
        self._clock = clock
        self._ids = ids
        self._aside = aside

    async def plan(
        self,
        viewer: Viewer,
        *,
        passes: Sequence[Pass] = EVERY_PASS,
        quickly: bool = False,
        progress: Progress | None = None,
    ) -> Plan:
        """Find out what a run would do.

        Only memories of the same readers and sensitivity are compared. The pass by meaning goes by stored vectors and
        embeds what is in doubt (``NearInMeaning``), nothing local-only; without an embedder, or when it fails, the
        other passes stand and the plan says why. ``quickly`` leaves out a pass over more memories than ``QUICKLY``.
        ``progress`` is told of memories embedded. Cost: 6 s for 10,000 memories, several times as much where most are
        lines of a few templates, and 3 ms for each that is embedded.
        """
        left = await self._comparable(viewer)
        compared, before = len(left), NOTHING_BEFORE
        found: dict[Pass, Found] = {}
        skipped: dict[Pass, str] = {}
        for wanted in sorted(set(passes), key=list(Pass).index):
            most = QUICKLY.get(wanted, len(left)) if quickly else len(left)
            if len(left) > most:
                skipped[wanted] = f"it takes long for more than {most:,} memories; `backstory consolidate` does it"
                continue
            try:
                found[wanted] = await self._pass(wanted, left, before, progress)
            except ModelError as error:
                skipped[wanted] = str(error)
                continue
            before = before.and_then(found[wanted])
            left = [memory for memory in left if memory.id not in found[wanted].gone]
        return Plan(found=found, compared=compared, skipped=skipped)

    async def carry_out(self, plan: Plan, *, viewer: Viewer, author: Author) -> Change | None:
        """Do what a plan says, as one change that can be undone; None where nothing goes.

        What goes is superseded by what stays, which takes over what was known of it. Raises Conflict, and does nothing,
        where a memory of the plan changed since it was made; plan again then.
        """
        if not plan.groups:
            return None
        now = self._clock.now()
        gone: dict[MemoryId, tuple[Memory, list[Memory]]] = {}
        for group in plan.groups:
            gone.setdefault(group.kept.id, (group.kept, []))[1].extend(group.removed)
        edits = []
        for kept, removed in gone.values():
            # also where it takes nothing over: had it gone meanwhile, nothing would stand for those that go
            edits.append(Edit(before=kept, after=merged(kept, removed)))
            edits += [Edit(before=each, after=supersede(each, by=kept.id, now=now)) for each in removed]
        followed = await Repercussions(self._store).followed(edits, viewer=viewer, now=now)
        return await self._store.commit(
            Change(
                id=ChangeId(self._ids.new_id()),
                at=now,
                author=author,
                action=Action.CONSOLIDATE,
                edits=followed,
                session=viewer.session,
            )
        )

    async def _comparable(self, viewer: Viewer) -> list[Memory]:
        here, now = replace(viewer, all_projects=False), self._clock.now()
        memories = await self._store.select(Selection(viewer=here, now=now), limit=_ALL)
        changeable = [memory for memory in memories if may_change(memory, here)]
        return comparable(changeable, now=now, audience=viewer.audience)

    async def _pass(self, wanted: Pass, memories: Sequence[Memory], before: Before, progress: Progress | None) -> Found:
        match wanted:
            case Pass.EXACT:
                return await self._aside(partial(same_words, memories))
            case Pass.WORDING:
                return await self._aside(partial(like_worded, memories, before))
            case Pass.MEANING:
                near = await self._meaning.near(memories, progress)
                return await self._aside(partial(near_in_meaning, memories, near, before))
