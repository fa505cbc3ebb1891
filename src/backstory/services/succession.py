"""Which memory takes the place of which: the last of a chain of replacements, and the one that a draft replaces."""

from __future__ import annotations

from collections.abc import Mapping

from backstory.domain.draft import Draft
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Deleted, Memory, Superseded
from backstory.domain.provenance import may_supersede
from backstory.domain.scope import Viewer
from backstory.errors import OutOfScope
from backstory.ports.store import MemoryStore
from backstory.services.reference import Reference


async def heir_of(memory: Memory, store: MemoryStore, *, forgotten: Mapping[MemoryId, Memory]) -> MemoryId | None:
    """The first of a memory's successors that stays when these are forgotten; None where none does, or it has none."""
    seen = {memory.id}
    while isinstance(memory.status, Superseded) and memory.status.by not in seen:
        by = memory.status.by
        seen.add(by)
        successor = forgotten.get(by) or (await store.get([by])).get(by)
        if successor is None:
            return None
        if by not in forgotten and not isinstance(successor.status, Deleted):
            return by
        memory = successor
    return None


async def replaced_by(
    draft: Draft, store: MemoryStore, reference: Reference, viewer: Viewer
) -> tuple[Memory | None, Memory | None]:
    """The memory that a draft names to be superseded, and the one to supersede: itself, or the last that took its
    place. Raises as ``Reference.find_changeable``, and OutOfScope where the draft may not replace it."""
    if draft.supersedes is None:
        return None, None
    named = await reference.find_changeable(draft.supersedes, viewer, field="supersedes")
    old, seen = named, {named.id}
    while (heir := await heir_of(old, store, forgotten={})) is not None and heir not in seen:
        seen.add(heir)
        old = (await store.get([heir]))[heir]
    if not reference.changeable(old, viewer):
        raise OutOfScope(f"memory #{named.n} was replaced already, by one that cannot be changed from here")
    if not may_supersede(draft.origin, old.origin):
        raise OutOfScope(
            f"memory #{old.n} was said by the user; text from {draft.origin.value} cannot replace it",
            hint="ask the user; what they say themselves replaces it",
        )
    return named, old


def moved_on(named: Memory, old: Memory) -> tuple[str, ...]:
    """What to tell of a replacement that was not of the memory named."""
    if named.id == old.id:
        return ()
    return (f"#{named.n} had been replaced by #{old.n} already, so #{old.n} is replaced",)
