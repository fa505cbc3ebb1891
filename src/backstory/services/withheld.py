"""What no model is to be shown any more: what was forgotten, and what is private or local-only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from backstory.domain.memory import Memory, Sensitivity
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.ports.store import MemoryStore


async def withheld_memories(store: MemoryStore, viewer: Viewer, *, now: datetime, most: int) -> Sequence[Memory] | None:
    """The memories in a viewer's place that a text is not to repeat; None where one of the three kinds has ``most`` or
    more, which is too much to compare with."""
    everything = Selection(viewer=replace(viewer, audience=Audience.PERSON), now=now, states=EVERY_STATE)
    withheld: list[Memory] = []
    for narrowed in (
        replace(everything, states=frozenset({"deleted"})),
        replace(everything, sensitivity=Sensitivity.PRIVATE),
        replace(everything, sensitivity=Sensitivity.LOCAL_ONLY),
    ):
        found = await store.select(narrowed, limit=most)
        if len(found) == most:
            return None
        withheld += found
    return withheld
