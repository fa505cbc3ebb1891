"""Memories, their history and their counters in SQLite. Searching them is in ``words.py`` and ``vectors.py``."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from backstory.adapters.stores.sqlite.connection import Connection
from backstory.adapters.stores.sqlite.doubts import let_go_of_doubts
from backstory.adapters.stores.sqlite.dreams import let_go_of_summaries
from backstory.adapters.stores.sqlite.filters import Where, where, where_in_sight
from backstory.adapters.stores.sqlite.frozen_texts import withdraw_showing
from backstory.adapters.stores.sqlite.project_moves import take_back
from backstory.adapters.stores.sqlite.rows import (
    COLUMNS,
    COUNTED,
    WRITTEN,
    change_from_rows,
    counter_row,
    image,
    memory_from_image,
    memory_from_row,
    memory_row,
    to_us,
)
from backstory.adapters.stores.sqlite.vectors import renew_vectors
from backstory.adapters.stores.sqlite.words import index_words, unindex_words
from backstory.domain.history import (
    WITHHELD,
    Change,
    Edit,
    check_not_empty,
    doubts_settled,
    sources_lost,
    touched,
    withheld,
)
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.memory import Memory, searchable_text
from backstory.domain.scope import Viewer, circle
from backstory.domain.selection import Selection
from backstory.errors import Conflict
from backstory.ports.store import Capabilities, Order, Use

_CHANGE_COLUMNS = "c.id, c.at_us, c.author, c.action, c.reason, c.session, c.undoes, c.key"
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

    async def count(self, selection: Selection) -> int:
        clause = where(selection)
        statement = f"SELECT count(*) FROM memories m WHERE {clause.sql}"
        return await self._connection.read(lambda raw: int(raw.execute(statement, clause.parameters).fetchone()[0]))

    async def commit(self, change: Change, *, absent: Selection | None = None) -> Change:
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
        return await self._connection.read(lambda raw: _change(raw, "c.id = ?", change_id))

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


def _change(raw: sqlite3.Connection, condition: str, value: str) -> Change | None:
    row = raw.execute(f"SELECT {_CHANGE_COLUMNS} FROM changes c WHERE {condition}", (value,)).fetchone()
    return None if row is None else change_from_rows(row, _edits(raw, row[0]))


def _edits(raw: sqlite3.Connection, change_id: str) -> tuple[Edit, ...]:
    rows = raw.execute("SELECT before, after FROM change_edits WHERE change = ? ORDER BY position", (change_id,))
    return tuple(
        Edit(before=None if before is None else memory_from_image(before), after=memory_from_image(after))
        for before, after in rows
    )


def commit_change(raw: sqlite3.Connection, change: Change, absent: Selection | None) -> Change:
    """Write a change within the transaction that runs, as ``MemoryStore.commit`` promises."""
    if change.key is not None and (earlier := _change(raw, "c.key = ?", change.key)) is not None:
        return earlier
    if absent is not None and _exists(raw, absent):
        raise Conflict("somebody else has stored such a memory in the meantime")
    if raw.execute("SELECT 1 FROM changes WHERE id = ?", (change.id,)).fetchone() is not None:
        raise Conflict(f"the change {change.id} was committed already")
    if len(set(touched(change))) < len(change.edits):
        raise Conflict(f"the change {change.id} writes one memory twice")
    raw.execute(
        "INSERT INTO changes (id, at_us, author, action, reason, session, undoes, key) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            change.id,
            to_us(change.at),
            change.author.value,
            change.action.value,
            change.reason,
            change.session,
            change.undoes,
            change.key,
        ),
    )
    edits = tuple(_write_edit(raw, edit) for edit in change.edits)
    raw.executemany(
        "INSERT INTO change_edits (change, position, n, before, after) VALUES (?, ?, ?, ?, ?)",
        [
            (change.id, position, edit.after.n, image(edit.before) if edit.before else None, image(edit.after))
            for position, edit in enumerate(edits)
        ],
    )
    if hidden := withheld(change):
        withdraw_showing(raw, hidden, because=WITHHELD)
    let_go_of_summaries(raw, sources_lost(change))
    let_go_of_doubts(raw, doubts_settled(change))
    if change.undoes is not None:
        take_back(raw, change)
    return replace(change, edits=edits)


def _exists(raw: sqlite3.Connection, selection: Selection) -> bool:
    clause = where(selection)
    return raw.execute(f"SELECT 1 FROM memories m WHERE {clause.sql} LIMIT 1", clause.parameters).fetchone() is not None


def _write_edit(raw: sqlite3.Connection, edit: Edit) -> Edit:
    after = _insert(raw, edit.after) if edit.before is None else _update(raw, edit.before, edit.after)
    if edit.before is None:
        _insert_tags(raw, after)
        index_words(raw, after)
        return replace(edit, after=after)
    if edit.before.tags != after.tags:
        raw.execute("DELETE FROM memory_tags WHERE n = ?", (after.n,))
        _insert_tags(raw, after)
    if searchable_text(edit.before) != searchable_text(after):
        unindex_words(raw, after.n)
        index_words(raw, after)
        raw.execute("DELETE FROM vectors WHERE n = ?", (after.n,))
    elif circle(edit.before) != circle(after):
        unindex_words(raw, after.n)
        index_words(raw, after)
        renew_vectors(raw, after.n)
    return replace(edit, after=after)


def _insert_tags(raw: sqlite3.Connection, memory: Memory) -> None:
    raw.executemany(
        "INSERT INTO memory_tags (n, position, tag) VALUES (?, ?, ?)",
        [(memory.n, position, tag) for position, tag in enumerate(memory.tags)],
    )


def _insert(raw: sqlite3.Connection, memory: Memory) -> Memory:
    if raw.execute("SELECT 1 FROM memories WHERE id = ?", (memory.id,)).fetchone() is not None:
        raise Conflict(f"a memory with the id {memory.id} exists already")
    _, name, _, *rest = memory_row(memory)
    row = (None, name, 1, *rest, *counter_row(memory))
    columns = (*WRITTEN, *COUNTED)
    cursor = raw.execute(f"INSERT INTO memories ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", row)
    return replace(memory, n=int(cursor.lastrowid or 0), revision=1)


def _update(raw: sqlite3.Connection, before: Memory, after: Memory) -> Memory:
    written = replace(after, n=before.n, revision=before.revision + 1)
    assignments = ", ".join(f"{name} = ?" for name in WRITTEN[1:])
    cursor = raw.execute(
        f"UPDATE memories SET {assignments} WHERE id = ? AND revision = ?",
        (*memory_row(written)[1:], before.id, before.revision),
    )
    if cursor.rowcount != 1:
        raise Conflict(f"memory #{before.n} was changed by somebody else in the meantime; read it again")
    return written


def _count_session(raw: sqlite3.Connection, memory_id: MemoryId, session: str) -> None:
    added = raw.execute(
        "INSERT OR IGNORE INTO memory_sessions (n, session) SELECT n, ? FROM memories WHERE id = ?",
        (session, memory_id),
    )
    if added.rowcount == 1:
        raw.execute("UPDATE memories SET sessions = sessions + 1 WHERE id = ?", (memory_id,))
