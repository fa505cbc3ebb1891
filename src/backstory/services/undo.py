"""Take changes back: each as a change of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backstory.domain.change_plan import ChangePlan
from backstory.domain.erasure import is_erased
from backstory.domain.history import Action, Author, Change, Edit, touched, undo_edits
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.memory import Superseded
from backstory.domain.provenance import trust
from backstory.domain.restatement import says_anew
from backstory.domain.scope import Audience, Viewer
from backstory.errors import ASK_A_PERSON, Conflict, InputError, NotFound, OutOfScope
from backstory.ports.store import MemoryStore
from backstory.ports.system import Clock, IdSource
from backstory.services.reference import Reference
from backstory.services.repercussions import Repercussions
from backstory.services.said_once import check_said_once

_SEARCHED = (50, 500, 5000)
LEAST_CHARS = 6
"""So much of a change's id names it, where no other begins so: the first characters are its time."""
_TOLD_CHARS = 30


class Undo:
    """Finds the change to take back, and takes it back where nothing stands on it."""

    def __init__(
        self, store: MemoryStore, reference: Reference, repercussions: Repercussions, *, clock: Clock, ids: IdSource
    ) -> None:
        self._store = store
        self._reference = reference
        self._repercussions = repercussions
        self._clock = clock
        self._ids = ids

    async def undo(self, change_id: ChangeId | None, *, viewer: Viewer, author: Author) -> Change:
        """Take a change back, named by its id or the beginning of it; without one, the newest that can be undone here.

        What was erased for good stays so, and what it had replaced stays current. Raises NotFound, OutOfScope (also
        where it would make a text more trusted again, and no person asks), and Conflict when a later change stands on
        it, when what would come back was said anew since, or when nothing of it can come back.
        """
        change = await self._to_undo(change_id, viewer)
        current = await self._store.get([edit.after.id for edit in change.edits])
        for memory in current.values():
            self._reference.check_changeable(memory, viewer)
        now = self._clock.now()
        edits = undo_edits(change, current, now=now)
        _check_origins(edits, viewer)
        for edit in edits:
            if edit.before is not None and says_anew(edit.before, edit.after, now):
                await check_said_once(edit.after, self._store, now=now, beside=current)
        plan = ChangePlan((edit.before, edit.after) for edit in edits)
        await self._repercussions.follow(plan, viewer=viewer, now=now, how="taken back")
        return await self._store.commit(
            Change(
                id=ChangeId(self._ids.new_id()),
                at=self._clock.now(),
                author=author,
                action=Action.UNDO,
                edits=plan.edits,
                session=viewer.session,
                undoes=change.id,
            )
        )

    async def _to_undo(self, change_id: ChangeId | None, viewer: Viewer) -> Change:
        if change_id is not None:
            change = await self._store.change(change_id) or await self._begun(change_id, viewer)
            rest = _but_for_erased(change)
            if rest is None:
                raise Conflict("what was erased or masked stays so; nothing takes that back")
            return rest
        here = replace(viewer, all_projects=False)  # reading across projects never allows changing
        for limit in _SEARCHED:
            changes = await self._store.history(viewer=here, limit=limit)
            found = self._newest_to_undo(changes, viewer)
            if found is not None:
                return found
            if len(changes) < limit:
                break
        raise NotFound("there is nothing to undo in this project")

    async def _begun(self, change_id: ChangeId, viewer: Viewer) -> Change:
        """The only change in sight whose id begins so. Raises NotFound, and InputError where several do."""
        listed = "`backstory history` lists the changes"
        if len(change_id) < LEAST_CHARS:
            message = f"{change_id!r} is too short to name a change: {LEAST_CHARS} characters of its id at least"
            raise NotFound(message, hint=listed)
        changes = await self._store.history(viewer=viewer, limit=_SEARCHED[-1])
        begun = [change for change in changes if change.id.startswith(change_id)]
        if len(begun) > 1:
            raise InputError(f"{len(begun)} changes begin with {change_id!r}", field="change", hint="write more of it")
        if not begun:
            raise NotFound(f"there is no change {change_id[:_TOLD_CHARS]!r}", hint=listed)
        return begun[0]

    def _newest_to_undo(self, changes: Sequence[Change], viewer: Viewer) -> Change | None:
        """An undo is not undone by itself, and one that was undone by name no longer counts. What stands before a
        change that stays is passed over."""
        undone, settled = set[ChangeId](), set[MemoryId]()
        for change in changes:
            rest = _but_for_erased(change)
            back = set() if rest is None else set(touched(rest))
            if change.id in undone:
                settled |= set(touched(change)) - back
            elif change.undoes is not None:
                undone.add(change.undoes)
            elif all(self._reference.changeable(edit.after, viewer) for edit in change.edits):
                if rest is not None and settled.isdisjoint(back):
                    return rest
                if change.action is not Action.MASK:
                    settled |= set(touched(change))
        return None


def _but_for_erased(change: Change) -> Change | None:
    """A change without what it did to memories that are erased by now, and to those that they had replaced; None where
    nothing is left of it."""
    if change.action is Action.MASK:
        return None
    erased = {edit.after.id for edit in change.edits if is_erased(edit.after)}
    kept = []
    for edit in change.edits:
        status = None if edit.before is None else edit.before.status
        is_replaced = isinstance(status, Superseded) and status.by in erased
        if edit.after.id not in erased and not is_replaced:
            kept.append(edit)
    return replace(change, edits=tuple(kept)) if kept else None


def _check_origins(edits: Sequence[Edit], viewer: Viewer) -> None:
    """Raise OutOfScope where somebody who is not a person would take back that a text is trusted less."""
    if viewer.audience is Audience.PERSON:
        return
    for edit in edits:
        before, after = edit.before, edit.after
        if before is None or before.content != after.content:
            continue
        if trust(after.origin) > trust(before.origin):
            raise OutOfScope(
                f"only a person raises an origin; #{after.n} would be {after.origin} again", hint=ASK_A_PERSON
            )
