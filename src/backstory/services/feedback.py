"""Say that a memory helped, or that it did not: the one judgement of a memory that is not about its truth."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId
from backstory.domain.lifecycle import found_irrelevant, found_useful
from backstory.domain.memory import Memory
from backstory.domain.scope import Viewer
from backstory.errors import Conflict, InputError
from backstory.ports.store import MemoryStore
from backstory.ports.system import Clock, IdSource
from backstory.services.reference import Reference

_ATTEMPTS = 5  # one that lost a race looks again; more often only under many writers
_MOST_AT_ONCE = 100


class Verdict(StrEnum):
    """How a memory served."""

    USEFUL = "useful"
    IRRELEVANT = "irrelevant"


class Feedback:
    """Takes verdicts on memories, each one change in the history that can be undone."""

    def __init__(self, store: MemoryStore, reference: Reference, *, clock: Clock, ids: IdSource) -> None:
        self._store = store
        self._reference = reference
        self._clock = clock
        self._ids = ids

    async def rate(self, refs: Sequence[str], verdict: Verdict, *, viewer: Viewer, author: Author) -> Change:
        """Count a verdict for memories; each counts once, however often it is named.

        Useful confirms, as of now. Irrelevant lowers what a memory is worth and moves no date. Neither touches origin,
        tier, pin, expiry or a conflict, whoever says it. Raises InputError when none or too many are named, and as
        ``Reference.find_changeable``.
        """
        if not refs:
            raise InputError("no memory is named", field="id", hint="give a #number, an id or a piece of its text")
        if len(refs) > _MOST_AT_ONCE:
            raise InputError(f"{len(refs)} memories are named; {_MOST_AT_ONCE} are the most at once", field="id")
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._rate(refs, verdict, viewer, author)
            except Conflict:
                continue
        return await self._rate(refs, verdict, viewer, author)

    async def _rate(self, refs: Sequence[str], verdict: Verdict, viewer: Viewer, author: Author) -> Change:
        named = [await self._reference.find_changeable(ref, viewer) for ref in refs]
        now = self._clock.now()

        def rated(memory: Memory) -> Memory:
            return found_useful(memory, now=now) if verdict is Verdict.USEFUL else found_irrelevant(memory)

        memories = {memory.id: memory for memory in named}.values()
        return await self._store.commit(
            Change(
                id=ChangeId(self._ids.new_id()),
                at=now,
                author=author,
                action=Action.FEEDBACK,
                edits=tuple(Edit(before=memory, after=rated(memory)) for memory in memories),
                reason=verdict.value,
                session=viewer.session,
            )
        )
