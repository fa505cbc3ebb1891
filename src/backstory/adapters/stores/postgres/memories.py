"""Memories, their history and their counters in Postgres. Searching them is in ``words.py`` and ``vectors.py``."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.conversation import withdraw_showing
from backstory.adapters.stores.postgres.filters import Where, where, where_in_sight
from backstory.adapters.stores.postgres.project_moves import take_back
from backstory.adapters.stores.postgres.tenancy import TENANT, lock_tenant
from backstory.adapters.stores.postgres.texts import check_storable
from backstory.adapters.stores.postgres.words import index_words, unindex_words
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
from backstory.domain.history import WITHHELD, Change, Edit, check_not_empty, touched, withheld
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.memory import Memory, searchable_text
from backstory.domain.scope import Viewer
from backstory.domain.selection import Selection
from backstory.domain.text import normalise
from backstory.errors import Conflict
from backstory.ports.store import Capabilities, Order, Use

_Raw = psycopg.Connection[Any]
_NUMBER_LIMIT = 1 << 63
_TAGS = "ARRAY(SELECT g.tag FROM memory_tags g WHERE g.tenant = m.tenant AND g.n = m.n ORDER BY g.position)"
_MEMORY = f"{COLUMNS}, {_TAGS}"
_CHANGE = "c.id, c.at_us, c.author, c.action, c.reason, c.session, c.undoes, c.key"
_INSERTED = (*WRITTEN, *COUNTED, "normalised")
_INSERT = f"INSERT INTO memories ({', '.join(_INSERTED)}) VALUES ({', '.join(['%s'] * len(_INSERTED))})"
_UPDATE = (
    f"UPDATE memories SET {', '.join(f'{name} = %s' for name in (*WRITTEN[1:], 'normalised'))}"
    f" WHERE tenant = {TENANT} AND id = %s AND revision = %s"
)


class PostgresMemories:
    """The MemoryStore over one store."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            name="postgres",
            location=self._connection.location,
            durable=True,
            shared_between_processes=True,
            read_only=self._connection.read_only,
        )

    async def get(self, ids: Sequence[MemoryId]) -> dict[MemoryId, Memory]:
        statement = f"SELECT {_MEMORY} FROM memories m WHERE m.tenant = {TENANT} AND m.id = ANY(%s)"

        def work(raw: _Raw) -> dict[MemoryId, Memory]:
            return {memory.id: memory for memory in _memories(raw, statement, list(ids))}

        return await self._connection.read(work)

    async def by_number(self, n: int) -> Memory | None:
        statement = f"SELECT {_MEMORY} FROM memories m WHERE m.tenant = {TENANT} AND m.n = %s"

        def work(raw: _Raw) -> Memory | None:
            return next(iter(_memories(raw, statement, n)), None)

        return await self._connection.read(work) if 0 < n < _NUMBER_LIMIT else None

    async def select(
        self, selection: Selection, *, limit: int, offset: int = 0, order: Order = Order.NEWEST
    ) -> list[Memory]:
        clause = where(selection)
        direction = "DESC" if order is Order.NEWEST else "ASC"
        statement = (
            f"SELECT {_MEMORY} FROM memories m WHERE {clause.sql} "
            f"ORDER BY m.learned_us {direction}, m.n {direction} LIMIT %s OFFSET %s"
        )
        return await self._connection.read(lambda raw: _memories(raw, statement, *clause.parameters, limit, offset))

    async def count(self, selection: Selection) -> int:
        clause = where(selection)
        statement = f"SELECT count(*) FROM memories m WHERE {clause.sql}"
        return await self._connection.read(lambda raw: int(_one(raw, statement, *clause.parameters)))

    async def commit(self, change: Change, *, absent: Selection | None = None) -> Change:
        check_not_empty(change)
        check_storable(change)

        def again(raw: _Raw) -> Change:
            lock_tenant(raw)  # so that a commit that is still under way ends first
            return change_by_id(raw, change.id) or commit_change(raw, change, absent)

        return await self._connection.write(lambda raw: commit_change(raw, change, absent), again=again)

    async def history(
        self, *, memory: MemoryId | None = None, viewer: Viewer | None = None, limit: int = 50
    ) -> list[Change]:
        clause = Where([f"c.tenant = {TENANT}"]) if viewer is None else where_in_sight(viewer)
        if memory is not None:
            clause.add(
                "c.id IN (SELECT e.change FROM change_edits e JOIN memories m ON m.tenant = e.tenant AND m.n = e.n"
                f" WHERE e.tenant = {TENANT} AND m.id = %s)",
                memory,
            )
        statement = f"SELECT {_CHANGE} FROM changes c WHERE {clause.sql} ORDER BY c.at_us DESC, c.id DESC LIMIT %s"
        return await self._connection.read(lambda raw: _changes(raw, statement, *clause.parameters, limit))

    async def change(self, change_id: ChangeId) -> Change | None:
        return await self._connection.read(lambda raw: change_by_id(raw, change_id))

    async def record_use(self, use: Use) -> None:
        column, stamp = ("surfaced", "surfaced_us") if use.surfaced else ("recalled", "used_us")
        statement = f"UPDATE memories SET {column} = {column} + 1, {stamp} = %s WHERE tenant = {TENANT} AND id = %s"

        def work(raw: _Raw) -> None:
            for memory_id in sorted(use.memories):  # in one order, so that two of these never wait for each other
                raw.execute(statement, (to_us(use.at), memory_id))
                if use.session is not None:
                    _count_session(raw, memory_id, use.session)

        await self._connection.write(work)

    async def tag_counts(self, selection: Selection, *, limit: int) -> list[tuple[str, int]]:
        clause = where(selection)
        statement = (
            "SELECT g.tag, count(*) AS uses FROM memory_tags g JOIN memories m ON m.tenant = g.tenant AND m.n = g.n"
            f" WHERE {clause.sql} GROUP BY g.tag ORDER BY uses DESC, g.tag LIMIT %s"
        )

        def work(raw: _Raw) -> list[tuple[str, int]]:
            return [(str(tag), int(uses)) for tag, uses in raw.execute(statement, (*clause.parameters, limit))]

        return await self._connection.read(work)

    async def close(self) -> None:
        await self._connection.close()


def _one(raw: _Raw, statement: str, *parameters: object) -> Any:  # Any: whatever the statement counts
    row = raw.execute(statement, parameters).fetchone()
    return None if row is None else row[0]


def _memories(raw: _Raw, statement: str, *parameters: object) -> list[Memory]:
    return [memory_from_row(row[:-1], tuple(row[-1])) for row in raw.execute(statement, parameters)]


def change_by_id(raw: _Raw, change_id: ChangeId) -> Change | None:
    """One change, within the transaction that runs."""
    return _change(raw, "c.id = %s", change_id)


def _change(raw: _Raw, condition: str, value: str) -> Change | None:
    statement = f"SELECT {_CHANGE} FROM changes c WHERE c.tenant = {TENANT} AND {condition}"
    return next(iter(_changes(raw, statement, value)), None)


def _changes(raw: _Raw, statement: str, *parameters: object) -> list[Change]:
    rows = raw.execute(statement, parameters).fetchall()
    edits: dict[str, list[Edit]] = {row[0]: [] for row in rows}
    for change_id, before, after in raw.execute(
        "SELECT change, before::text, after::text FROM change_edits"
        f" WHERE tenant = {TENANT} AND change = ANY(%s) ORDER BY change, position",
        (list(edits),),
    ):
        edits[change_id].append(
            Edit(before=None if before is None else memory_from_image(before), after=memory_from_image(after))
        )
    return [change_from_rows(row, tuple(edits[row[0]])) for row in rows]


def commit_change(raw: _Raw, change: Change, absent: Selection | None) -> Change:
    """Write a change within the transaction that runs, as ``MemoryStore.commit`` promises."""
    lock_tenant(raw)
    if change.key is not None and (earlier := _change(raw, "c.key = %s", change.key)) is not None:
        return earlier
    _check(raw, change, absent)
    edits = _numbered(raw, change.edits)
    with raw.pipeline():  # the rest in one round trip
        _insert_change(raw, change, edits)
        _write_what_follows(raw, edits)
    if hidden := withheld(change):
        withdraw_showing(raw, hidden, because=WITHHELD)
    if change.undoes is not None:
        take_back(raw, change)
    return replace(change, edits=edits)


def _check(raw: _Raw, change: Change, absent: Selection | None) -> None:
    if absent is not None:
        clause = where(absent)
        if _one(raw, f"SELECT 1 FROM memories m WHERE {clause.sql} LIMIT 1", *clause.parameters):
            raise Conflict("somebody else has stored such a memory in the meantime")
    if _one(raw, f"SELECT 1 FROM changes WHERE tenant = {TENANT} AND id = %s", change.id):
        raise Conflict(f"the change {change.id} was committed already")
    if len(set(touched(change))) < len(change.edits):
        raise Conflict(f"the change {change.id} writes one memory twice")
    added = [edit.after.id for edit in change.edits if edit.before is None]
    known = _one(raw, f"SELECT id FROM memories WHERE tenant = {TENANT} AND id = ANY(%s) LIMIT 1", added)
    if known is not None:
        raise Conflict(f"a memory with the id {known} exists already")


def _numbered(raw: _Raw, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits as they will be stored; what is not new is written already, since only that tells whether it may be."""
    added = sum(edit.before is None for edit in edits)
    last = 0
    if added:
        statement = f"UPDATE tenants SET last_n = last_n + %s WHERE tenant = {TENANT} RETURNING last_n"
        last = int(_one(raw, statement, added))
    numbers = itertools.count(last - added + 1)
    return tuple(
        replace(edit, after=replace(edit.after, n=next(numbers), revision=1))
        if edit.before is None
        else replace(edit, after=_update(raw, edit.before, edit.after))
        for edit in edits
    )


def _insert_change(raw: _Raw, change: Change, edits: Sequence[Edit]) -> None:
    raw.execute(
        "INSERT INTO changes (id, at_us, author, action, reason, session, undoes, key)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
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
    _insert(raw, [edit.after for edit in edits if edit.before is None])
    with raw.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO change_edits (change, position, n, before, after) VALUES (%s, %s, %s, %s, %s)",
            [
                (change.id, position, edit.after.n, image(edit.before) if edit.before else None, image(edit.after))
                for position, edit in enumerate(edits)
            ],
        )


def _write_what_follows(raw: _Raw, edits: Sequence[Edit]) -> None:
    """Tags and the word index; vectors of a text that is no more go."""
    new = [edit.after for edit in edits if edit.before is None]
    retagged = [edit.after for edit in edits if edit.before is not None and edit.before.tags != edit.after.tags]
    reworded = [
        edit.after
        for edit in edits
        if edit.before is not None and searchable_text(edit.before) != searchable_text(edit.after)
    ]
    _write_tags(raw, new, retagged)
    if reworded:
        gone = [memory.n for memory in reworded]
        unindex_words(raw, gone)
        raw.execute(f"DELETE FROM vectors WHERE tenant = {TENANT} AND n = ANY(%s)", (gone,))
    if new or reworded:
        index_words(raw, [*new, *reworded])


def _insert(raw: _Raw, memories: Sequence[Memory]) -> None:
    with raw.cursor() as cursor:
        cursor.executemany(
            _INSERT,
            [(*memory_row(memory), *counter_row(memory), normalise(memory.content)) for memory in memories],
        )


def _write_tags(raw: _Raw, new: Sequence[Memory], retagged: Sequence[Memory]) -> None:
    if retagged:
        numbers = [memory.n for memory in retagged]
        raw.execute(f"DELETE FROM memory_tags WHERE tenant = {TENANT} AND n = ANY(%s)", (numbers,))
    rows = [(memory.n, position, tag) for memory in (*new, *retagged) for position, tag in enumerate(memory.tags)]
    if rows:
        raw.execute(
            "INSERT INTO memory_tags (n, position, tag) SELECT * FROM unnest(%s::bigint[], %s::int[], %s::text[])",
            [list(column) for column in zip(*rows, strict=True)],
        )


def _update(raw: _Raw, before: Memory, after: Memory) -> Memory:
    written = replace(after, n=before.n, revision=before.revision + 1)
    values = (*memory_row(written)[1:], normalise(written.content), before.id, before.revision)
    if raw.execute(_UPDATE, values).rowcount != 1:
        raise Conflict(f"memory #{before.n} was changed by somebody else in the meantime; read it again")
    return written


def _count_session(raw: _Raw, memory_id: MemoryId, session: str) -> None:
    added = raw.execute(
        "INSERT INTO memory_sessions (n, session)"
        f" SELECT n, %s FROM memories WHERE tenant = {TENANT} AND id = %s ON CONFLICT DO NOTHING",
        (session, memory_id),
    )
    if added.rowcount == 1:
        raw.execute(f"UPDATE memories SET sessions = sessions + 1 WHERE tenant = {TENANT} AND id = %s", (memory_id,))
