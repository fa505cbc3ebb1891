"""The review queue: what came from outside, and a person's word on it. An agent can look and cannot accept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backstory.domain.change_plan import ChangePlan
from backstory.domain.history import Action, Author, Change
from backstory.domain.ids import ChangeId
from backstory.domain.memory import Memory, Sensitivity
from backstory.domain.review import accepted, waits
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.errors import ASK_A_PERSON, InputError, OutOfScope
from backstory.ports.index import TextIndex
from backstory.ports.store import MemoryStore
from backstory.ports.system import Clock, IdSource
from backstory.services.reference import Reference
from backstory.services.remember import Remember
from backstory.services.repercussions import Repercussions

REJECTED = "rejected in review"
_ALL = 1 << 31


class Review:
    """Looks through what waits, accepts and rejects it."""

    def __init__(
        self,
        store: MemoryStore,
        reference: Reference,
        remember: Remember,
        *,
        clock: Clock,
        ids: IdSource,
        text: TextIndex | None = None,
    ) -> None:
        """``text`` finds what an accepted memory contradicts; without it nothing is looked for."""
        self._store = store
        self._reference = reference
        self._remember = remember
        self._clock = clock
        self._ids = ids
        self._repercussions = Repercussions(store, text)

    async def queue(self, viewer: Viewer, *, limit: int = _ALL) -> list[Memory]:
        """The memories that wait for review and may be changed from here, newest first, at most ``limit``."""
        waiting = [
            *await self._store.select(self._open(viewer), limit=limit),
            *await self._withheld(viewer),
        ]
        return sorted(waiting, key=lambda memory: (memory.times.learned, memory.n), reverse=True)[:limit]

    async def count(self, viewer: Viewer) -> int:
        """How many wait. Cheap, however many there are."""
        return await self._store.count(self._open(viewer)) + len(await self._withheld(viewer))

    async def accept(self, refs: Sequence[str], *, viewer: Viewer) -> Change:
        """Make memories as trusted as the user's own words, in one change; undo lowers them again.

        Only those named: what they were made from, and what was made from them, keeps its origin. What they contradict
        is flagged, and so are they, in the same change. Raises OutOfScope
        unless a person looks, and InputError for a memory that does not wait for review.
        """
        if viewer.audience is not Audience.PERSON:
            raise OutOfScope(
                "only a person on the command line raises an origin; nothing was changed", hint=ASK_A_PERSON
            )
        memories = await self._waiting(refs, viewer)
        now = self._clock.now()
        plan = ChangePlan((memory, accepted(memory)) for memory in memories)
        for memory in memories:
            await self._repercussions.oppose(memory, plan, viewer=viewer, now=now)
        return await self._store.commit(
            Change(
                id=ChangeId(self._ids.new_id()),
                at=now,
                author=Author.USER,
                action=Action.TRUST,
                edits=plan.edits,
                session=viewer.session,
            )
        )

    async def reject(self, refs: Sequence[str], *, viewer: Viewer, author: Author) -> Change:
        """Forget memories that wait for review, in one change. Raises InputError for one that does not."""
        memories = await self._waiting(refs, viewer)
        return await self._remember.forget(
            [memory.id for memory in memories], viewer=viewer, author=author, reason=REJECTED
        )

    def _open(self, viewer: Viewer) -> Selection:
        """Those that wait, but for private and local-only ones: what is neither is withheld for its origin alone."""
        here = replace(viewer, all_projects=False)  # reading across projects never allows changing
        return Selection(viewer=here, now=self._clock.now(), sensitivity=Sensitivity.NORMAL, offerable=False)

    async def _withheld(self, viewer: Viewer) -> list[Memory]:
        """The private and local-only ones that wait."""
        found: list[Memory] = []
        for sensitivity in (Sensitivity.PRIVATE, Sensitivity.LOCAL_ONLY):
            found += await self._store.select(replace(self._open(viewer), sensitivity=sensitivity), limit=_ALL)
        return [memory for memory in found if waits(memory, self._clock.now())]

    async def _waiting(self, refs: Sequence[str], viewer: Viewer) -> list[Memory]:
        if not refs:
            raise InputError("no memory is named", field="ref", hint="`backstory review` lists those that wait")
        now = self._clock.now()
        found = [await self._reference.find_changeable(ref, viewer, field="ref") for ref in refs]
        for memory in found:
            if not waits(memory, now):
                raise InputError(
                    f"memory #{memory.n} does not wait for review; nothing was changed",
                    field="ref",
                    hint="`backstory review` lists those that do",
                )
        return list({memory.id: memory for memory in found}.values())
