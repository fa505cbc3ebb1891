"""Decisions about imported memories, as people make them between an import and an export."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, ProjectId
from backstory.domain.memory import Kind, Memory, Times, Visibility
from backstory.domain.provenance import Origin
from backstory.entrypoints.drive import drive
from backstory.testing.fakes import ulid
from tests.unit.adapters.formats.exchange import Exchange

_numbers = iter(range(1, 1000))


def by_origin(exchange: Exchange) -> dict[str, Memory]:
    """The memories, by their keys where they came from."""
    return {memory.provenance.origin_id or "": memory for memory in exchange.memories()}


def put(exchange: Exchange, after: Memory, *, before: Memory | None = None) -> Memory:
    """Write a memory, in place of ``before``."""
    change = Change(
        id=ChangeId(ulid(next(_numbers), series=8)),
        at=exchange.clock.now(),
        author=Author.USER,
        action=Action.UPDATE if before is not None else Action.ADD,
        edits=(Edit(before=before, after=after),),
    )
    drive(exchange.backend.memories.commit(change))
    return drive(exchange.backend.memories.get([after.id]))[after.id]


def reworded(exchange: Exchange, memory: Memory, content: str) -> Memory:
    """A memory said anew."""
    now = exchange.clock.now()
    times = replace(memory.times, updated=now, confirmed=now)
    return put(exchange, replace(memory, content=content, times=times), before=memory)


def own(exchange: Exchange, content: str, *, project: ProjectId | None = None, n: int = 1) -> Memory:
    """A memory that was learned here."""
    now: datetime = exchange.clock.now().replace(microsecond=0)
    memory = Memory(
        id=MemoryId(ulid(n, series=9)),
        content=content,
        kind=Kind.DECISION,
        visibility=Visibility.GLOBAL if project is None else Visibility.PROJECT,
        project=project,
        tags=("own",),
        origin=Origin.USER,
        times=Times(learned=now, updated=now, confirmed=now),
    )
    return put(exchange, memory)
