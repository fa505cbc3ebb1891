"""A process that writes to a store for ever and tells each write once it is stored, until somebody kills it.

``python -m bench.crash_writer STORE LOCATION SERIES``. What it tells is one JSON object a line: the change or the
message that was acknowledged, and how each memory stood after it.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import anyio

from backstory.adapters.clock import UlidSource
from backstory.domain.conversation import Message, Part, Role
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, MessageId, PartId, SessionId
from backstory.domain.lifecycle import forget, supersede
from backstory.domain.memory import Active, Memory, Times, Visibility
from backstory.errors import StoreBusy
from backstory.ports.backend import Backend
from backstory.ports.index import Embedded
from backstory.testing.fakes import HashEmbedder
from bench.stores import STORES

_WORDS = ("deploy", "staging", "helm", "ledger", "invoice", "cluster", "rollback", "zebra", "parser", "widget", "cache")
_KEPT = 40  # memories of its own that a writer goes on changing


class Writer:
    """One writer. ``series`` tells its texts from those of others."""

    def __init__(self, backend: Backend, series: int) -> None:
        self._backend = backend
        self._series = series
        self._choose = random.Random(series)
        self._ids = UlidSource()
        self._embedder = HashEmbedder()
        self._own: list[Memory] = []

    async def run(self) -> None:
        """Write until the end of the process."""
        for number in itertools.count(1):
            try:
                await self._write(number)
            except StoreBusy:
                continue  # seven others are at it; nothing was acknowledged

    def _write(self, number: int) -> Coroutine[Any, Any, None]:  # Any: nothing is sent in
        active = [memory for memory in self._own if isinstance(memory.status, Active)]
        kinds = [self._add, self._say, self._update, self._supersede, self._forget, self._embed]
        weights = (4, 2, 2, 2, 1, 2) if active else (1, 1, 0, 0, 0, 0)
        kind = self._choose.choices(kinds, weights)[0]
        return kind(number, self._choose.choice(active)) if active else kind(number, None)

    def _text(self, number: int) -> str:
        return f"note {number} of writer {self._series}: {' '.join(self._choose.sample(_WORDS, 5))}"

    def _new(self, number: int) -> Memory:
        now = datetime.now(UTC)
        return Memory(
            id=MemoryId(self._ids.new_id()),
            content=self._text(number),
            visibility=Visibility.GLOBAL,
            project=None,
            tags=tuple(self._choose.sample(_WORDS, 2)),
            times=Times(learned=now, updated=now, confirmed=now),
        )

    async def _add(self, number: int, _: Memory | None) -> None:
        await self._commit(Action.ADD, Edit(before=None, after=self._new(number)))

    async def _update(self, number: int, old: Memory | None) -> None:
        assert old is not None
        await self._commit(Action.UPDATE, Edit(before=old, after=replace(old, content=self._text(number))))

    async def _supersede(self, number: int, old: Memory | None) -> None:
        assert old is not None
        new = self._new(number)
        hidden = supersede(old, by=new.id, now=datetime.now(UTC))
        await self._commit(Action.SUPERSEDE, Edit(before=None, after=new), Edit(before=old, after=hidden))

    async def _forget(self, number: int, old: Memory | None) -> None:
        assert old is not None
        gone = forget(old, now=datetime.now(UTC), reason="no longer so")
        await self._commit(Action.FORGET, Edit(before=old, after=gone))

    async def _commit(self, action: Action, *edits: Edit) -> None:
        change = Change(
            id=ChangeId(self._ids.new_id()), at=datetime.now(UTC), author=Author.AGENT, action=action, edits=edits
        )
        stored = await self._backend.memories.commit(change)
        _tell({"change": change.id, "memories": [_state(edit.after) for edit in stored.edits]})
        written = {edit.after.id: edit.after for edit in stored.edits}
        self._own = [*(memory for memory in self._own if memory.id not in written), *written.values()][-_KEPT:]

    async def _say(self, number: int, _: Memory | None) -> None:
        message, session = MessageId(self._ids.new_id()), SessionId(f"ses-{self._series}")
        part = Part(id=PartId(self._ids.new_id()), kind="text", text=self._text(number))
        now = datetime.now(UTC)
        said = Message(id=message, session=session, role=Role.USER, created_at=now, completed_at=now, parts=(part,))
        await self._backend.conversations.put_messages([said])
        _tell({"message": message})

    async def _embed(self, number: int, _: Memory | None) -> None:
        some = self._own[-4:]
        model = await self._embedder.model()
        vectors = await self._embedder.embed([memory.content for memory in some])
        ready = [
            Embedded(id=memory.id, revision=memory.revision, vector=vector)
            for memory, vector in zip(some, vectors, strict=True)
            if vector is not None
        ]
        await self._backend.vectors.put_vectors(ready, model=model)


def _state(memory: Memory) -> dict[str, object]:
    return {
        "id": memory.id, "n": memory.n, "revision": memory.revision, "content": memory.content,
        "status": type(memory.status).__name__,
    }  # fmt: skip


def _tell(what: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def told_in(lines: Iterator[str]) -> list[dict[str, Any]]:  # Any: the fields are those of ``_tell``
    """What a writer told; a last line that was cut off by its death tells nothing."""
    return [json.loads(line) for line in lines if line.endswith("\n")]


def main() -> None:
    """Write to the store that the command line names."""
    store, location, series = sys.argv[1:4]
    anyio.run(Writer(STORES[store].open(location), int(series)).run)


if __name__ == "__main__":
    main()
