"""Writing a change of memories, with all that follows from it, in the transaction of whoever calls.

Reading them is ``memories.py``.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from backstory.adapters.stores.sqlite.doubts import let_go_of_doubts
from backstory.adapters.stores.sqlite.dreams import let_go_of_summaries
from backstory.adapters.stores.sqlite.filters import where
from backstory.adapters.stores.sqlite.frozen_texts import withdraw_showing
from backstory.adapters.stores.sqlite.memories import stored_change
from backstory.adapters.stores.sqlite.project_moves import take_back
from backstory.adapters.stores.sqlite.rows import COUNTED, WRITTEN, counter_row, image, memory_row, to_us
from backstory.adapters.stores.sqlite.vectors import renew_vectors
from backstory.adapters.stores.sqlite.words import index_words, unindex_words
from backstory.domain.history import WITHHELD, Change, Edit, doubts_settled, sources_lost, touched, withheld
from backstory.domain.memory import Memory, searchable_text
from backstory.domain.scope import circle
from backstory.domain.selection import Selection
from backstory.errors import Conflict


def commit_change(raw: sqlite3.Connection, change: Change, absent: Selection | None) -> Change:
    """Write a change within the transaction that runs, as ``MemoryStore.commit`` promises."""
    if change.key is not None and (earlier := stored_change(raw, "c.key = ?", change.key)) is not None:
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
