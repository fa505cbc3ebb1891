"""Doubts about memories in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from backstory.adapters.stores.sqlite.connection import Connection
from backstory.adapters.stores.sqlite.dreams import is_readable

if TYPE_CHECKING:  # the memories import this for their commits
    from backstory.domain.doubt import Doubt
    from backstory.domain.ids import MemoryId

COLUMNS = "memory, anchor, reason, since_us"
SETTLED = "SELECT d.memory FROM doubts d JOIN memories m ON m.id = d.memory WHERE m.state = 'deleted'"
"""The memories that are forgotten, and that a doubt is kept of."""
_BATCH = 500  # stays below SQLite's limit of bound parameters in every build since 3.7 (999)


class SqliteDoubts:
    """The DoubtStore over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def doubts(self, memories: Sequence[MemoryId] | None = None) -> Mapping[MemoryId, Doubt]:
        rows = await self._connection.read(lambda raw: _rows(raw, memories))
        found = map(doubt_from_row, rows)
        return {doubt.memory: doubt for doubt in found}

    async def replace(self, looked_at: Sequence[MemoryId], doubts: Sequence[Doubt]) -> None:
        await self._connection.write(lambda raw: _replace(raw, looked_at, doubts))


def let_go_of_doubts(raw: sqlite3.Connection, memories: Sequence[MemoryId]) -> None:
    """Remove the doubts about the memories."""
    raw.executemany("DELETE FROM doubts WHERE memory = ?", [(memory,) for memory in memories])


def unreadable_doubts(raw: sqlite3.Connection) -> list[str]:
    """The memories with a doubt that no Backstory writes."""
    return [row[0] for row in _rows(raw, None) if not is_readable(partial(doubt_from_row, row))]


def mend_doubts(raw: sqlite3.Connection) -> int:
    """Remove the doubts that cannot be read, and those about memories that are forgotten; how many those were."""
    unreadable = [(memory,) for memory in unreadable_doubts(raw)]
    raw.executemany("DELETE FROM doubts WHERE memory = ?", unreadable)
    return len(unreadable) + raw.execute(f"DELETE FROM doubts WHERE memory IN ({SETTLED})").rowcount


def _rows(raw: sqlite3.Connection, memories: Sequence[MemoryId] | None) -> list[Sequence[Any]]:
    if memories is None:
        return raw.execute(f"SELECT {COLUMNS} FROM doubts ORDER BY memory").fetchall()
    found = []
    for start in range(0, len(memories), _BATCH):
        batch = memories[start : start + _BATCH]
        marks = ", ".join("?" * len(batch))
        found += raw.execute(f"SELECT {COLUMNS} FROM doubts WHERE memory IN ({marks})", batch).fetchall()
    return found


def _replace(raw: sqlite3.Connection, looked_at: Sequence[MemoryId], doubts: Sequence[Doubt]) -> None:
    from backstory.adapters.stores.sqlite.rows import to_us

    let_go_of_doubts(raw, looked_at)
    meant = set(looked_at)
    raw.executemany(
        f"INSERT OR REPLACE INTO doubts ({COLUMNS}) "
        "SELECT id, ?, ?, ? FROM memories WHERE id = ? AND state <> 'deleted'",
        [(doubt.anchor, doubt.reason, to_us(doubt.since), doubt.memory) for doubt in doubts if doubt.memory in meant],
    )


def doubt_from_row(row: Sequence[Any]) -> Doubt:
    """The doubt of a row of ``COLUMNS``. Raises StoreDamaged for values that no Backstory writes."""
    from backstory.adapters.stores.sqlite.rows import from_us
    from backstory.domain.doubt import Doubt
    from backstory.errors import StoreDamaged

    memory, anchor, reason, since_us = row
    try:
        return Doubt(memory=memory, anchor=anchor, reason=reason, since=from_us(since_us))
    except (ValueError, TypeError, OverflowError) as error:
        raise StoreDamaged(f"the doubt about memory {memory} in the store cannot be read: {error}") from error
