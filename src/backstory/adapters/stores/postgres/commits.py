"""Changes of memories in Postgres: reading them, and writing one with all that follows from it, within the transaction
that runs. Reading memories is in ``memories.py``."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.doubts import let_go_of_doubts
from backstory.adapters.stores.postgres.dreams import let_go_of_summaries
from backstory.adapters.stores.postgres.filters import where
from backstory.adapters.stores.postgres.frozen_texts import withdraw_showing
from backstory.adapters.stores.postgres.project_moves import take_back
from backstory.adapters.stores.postgres.tables import MEMORIES
from backstory.adapters.stores.postgres.tenancy import TENANT, lock_tenant
from backstory.adapters.stores.postgres.words import index_words, unindex_words
from backstory.adapters.stores.sqlite.rows import (
    COUNTED,
    WRITTEN,
    change_from_rows,
    counter_row,
    image,
    memory_from_image,
    memory_row,
    to_us,
)
from backstory.domain.history import WITHHELD, Change, Edit, doubts_settled, sources_lost, touched, withheld
from backstory.domain.ids import ChangeId
from backstory.domain.memory import Memory, searchable_text
from backstory.domain.selection import Selection
from backstory.domain.text import normalise
from backstory.errors import Conflict

_Raw = psycopg.Connection[Any]
CHANGE = "c.id, c.at_us, c.author, c.action, c.reason, c.session, c.undoes, c.key"
_INSERTED = (*WRITTEN, *COUNTED, "normalised")
_ADDED = replace(MEMORIES, columns={name: MEMORIES.columns.get(name, "text") for name in _INSERTED})
_UPDATE = (
    f"UPDATE memories SET {', '.join(f'{name} = %s' for name in (*WRITTEN[1:], 'normalised'))}"
    f" WHERE tenant = {TENANT} AND id = %s AND revision = %s"
)


def first_value(raw: _Raw, statement: str, *parameters: object) -> Any:  # Any: whatever the statement counts
    """The first value of the first row; None without a row."""
    row = raw.execute(statement, parameters).fetchone()
    return None if row is None else row[0]


def change_by_id(raw: _Raw, change_id: ChangeId) -> Change | None:
    """One change, within the transaction that runs."""
    return _change(raw, "c.id = %s", change_id)


def _change(raw: _Raw, condition: str, value: str) -> Change | None:
    statement = f"SELECT {CHANGE} FROM changes c WHERE c.tenant = {TENANT} AND {condition}"
    return next(iter(changes(raw, statement, value)), None)


def changes(raw: _Raw, statement: str, *parameters: object) -> list[Change]:
    """The changes whose ``CHANGE`` columns a statement selects, in its order, with their edits."""
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
    if lost := sources_lost(change):
        let_go_of_summaries(raw, lost)
    if settled := doubts_settled(change):
        let_go_of_doubts(raw, settled)
    if change.undoes is not None:
        take_back(raw, change)
    return replace(change, edits=edits)


def _check(raw: _Raw, change: Change, absent: Selection | None) -> None:
    if absent is not None:
        clause = where(absent)
        if first_value(raw, f"SELECT 1 FROM memories m WHERE {clause.sql} LIMIT 1", *clause.parameters):
            raise Conflict("somebody else has stored such a memory in the meantime")
    if first_value(raw, f"SELECT 1 FROM changes WHERE tenant = {TENANT} AND id = %s", change.id):
        raise Conflict(f"the change {change.id} was committed already")
    if len(set(touched(change))) < len(change.edits):
        raise Conflict(f"the change {change.id} writes one memory twice")
    added = [edit.after.id for edit in change.edits if edit.before is None]
    known = first_value(raw, f"SELECT id FROM memories WHERE tenant = {TENANT} AND id = ANY(%s) LIMIT 1", added)
    if known is not None:
        raise Conflict(f"a memory with the id {known} exists already")


def _numbered(raw: _Raw, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits as they will be stored; what is not new is written already, since only that tells whether it may be."""
    added = sum(edit.before is None for edit in edits)
    last = 0
    if added:
        statement = f"UPDATE tenants SET last_n = last_n + %s WHERE tenant = {TENANT} RETURNING last_n"
        last = int(first_value(raw, statement, added))
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
    rows = [(edit.after.n, image(edit.before) if edit.before else None, image(edit.after)) for edit in edits]
    raw.execute(
        "INSERT INTO change_edits (change, position, n, before, after)"
        " SELECT %s, position - 1, n, before::jsonb, after::jsonb FROM unnest(%s::bigint[], %s::text[], %s::text[])"
        " WITH ORDINALITY AS given (n, before, after, position)",
        (change.id, *_by_column(rows)),
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
    """All by one statement: one for each takes five times as long, and COPY is not for tables with row security."""
    if memories:
        rows = [(*memory_row(memory), *counter_row(memory), normalise(memory.content)) for memory in memories]
        raw.execute(_ADDED.insert, _by_column(rows))


def _write_tags(raw: _Raw, new: Sequence[Memory], retagged: Sequence[Memory]) -> None:
    if retagged:
        numbers = [memory.n for memory in retagged]
        raw.execute(f"DELETE FROM memory_tags WHERE tenant = {TENANT} AND n = ANY(%s)", (numbers,))
    rows = [(memory.n, position, tag) for memory in (*new, *retagged) for position, tag in enumerate(memory.tags)]
    if rows:
        raw.execute(
            "INSERT INTO memory_tags (n, position, tag) SELECT * FROM unnest(%s::bigint[], %s::int[], %s::text[])",
            _by_column(rows),
        )


def _update(raw: _Raw, before: Memory, after: Memory) -> Memory:
    written = replace(after, n=before.n, revision=before.revision + 1)
    values = (*memory_row(written)[1:], normalise(written.content), before.id, before.revision)
    if raw.execute(_UPDATE, values).rowcount != 1:
        raise Conflict(f"memory #{before.n} was changed by somebody else in the meantime; read it again")
    return written


def _by_column(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]
