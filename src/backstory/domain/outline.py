"""A memory at a glance: what tells it apart in lists and searches by plain words, read for thousands at once."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from backstory.domain.ids import MemoryId
from backstory.domain.memory import Kind, Memory, Visibility


class Outline(NamedTuple):
    """Some fields of a memory; ``updated`` is when it got the words that it has. A tuple, since it is made quickly."""

    id: MemoryId
    n: int
    kind: Kind
    visibility: Visibility
    area: str | None
    tags: tuple[str, ...]
    content: str
    updated: datetime


def outline_of(memory: Memory) -> Outline:
    """The fields of one memory."""
    return Outline(
        id=memory.id,
        n=memory.n,
        kind=memory.kind,
        visibility=memory.visibility,
        area=memory.area,
        tags=memory.tags,
        content=memory.content,
        updated=memory.times.updated,
    )
