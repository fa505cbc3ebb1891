"""What a decision about some memories means for others: conflicts that it settles or opens, and what was derived.

Everything found here goes into the same change, so that it is done, and taken back, together.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from backstory.domain.change_plan import ChangePlan, Gone
from backstory.domain.contradiction import Disagreement, contradicts, flagged, may_question, resolved
from backstory.domain.history import Action, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.memory import Active, Conflicted, Memory
from backstory.domain.provenance import trust
from backstory.domain.restatement import for_same_readers, is_current
from backstory.domain.scope import Viewer, may_change
from backstory.domain.selection import CURRENT, Selection
from backstory.domain.text import analyse_query
from backstory.errors import StoreError
from backstory.ports.index import TextIndex
from backstory.ports.store import MemoryStore

CANDIDATES = 8
"""Memories that a new statement is held against; the one it contradicts shares nearly all of its words."""
_WORDS = 4
_LONGEST_CHARS = 600  # what is longer is no single statement
_MOST_FOUND = 3
_MOST_AFFECTED = 1000
_CHANGES_SEARCHED = 50

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradicted:
    """A memory that a statement contradicts, and the words in which: the statement's first."""

    memory: Memory
    words: Disagreement


class Repercussions:
    """Adds to a plan what follows from it."""

    def __init__(self, store: MemoryStore, text: TextIndex | None = None) -> None:
        """``text`` finds what a new statement contradicts; without it nothing is looked for."""
        self._store = store
        self._text = text

    async def followed(self, edits: Iterable[Edit], *, viewer: Viewer, now: datetime) -> tuple[Edit, ...]:
        """The edits of a change that is about to be committed, and those that follow from them; see ``follow``."""
        plan = ChangePlan((edit.before, edit.after) for edit in edits)
        await self.follow(plan, viewer=viewer, now=now)
        return plan.edits

    async def follow(self, plan: ChangePlan, *, viewer: Viewer, now: datetime, how: str | None = None) -> None:
        """Settle the conflicts of what will be gone, and put in question what was derived from it, however far.

        Only what may be changed from here is changed. ``how`` is said instead of "forgotten". Cost: two looks by index
        for each memory that goes.
        """
        gone = list(plan.gone())
        for each in gone:
            await self._settle(each, plan, viewer, now)
        untrue = [each for each in gone if not each.holds]
        await self._question_derived(
            [replace(each, how=how) if how and each.how == "forgotten" else each for each in untrue], plan, viewer, now
        )

    async def contradicted(self, memory: Memory, plan: ChangePlan, *, now: datetime) -> list[Contradicted]:
        """The current memories for the same readers that a statement contradicts, at most 3: the most trusted first, of
        these the surest candidates.

        Pairs that somebody decided to keep both of are left out. Best effort: looks at ``CANDIDATES`` memories that
        share its words, and finds none where the text index fails. Cost: one search of it, about 1 ms at 10,000
        memories.
        """
        found: list[Contradicted] = []
        for candidate in await self._candidates(memory, now):
            known = plan.planned(candidate)
            if not is_current(known, now) or known.content != candidate.content:
                continue
            words = contradicts(memory, known)
            if words is None or (memory.revision and await self.kept_both(memory, candidate)):
                continue
            found.append(Contradicted(memory=candidate, words=words))
        found.sort(key=lambda each: trust(each.memory.origin), reverse=True)  # flags name one: the weightiest
        return found[:_MOST_FOUND]

    async def oppose(self, memory: Memory, plan: ChangePlan, *, viewer: Viewer, now: datetime) -> list[Contradicted]:
        """Flag a statement of the plan and what it contradicts; returns that, with words seen from the statement.

        What outside text contradicts stays as it is, whichever came first: only the text itself is flagged then.
        """
        found = await self.contradicted(plan.planned(memory), plan, now=now)
        for each in found:
            ours = plan.planned(memory)
            if may_question(each.memory.origin, ours):
                plan.plan(memory, flagged(ours, evidence=each.words.told, against=each.memory.id, now=now))
            if may_question(ours.origin, each.memory) and may_change(each.memory, viewer):
                theirs = plan.planned(each.memory)
                evidence = each.words.turned.told
                plan.plan(each.memory, flagged(theirs, evidence=evidence, against=memory.id, now=now))
        return found

    async def kept_both(self, one: Memory, other: Memory) -> bool:
        """Whether somebody decided that both hold, and neither says something else since."""
        wanted = {one.id: one.content, other.id: other.content}
        undone = set[ChangeId]()
        for change in await self._store.history(memory=other.id, limit=_CHANGES_SEARCHED):
            if change.undoes is not None:
                undone.add(change.undoes)
            if change.id not in undone and change.action is Action.RESOLVE and _leaves(change, wanted):
                return True
        return False

    async def _candidates(self, memory: Memory, now: datetime) -> list[Memory]:
        if self._text is None or len(memory.content) > _LONGEST_CHARS:
            return []
        words = [term.token for term in analyse_query(memory.content) if term.weight == 1.0]
        telling = sorted((word for word in words if word.isalpha()), key=len, reverse=True)[:_WORDS]
        try:
            found = await self._text.search_text(telling, for_same_readers(memory, now), limit=CANDIDATES)
        except StoreError as error:  # whether it can be kept, keeping it will show
            log.warning("event=not_compared memory=%s reason=%s", memory.id, error)
            return []
        known = await self._store.get([hit.id for hit in found.hits])
        return [known[hit.id] for hit in found.hits if hit.id in known and hit.id != memory.id]

    async def _settle(self, gone: Gone, plan: ChangePlan, viewer: Viewer, now: datetime) -> None:
        """Believe again what stood against a memory that goes, unless it contradicts another still, or what takes its
        place says the same."""
        for other in await self._against(gone.memory.id, viewer, now):
            planned = plan.planned(other)
            if not isinstance(planned.status, Conflicted) or planned.status.against != gone.memory.id:
                continue
            if gone.holds and gone.by is not None and gone.by != other.id:
                plan.plan(other, replace(planned, status=replace(planned.status, against=gone.by)))
                continue
            plan.plan(other, await self._freed(resolved(planned), gone, plan, viewer, now))

    async def _freed(self, memory: Memory, gone: Gone, plan: ChangePlan, viewer: Viewer, now: datetime) -> Memory:
        """A memory whose conflict has ended, or flagged against another that it contradicts: what named it, what took
        the place of what is gone, or what is found."""
        successor = None if gone.by is None else plan.named(gone.by)
        rivals = [*await self._against(memory.id, viewer, now), *([] if successor is None else [successor])]
        for rival in map(plan.planned, rivals):
            words = contradicts(memory, rival) if is_current(rival, now) else None
            if words is not None:
                memory = flagged(memory, evidence=words.told, against=rival.id, now=now)
        if isinstance(memory.status, Active):
            for each in await self.contradicted(memory, plan, now=now):
                if may_question(each.memory.origin, memory):
                    memory = flagged(memory, evidence=each.words.told, against=each.memory.id, now=now)
        return memory

    async def _against(self, memory: MemoryId, viewer: Viewer, now: datetime) -> list[Memory]:
        selection = Selection(viewer=_here(viewer), now=now, states=CURRENT | {"expired"}, against=memory)
        found = await self._store.select(selection, limit=_MOST_AFFECTED)
        return [other for other in found if may_change(other, viewer)]

    async def _question_derived(self, gone: Iterable[Gone], plan: ChangePlan, viewer: Viewer, now: datetime) -> None:
        origins = [(each.memory.id, f"made from #{each.memory.n}, which was {each.how}") for each in gone]
        heirs = {each.by for each in gone}
        seen = {memory for memory, _ in origins}
        while origins and len(seen) < _MOST_AFFECTED:
            source, why = origins.pop(0)
            selection = Selection(viewer=_here(viewer), now=now, states=CURRENT, derived_from=source)
            for derived in await self._store.select(selection, limit=_MOST_AFFECTED):
                if derived.id in seen or derived.id in heirs or not may_change(derived, viewer):
                    continue
                seen.add(derived.id)
                planned = plan.planned(derived)
                if isinstance(planned.status, Active | Conflicted):
                    plan.plan(derived, flagged(planned, evidence=why, against=None, now=now))
                    origins.append((derived.id, f"made from #{derived.n}, which was {why}"))


def _here(viewer: Viewer) -> Viewer:
    """Reading across projects never allows changing."""
    return replace(viewer, all_projects=False)


def _leaves(change: Change, wanted: dict[MemoryId, str]) -> bool:
    """Whether a change leaves these memories believed, in these words."""
    left = {edit.after.id: edit.after for edit in change.edits}
    return all(
        memory in left and left[memory].content == content and isinstance(left[memory].status, Active)
        for memory, content in wanted.items()
    )
