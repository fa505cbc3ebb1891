"""Memories, their history and their counters in SQLite. Searching them is in ``words.py`` and ``vectors.py``."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter

from backstory.adapters.stores.sqlite.connection import Connection
from backstory.adapters.stores.sqlite.filters import Where, where, where_in_sight
from backstory.adapters.stores.sqlite.rows import (
    COLUMNS,
    OUTLINE,
    change_from_rows,
    memory_from_image,
    memory_from_row,
    outline_from_row,
    to_us,
)
from backstory.domain.history import Change, Edit, check_not_empty
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.memory import Memory
from backstory.domain.outline import Outline
from backstory.domain.scope import Viewer
from backstory.domain.selection import Selection
from backstory.ports.store import Capabilities, Order, Use

_CHANGE_COLUMNS = "c.id, c.at_us, c.author, c.action, c.reason, c.session, c.undoes, c.key"
_TAGS = "(SELECT json_group_array(g.tag) FROM (SELECT t.tag FROM memory_tags t WHERE t.n = m.n ORDER BY t.position) g)"
_NUMBER_LIMIT = 1 << 63
_BATCH = 500  # stays below SQLite's limit of bound parameters in every build since 3.7 (999)


class SqliteMemories:
    """The MemoryStore over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            name="sqlite",
            location=str(self._connection.path),
            durable=True,
            shared_between_processes=True,
            read_only=self._connection.read_only,
        )

    async def get(self, ids: Sequence[MemoryId]) -> dict[MemoryId, Memory]:
        return await self._connection.read(lambda raw: {memory.id: memory for memory in _by_ids(raw, ids)})

    async def by_number(self, n: int) -> Memory | None:
        def work(raw: sqlite3.Connection) -> Memory | None:
            rows = raw.execute(f"SELECT {COLUMNS} FROM memories m WHERE m.n = ?", (n,)).fetchall()
            return next(iter(_memories(raw, rows)), None)

        return await self._connection.read(work) if 0 < n < _NUMBER_LIMIT else None

    async def select(
        self, selection: Selection, *, limit: int, offset: int = 0, order: Order = Order.NEWEST
    ) -> list[Memory]:
        clause = where(selection)
        direction = "DESC" if order is Order.NEWEST else "ASC"
        statement = (
            f"SELECT {COLUMNS} FROM memories m WHERE {clause.sql} "
            f"ORDER BY m.learned_us {direction}, m.n {direction} LIMIT ? OFFSET ?"
        )

        def work(raw: sqlite3.Connection) -> list[Memory]:
            return _memories(raw, raw.execute(statement, (*clause.parameters, limit, offset)).fetchall())

        return await self._connection.read(work)

    async def outlines(self, selection: Selection) -> list[Outline]:
        clause = where(selection)
        statement = f"SELECT {OUTLINE}, {_TAGS} FROM memories m WHERE {clause.sql}"

        def work(raw: sqlite3.Connection) -> list[Outline]:
            rows = sorted(raw.execute(statement, clause.parameters), key=itemgetter(0, 1))
            return [outline_from_row(row[:-1], _listed(row[-1])) for row in rows]

        return await self._connection.read(work)

    async def count(self, selection: Selection) -> int:
        clause = where(selection)
        statement = f"SELECT count(*) FROM memories m WHERE {clause.sql}"
        return await self._connection.read(lambda raw: int(raw.execute(statement, clause.parameters).fetchone()[0]))

    async def commit(self, change: Change, *, absent: Selection | None = None) -> Change:
        from backstory.adapters.stores.sqlite.commits import commit_change  # not needed by a recall

        check_not_empty(change)
        return await self._connection.write(lambda raw: commit_change(raw, change, absent))

    async def history(
        self, *, memory: MemoryId | None = None, viewer: Viewer | None = None, limit: int = 50
    ) -> list[Change]:
        clause = Where() if viewer is None else where_in_sight(viewer)
        if memory is not None:
            clause.add(
                "c.id IN (SELECT e.change FROM change_edits e JOIN memories m ON m.n = e.n WHERE m.id = ?)", memory
            )
        statement = (
            f"SELECT {_CHANGE_COLUMNS} FROM changes c WHERE {clause.sql} ORDER BY c.at_us DESC, c.id DESC LIMIT ?"
        )

        def work(raw: sqlite3.Connection) -> list[Change]:
            rows = raw.execute(statement, (*clause.parameters, limit)).fetchall()
            return [change_from_rows(row, _edits(raw, row[0])) for row in rows]

        return await self._connection.read(work)

    async def change(self, change_id: ChangeId) -> Change | None:
        return await self._connection.read(lambda raw: stored_change(raw, "c.id = ?", change_id))

    async def record_use(self, use: Use) -> None:
        column, stamp = ("surfaced", "surfaced_us") if use.surfaced else ("recalled", "used_us")

        def work(raw: sqlite3.Connection) -> None:
            for memory_id in use.memories:
                raw.execute(
                    f"UPDATE memories SET {column} = {column} + 1, {stamp} = ? WHERE id = ?", (to_us(use.at), memory_id)
                )
                if use.session is not None:
                    _count_session(raw, memory_id, use.session)

        await self._connection.write(work)

    async def tag_counts(self, selection: Selection, *, limit: int) -> list[tuple[str, int]]:
        clause = where(selection)
        statement = (
            f"SELECT g.tag, count(*) AS uses FROM memory_tags g JOIN memories m ON m.n = g.n WHERE {clause.sql} "
            "GROUP BY g.tag ORDER BY uses DESC, g.tag LIMIT ?"
        )

        def work(raw: sqlite3.Connection) -> list[tuple[str, int]]:
            return [(str(tag), int(uses)) for tag, uses in raw.execute(statement, (*clause.parameters, limit))]

        return await self._connection.read(work)

    async def close(self) -> None:
        await self._connection.close()


@lru_cache(maxsize=4096)  # thousands of memories share their tags
def _listed(tags: str) -> tuple[str, ...]:
    return tuple(json.loads(tags))


def _by_ids(raw: sqlite3.Connection, ids: Sequence[MemoryId]) -> list[Memory]:
    found: list[Memory] = []
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        marks = ", ".join("?" * len(batch))
        rows = raw.execute(f"SELECT {COLUMNS} FROM memories m WHERE m.id IN ({marks})", batch).fetchall()
        found += _memories(raw, rows)
    return found


def _memories(raw: sqlite3.Connection, rows: Sequence[Sequence[object]]) -> list[Memory]:
    tags = _tags(raw, [int(str(row[0])) for row in rows])
    return [memory_from_row(row, tuple(tags[int(str(row[0]))])) for row in rows]


def _tags(raw: sqlite3.Connection, numbers: Sequence[int]) -> defaultdict[int, list[str]]:
    tags: defaultdict[int, list[str]] = defaultdict(list)
    for start in range(0, len(numbers), _BATCH):
        batch = numbers[start : start + _BATCH]
        marks = ", ".join("?" * len(batch))
        for n, tag in raw.execute(f"SELECT n, tag FROM memory_tags WHERE n IN ({marks}) ORDER BY n, position", batch):
            tags[n].append(tag)
    return tags


def stored_change(raw: sqlite3.Connection, condition: str, value: str) -> Change | None:
    row = raw.execute(f"SELECT {_CHANGE_COLUMNS} FROM changes c WHERE {condition}", (value,)).fetchone()
    return None if row is None else change_from_rows(row, _edits(raw, row[0]))


def _edits(raw: sqlite3.Connection, change_id: str) -> tuple[Edit, ...]:
    rows = raw.execute("SELECT before, after FROM change_edits WHERE change = ? ORDER BY position", (change_id,))
    return tuple(
        Edit(before=None if before is None else memory_from_image(before), after=memory_from_image(after))
        for before, after in rows
    )


def _count_session(raw: sqlite3.Connection, memory_id: MemoryId, session: str) -> None:
    added = raw.execute(
        "INSERT OR IGNORE INTO memory_sessions (n, session) SELECT n, ? FROM memories WHERE id = ?",
        (session, memory_id),
    )
    if added.rowcount == 1:
        raw.execute("UPDATE memories SET sessions = sessions + 1 WHERE id = ?", (memory_id,))
