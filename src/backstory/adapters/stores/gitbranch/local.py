"""Putting into the local store what stands on a ref: memories under their numbers, and a history that is one line.

What is known of the refs is in ``index.py``. Everything here runs inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from backstory.adapters.stores.gitbranch.index import memory, stand_alone
from backstory.adapters.stores.sqlite.doubts import let_go_of_doubts
from backstory.adapters.stores.sqlite.dreams import let_go_of_summaries
from backstory.adapters.stores.sqlite.frozen_texts import withdraw_showing
from backstory.adapters.stores.sqlite.rows import (
    COUNTED,
    WRITTEN,
    counter_row,
    image,
    memory_from_image,
    memory_row,
    to_us,
)
from backstory.adapters.stores.sqlite.vectors import renew_vectors
from backstory.adapters.stores.sqlite.words import index_words, unindex_words
from backstory.domain.history import WITHHELD, Change, Edit, no_longer_doubted, no_longer_summed_up, with_counted
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.memory import Memory, is_withheld, searchable_text
from backstory.domain.scope import circle


def insert_change(raw: sqlite3.Connection, new: Change) -> None:
    """Put a change into the history whose memories are here. A key that another change has, and a change undone that is
    not here, are left out."""
    taken = raw.execute("SELECT 1 FROM changes WHERE key = ?", (new.key,)).fetchone()
    undone = raw.execute("SELECT id FROM changes WHERE id = ?", (new.undoes,)).fetchone()
    raw.execute(
        "INSERT INTO changes (id, at_us, author, action, reason, session, undoes, key) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            new.id, to_us(new.at), new.author.value, new.action.value, new.reason, new.session,
            new.undoes if undone else None, None if taken else new.key,
        ),
    )  # fmt: skip
    for position, edit in enumerate(new.edits):
        raw.execute(
            "INSERT INTO change_edits (change, position, n, before, after) SELECT ?, ?, n, ?, ? FROM memories "
            "WHERE id = ?",
            (new.id, position, image(edit.before) if edit.before else None, image(edit.after), edit.after.id),
        )


def put(raw: sqlite3.Connection, wanted: Memory) -> Memory:
    """Put a memory in place of what is known of it, with its revision; what is counted is this store's own.

    Its number is kept unless another memory has it; 0 asks for a fresh one, or the one it has.
    """
    known = memory(raw, wanted.id)
    n = _number(raw, wanted, known)
    if known is None:
        after = replace(wanted, n=n)
        columns = (*WRITTEN, *COUNTED)
        raw.execute(
            f"INSERT INTO memories ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
            (*memory_row(after), *counter_row(after)),
        )
        if not n:
            after = replace(after, n=int(raw.execute("SELECT last_insert_rowid()").fetchone()[0]))
        _put_tags(raw, after)
        index_words(raw, after)
    else:
        if known.n != n:
            renumber(raw, known, n)
        after = replace(with_counted(wanted, of=known), n=n)
        assignments = ", ".join(f"{name} = ?" for name in WRITTEN[1:])
        raw.execute(f"UPDATE memories SET {assignments} WHERE n = ?", (*memory_row(after)[1:], n))
        _put_tags(raw, after)
        if searchable_text(known) != searchable_text(after):
            unindex_words(raw, n)
            index_words(raw, after)
            raw.execute("DELETE FROM vectors WHERE n = ?", (n,))
        elif circle(known) != circle(after):
            unindex_words(raw, n)
            index_words(raw, after)
            renew_vectors(raw, n)
        _let_go(raw, Edit(before=known, after=after))
    if is_withheld(after):
        withdraw_showing(raw, [after.id], because=WITHHELD)
    return after


def _let_go(raw: sqlite3.Connection, edit: Edit) -> None:
    """Remove what was derived from a memory that is another now, as a commit does."""
    if no_longer_summed_up(edit):
        let_go_of_summaries(raw, [edit.after.id])
    if no_longer_doubted(edit):
        let_go_of_doubts(raw, [edit.after.id])


def vacate(raw: sqlite3.Connection, coming: Memory, ref: str) -> None:
    """Free the number of a memory that is about to get another one; it has a negative one until then."""
    row = raw.execute(
        "SELECT m.n FROM memories m JOIN git_memories g ON g.memory = m.id WHERE m.id = ? AND g.ref = ?",
        (coming.id, ref),
    ).fetchone()
    if row is not None and coming.n not in (0, row[0]):
        known = memory(raw, coming.id)
        assert known is not None
        renumber(raw, known, -known.n)


def renumber(raw: sqlite3.Connection, known: Memory, n: int) -> None:
    """Give a memory another number, with everything that hangs on it."""
    raw.execute("PRAGMA defer_foreign_keys = ON")
    unindex_words(raw, known.n)
    raw.execute("UPDATE memories SET n = ? WHERE n = ?", (n, known.n))
    for table in ("memory_tags", "memory_sessions", "change_edits"):
        raw.execute(f"UPDATE {table} SET n = ? WHERE n = ?", (n, known.n))
    raw.execute("UPDATE vectors SET n = ? WHERE n = ?", (n, known.n))
    renew_vectors(raw, n)
    index_words(raw, replace(known, n=n))
    raw.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'memories'", (n,))


def fresh_number(raw: sqlite3.Connection) -> int:
    """A number that no memory here ever had."""
    row = raw.execute("SELECT seq FROM sqlite_sequence WHERE name = 'memories'").fetchone()
    return (int(row[0]) if row else 0) + 1


def make_one_line(raw: sqlite3.Connection, memory_id: MemoryId, *, last: ChangeId | None) -> None:
    """Let the history of a memory be one line that leads to what is here, each edit beginning where the one before it
    ended; on the ref it may have branches. ``last`` is the change that counts; None keeps the order."""
    known = memory(raw, memory_id)
    if known is None:
        return
    rows = raw.execute(
        "SELECT e.change, e.position, e.before IS NULL, e.after, c.at_us FROM change_edits e "
        "JOIN changes c ON c.id = e.change WHERE e.n = ?",
        (known.n,),
    ).fetchall()
    edits = [(row[0], row[1], bool(row[2]), memory_from_image(row[3]), int(row[4])) for row in rows]
    if last is None:
        edits.sort(key=lambda edit: edit[3].revision)
    else:
        # what was private meanwhile begins anew on the ref; the first beginning alone comes first, whatever clocks say
        first = min(((edit[4], edit[0]) for edit in edits if edit[2]), default=(0, ""))[1]
        edits.sort(key=lambda edit: (edit[0] == last, edit[0] != first, edit[4], edit[0]))
    before: Memory | None = None
    for revision, (change_id, position, _, after, _) in enumerate(edits, start=1):
        standing = replace(known if revision == len(edits) else after, n=known.n, revision=revision)
        raw.execute(
            "UPDATE change_edits SET before = ?, after = ? WHERE change = ? AND position = ?",
            (None if before is None else image(before), image(standing), change_id, position),
        )
        before = standing
    if before is not None:
        raw.execute("UPDATE memories SET revision = ? WHERE n = ?", (before.revision, known.n))


def drop_history(raw: sqlite3.Connection, ref: str) -> None:
    """Take out the changes that stand on a ref as a whole, to read them anew."""
    raw.execute("PRAGMA defer_foreign_keys = ON")
    whole = "SELECT change FROM git_changes WHERE ref = ? AND local = 0"
    raw.execute(f"DELETE FROM change_edits WHERE change IN ({whole})", (ref,))
    raw.execute(f"UPDATE changes SET undoes = NULL WHERE undoes IN ({whole})", (ref,))
    raw.execute(f"DELETE FROM changes WHERE id IN ({whole})", (ref,))
    raw.execute("DELETE FROM git_changes WHERE ref = ? AND local = 0", (ref,))


def drop_memory(raw: sqlite3.Connection, gone: MemoryId) -> None:
    """Take out a memory that stands on its ref no more, with all that hangs on it."""
    row = raw.execute("SELECT n FROM memories WHERE id = ?", (gone,)).fetchone()
    if row is not None:
        withdraw_showing(raw, [gone], because=WITHHELD)
        let_go_of_summaries(raw, [gone])  # a doubt goes with the row
        unindex_words(raw, row[0])
        for table in ("memory_tags", "memory_sessions", "change_edits", "vectors", "memories"):
            raw.execute(f"DELETE FROM {table} WHERE n = ?", (row[0],))
    stand_alone(raw, gone)


def _number(raw: sqlite3.Connection, wanted: Memory, known: Memory | None) -> int:
    if wanted.n == 0:
        return known.n if known else 0
    holder = raw.execute("SELECT id FROM memories WHERE n = ? AND id <> ?", (wanted.n, wanted.id)).fetchone()
    if holder is None:
        return wanted.n
    written = raw.execute("SELECT recorded FROM git_memories WHERE memory = ?", (holder[0],)).fetchone()
    if written is not None and written[0]:
        return known.n if known is not None and known.n > 0 else fresh_number(raw)
    other = memory(raw, MemoryId(holder[0]))
    assert other is not None
    renumber(raw, other, max(fresh_number(raw), wanted.n + 1))
    make_one_line(raw, other.id, last=None)
    return wanted.n


def _put_tags(raw: sqlite3.Connection, after: Memory) -> None:
    raw.execute("DELETE FROM memory_tags WHERE n = ?", (after.n,))
    raw.executemany(
        "INSERT INTO memory_tags (n, position, tag) VALUES (?, ?, ?)",
        [(after.n, position, tag) for position, tag in enumerate(after.tags)],
    )
