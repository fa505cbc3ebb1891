"""Write, update, forget, supersede, pin, retag: every decision about single memories goes through here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from backstory.domain.admission import TextLimits, admit, admit_tags
from backstory.domain.change_plan import ChangePlan
from backstory.domain.contradiction import resolved
from backstory.domain.draft import (
    DEFAULT_TEMPORARY,
    Draft,
    admitted_revision,
    as_reason,
    as_successor,
    memory_from,
    moved,
    notes_on,
)
from backstory.domain.history import Action, Author, Change
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.labels import canonical_tag
from backstory.domain.lifecycle import Revision, forget, reactivate, retag, revise, set_pin, supersede
from backstory.domain.memory import Conflicted, Memory, Source, Tier
from backstory.domain.near_duplicates import Verdict, compare
from backstory.domain.provenance import Origin, is_injectable, lowest, trust
from backstory.domain.restatement import readers, said_again, same_for_same_readers, says_anew, says_the_same
from backstory.domain.scope import Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.domain.worth import DERIVED
from backstory.errors import Conflict, InputError
from backstory.ports.index import TextIndex
from backstory.ports.store import MemoryStore
from backstory.ports.system import Clock, IdSource
from backstory.services.reference import Reference
from backstory.services.repercussions import Contradicted, Repercussions
from backstory.services.said_once import check_said_once, known_as
from backstory.services.succession import heir_of, moved_on, replaced_by
from backstory.services.undo import Undo

__all__ = ["Draft", "Remember", "Remembered"]

# Somebody who lost the race once finds the winner's memory at the next look; more often only under many writers.
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What became of a draft. ``fresh`` False: the same text was known, and was confirmed instead of stored twice.
    ``against`` are the memories that it contradicts."""

    memory: Memory
    change: Change
    fresh: bool
    superseded: Memory | None = None
    notes: tuple[str, ...] = ()
    against: tuple[Contradicted, ...] = ()


class Remember:
    """Decisions about memories, each one change in the history."""

    def __init__(
        self,
        store: MemoryStore,
        reference: Reference,
        *,
        clock: Clock,
        ids: IdSource,
        limits: TextLimits,
        text: TextIndex | None = None,
    ) -> None:
        """``text`` finds what a new statement contradicts; without it nothing is looked for."""
        self._store = store
        self._reference = reference
        self._repercussions = Repercussions(store, text)
        self._undo = Undo(store, reference, self._repercussions, clock=clock, ids=ids)
        self._clock = clock
        self._ids = ids
        self._limits = limits

    async def remember(self, draft: Draft, *, viewer: Viewer, author: Author) -> Remembered:
        """Store a statement.

        A text that is known already to the same readers (by its ``statement_form``: whatever case, but of names, and
        spacing) is confirmed instead, also when several processes say it at once: one stores it, the others confirm.
        So is one that differs by a full stop at its end, but for two said in the same moment. It is believed again if
        it was in conflict with what no better source says. What it contradicts is flagged, and so is it, in the same
        change. Raises InputError (too long, empty, private, bad tag), NotFound or OutOfScope for ``supersedes``.

        What takes the place of another keeps its readers, pin and tier unless told otherwise, see ``succeed``. Where
        the one to be superseded was superseded already, the newest that took its place is.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._remember(draft, viewer=viewer, author=author)
            except Conflict:
                continue  # decided on what is not so any more; look again
        return await self._remember(draft, viewer=viewer, author=author)

    async def _remember(self, draft: Draft, *, viewer: Viewer, author: Author) -> Remembered:
        now = self._clock.now()
        admitted = admit(draft.content, field="content", limits=self._limits)
        new_id = MemoryId(self._ids.new_id())
        memory = memory_from(draft, admitted.text, memory_id=new_id, viewer=viewer, now=now)
        notes = notes_on(memory, admitted.secrets, private_removed=admitted.private_removed)
        named, old = await replaced_by(draft, self._store, self._reference, viewer)
        if named is not None and old is not None:
            memory = as_successor(memory, old, draft, now=now)
            notes += moved_on(named, old)
        known = None if draft.append else await known_as(memory, self._store, now=now)
        if known is not None and (old is None or known.id != old.id):
            return await self._say_again(known, memory, old, draft, viewer=viewer, author=author)
        plan = ChangePlan([(None, memory)])
        if old is not None:
            plan.plan(old, supersede(old, by=memory.id, now=now))
            await self._repercussions.follow(plan, viewer=viewer, now=now)
        against = await self._repercussions.oppose(memory, plan, viewer=viewer, now=now)
        absent = None if old or draft.append else same_for_same_readers(memory, now)
        action = Action.SUPERSEDE if old else Action.ADD
        change = await self._commit(action, author, viewer, plan, key=draft.key, absent=absent)
        stored = change.edits[0].after
        return Remembered(
            memory=stored,
            change=change,
            fresh=stored.id == memory.id,
            superseded=old,
            notes=(*notes, *map(told, against)),
            against=tuple(against),
        )

    async def _say_again(
        self, known: Memory, memory: Memory, old: Memory | None, draft: Draft, *, viewer: Viewer, author: Author
    ) -> Remembered:
        """Confirm what is known already; where the statement is to replace another, what is known does."""
        now = self._clock.now()
        again = said_again(known, memory, now=now)
        if isinstance(known.status, Conflicted) and await self._outweighs(draft.origin, known.status):
            again = resolved(again)
        plan = ChangePlan([(known, again)])
        if old is not None:
            plan.plan(old, supersede(old, by=known.id, now=now))
            await self._repercussions.follow(plan, viewer=viewer, now=now)
        action = Action.CONFIRM if old is None else Action.SUPERSEDE
        change = await self._commit(action, author, viewer, plan, key=draft.key)
        return Remembered(
            memory=change.edits[0].after,
            change=change,
            fresh=False,
            superseded=old,
            notes=("already known; confirmed",),
        )

    async def _outweighs(self, origin: Origin, conflict: Conflicted) -> bool:
        """Whether a statement said again stands against what questions it: a guess does not stand against the user."""
        if not is_injectable(origin):
            return False
        other = None if conflict.against is None else (await self._store.get([conflict.against])).get(conflict.against)
        return other is None or trust(origin) >= trust(other.origin)

    async def update(
        self, ref: str, revision: Revision, *, viewer: Viewer, author: Author, reason: str | None = None
    ) -> Change | None:
        """Change a memory in place: its learned date and all that is not named stay. None when it is so already.

        Other words settle its conflict; what they contradict is flagged, as in ``remember``. Raises Conflict when
        another memory says the new text to the same readers already.
        """
        memory = await self._reference.find_changeable(ref, viewer)
        now = self._clock.now()
        updated = revise(memory, admitted_revision(revision, self._limits), now=now)
        if updated.content != memory.content:  # new words are the words of whoever wrote them
            writer = Origin.USER if author is Author.USER else lowest((memory.origin, Origin.AGENT))
            derived = author is not Author.SYSTEM and memory.source in DERIVED
            updated = replace(updated, origin=writer, source=Source.EXPLICIT if derived else memory.source)
        if updated.visibility is not memory.visibility:
            updated = moved(updated, viewer)
        if updated.tier is Tier.TEMPORARY and updated.expires_at is None:
            updated = replace(updated, expires_at=now + DEFAULT_TEMPORARY)
        moves = readers(updated) != readers(memory)
        if not moves and compare(memory.content, updated.content).verdict is Verdict.SAME:
            updated = replace(updated, status=memory.status)  # its conflict is about what it says to whom
        if says_the_same(memory, updated):
            return None
        plan, absent = ChangePlan([(memory, updated)]), None
        if says_anew(memory, updated, now):
            await check_said_once(updated, self._store, now=now)
            absent = same_for_same_readers(updated, now)
        if updated.content != memory.content or moves:
            await self._repercussions.follow(plan, viewer=viewer, now=now)
            await self._repercussions.oppose(memory, plan, viewer=viewer, now=now)
        return await self._commit(Action.UPDATE, author, viewer, plan, reason=reason, absent=absent)

    async def forget(self, refs: Sequence[str], *, viewer: Viewer, author: Author, reason: str | None = None) -> Change:
        """Hide memories; what they had superseded becomes current again, or passes to what superseded them. One change,
        undoable. Raises InputError when none is named."""
        if not refs:
            raise InputError("no memory is named", field="id", hint="give a #number, an id or a piece of its text")
        now, reason = self._clock.now(), as_reason(reason)
        chosen = {memory.id: memory for memory in [await self._reference.find_changeable(ref, viewer) for ref in refs]}
        plan = ChangePlan((memory, forget(memory, now=now, reason=reason)) for memory in chosen.values())
        for memory in chosen.values():
            older = await self._store.select(
                Selection(viewer=viewer, now=now, states=EVERY_STATE, superseded_by=memory.id), limit=10_000
            )
            heir = await heir_of(memory, self._store, forgotten=chosen)
            for old in older:
                if old.id not in chosen and self._reference.changeable(old, viewer):
                    plan.plan(old, reactivate(old) if heir is None else supersede(old, by=heir, now=now))
        await self._repercussions.follow(plan, viewer=viewer, now=now)
        return await self._commit(Action.FORGET, author, viewer, plan, reason=reason)

    async def pin(self, ref: str, *, pinned: bool, viewer: Viewer, author: Author) -> Change | None:
        """Pin or unpin a memory. None when it is so already."""
        memory = await self._reference.find_changeable(ref, viewer)
        if memory.pinned is pinned:
            return None
        action = Action.PIN if pinned else Action.UNPIN
        return await self._commit(action, author, viewer, ChangePlan([(memory, set_pin(memory, pinned=pinned))]))

    async def retag(self, old: str, new: str, *, viewer: Viewer, author: Author) -> Change | None:
        """Rename a tag on every memory that may be changed from here; None when there is none.

        Raises InputError when the new tag is the old one.
        """
        old, wanted = canonical_tag(old), admit_tags([new])[0]
        if old == wanted:
            raise InputError(f"the tag is called {old!r} already", field="new")
        selection = Selection(viewer=viewer, now=self._clock.now(), states=EVERY_STATE - {"deleted"}, tags=(old,))
        memories = await self._store.select(selection, limit=100_000)
        plan = ChangePlan(
            (memory, retag(memory, old=old, new=wanted))
            for memory in memories
            if self._reference.changeable(memory, viewer)
        )
        return await self._commit(Action.RETAG, author, viewer, plan) if plan.edits else None

    async def undo(self, change_id: ChangeId | None, *, viewer: Viewer, author: Author) -> Change:
        """Take a change back; see ``Undo.undo``."""
        return await self._undo.undo(change_id, viewer=viewer, author=author)

    async def _commit(
        self,
        action: Action,
        author: Author,
        viewer: Viewer,
        plan: ChangePlan,
        *,
        reason: str | None = None,
        key: str | None = None,
        absent: Selection | None = None,
    ) -> Change:
        return await self._store.commit(
            Change(
                id=ChangeId(self._ids.new_id()),
                at=self._clock.now(),
                author=author,
                action=action,
                edits=plan.edits,
                reason=as_reason(reason),
                session=viewer.session,
                key=key,
            ),
            absent=absent,
        )


def told(against: Contradicted) -> str:
    """A contradiction in a sentence, for whoever made the statement."""
    n = against.memory.n
    return f"it disagrees with #{n}: {against.words.told}; `backstory conflicts` tells how to settle it"
