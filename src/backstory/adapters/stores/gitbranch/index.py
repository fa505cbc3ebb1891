"""The local store's side: what it knows of the refs. Putting into it what stands on them is in ``local.py``.

Everything here runs inside a transaction of the caller, on the tables of the SQLite store and three of our own.
"""

from __future__ import annotations

import sqlite3

from backstory.adapters.stores.sqlite.rows import (
    COLUMNS,
    change_from_rows,
    content_key,
    memory_from_image,
    memory_from_row,
)
from backstory.domain.history import Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, ProjectId
from backstory.domain.memory import Memory

_TABLES = (
    # what stands on a ref: ``recorded`` 0 means derived from a line, not written down there yet; ``own`` was made here
    "CREATE TABLE IF NOT EXISTS git_changes (change TEXT PRIMARY KEY, ref TEXT NOT NULL,"
    " recorded INTEGER NOT NULL, own INTEGER NOT NULL, local INTEGER NOT NULL) WITHOUT ROWID",
    # ``head`` is the revision of its newest image there; ``claimed`` is the origin that the ref tells of it, where that
    # is not believed here
    "CREATE TABLE IF NOT EXISTS git_memories (memory TEXT PRIMARY KEY, ref TEXT NOT NULL,"
    " recorded INTEGER NOT NULL, head INTEGER NOT NULL, claimed TEXT) WITHOUT ROWID",
    # what git was told lately, to be told again where its objects are gone
    "CREATE TABLE IF NOT EXISTS git_streams (seq INTEGER PRIMARY KEY AUTOINCREMENT, ref TEXT NOT NULL,"
    " stream BLOB NOT NULL)",
)
_STREAMS = 16
_STREAM_BYTES = 4_000_000
# Of the connection alone: what the present transaction has committed, whoever did it.
_QUEUE = (
    "CREATE TEMP TABLE IF NOT EXISTS git_queue (position INTEGER PRIMARY KEY, change TEXT NOT NULL)",
    "CREATE TEMP TRIGGER IF NOT EXISTS git_queued AFTER INSERT ON main.changes BEGIN"
    " INSERT INTO git_queue (change) VALUES (new.id); END",
)


def prepare(raw: sqlite3.Connection, *, writable: bool) -> None:
    """Make our tables. Doing it again changes nothing."""
    there = raw.execute(
        "SELECT count(*) FROM sqlite_master WHERE name IN ('git_changes', 'git_memories', 'git_streams')"
    ).fetchone()
    if there[0] < len(_TABLES) and writable:
        for statement in _TABLES:
            raw.execute(statement)
    for statement in _QUEUE:
        raw.execute(statement)


def take_queue(raw: sqlite3.Connection) -> list[Change]:
    """The changes that the present transaction has committed, in order; they are taken out of the queue."""
    queued = [row[0] for row in raw.execute("SELECT change FROM git_queue ORDER BY position")]
    if queued:
        raw.execute("DELETE FROM git_queue")
    return [found for change_id in queued if (found := change(raw, change_id)) is not None]


def clear_queue(raw: sqlite3.Connection) -> None:
    """Forget what was committed so far: it is on the ref already."""
    raw.execute("DELETE FROM git_queue")


def change(raw: sqlite3.Connection, change_id: str) -> Change | None:
    """One change as the history here has it."""
    row = raw.execute(
        "SELECT id, at_us, author, action, reason, session, undoes, key FROM changes WHERE id = ?", (change_id,)
    ).fetchone()
    if row is None:
        return None
    rows = raw.execute("SELECT before, after FROM change_edits WHERE change = ? ORDER BY position", (change_id,))
    edits = tuple(
        Edit(before=None if before is None else memory_from_image(before), after=memory_from_image(after))
        for before, after in rows
    )
    return change_from_rows(row, edits)


def keep_stream(raw: sqlite3.Connection, ref: str, stream: bytes) -> None:
    """Keep what git was told, for some writes; not the largest."""
    if len(stream) <= _STREAM_BYTES:
        raw.execute("INSERT INTO git_streams (ref, stream) VALUES (?, ?)", (ref, stream))
    raw.execute("DELETE FROM git_streams WHERE seq <= (SELECT max(seq) FROM git_streams) - ?", (_STREAMS,))


def streams(raw: sqlite3.Connection, ref: str) -> list[bytes]:
    """What git was told lately, oldest first."""
    return [bytes(row[0]) for row in raw.execute("SELECT stream FROM git_streams WHERE ref = ? ORDER BY seq", (ref,))]


def known_tip(raw: sqlite3.Connection, ref: str) -> str | None:
    """The commit that the store stands for."""
    row = raw.execute("SELECT value FROM meta WHERE name = ?", (f"git:{ref}",)).fetchone()
    return None if row is None else str(row[0])


def set_tip(raw: sqlite3.Connection, ref: str, tip: str | None) -> None:
    """Remember the commit that the store stands for from now on."""
    if tip is None:
        raw.execute("DELETE FROM meta WHERE name = ?", (f"git:{ref}",))
    else:
        raw.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", (f"git:{ref}", tip))


def own_project(raw: sqlite3.Connection, alias: str) -> ProjectId | None:
    """The project that this repository is, as the registry knows it."""
    row = raw.execute("SELECT project FROM project_aliases WHERE alias = ?", (alias,)).fetchone()
    return None if row is None else ProjectId(row[0])


def memory(raw: sqlite3.Connection, memory_id: MemoryId) -> Memory | None:
    """One memory as it is kept here."""
    row = raw.execute(f"SELECT {COLUMNS} FROM memories m WHERE m.id = ?", (memory_id,)).fetchone()
    return None if row is None else memory_from_row(row, _tags(raw, row[0]))


def memories_saying(raw: sqlite3.Connection, content: str, ref: str) -> list[Memory]:
    """The memories of a ref with this text, the oldest number first."""
    rows = raw.execute(
        f"SELECT {COLUMNS} FROM memories m JOIN git_memories g ON g.memory = m.id AND g.ref = ? "
        "WHERE m.content_key = ? ORDER BY m.n",
        (ref, content_key(content)),
    ).fetchall()
    return [memory_from_row(row, _tags(raw, row[0])) for row in rows]


def ref_of(raw: sqlite3.Connection, memory_id: MemoryId) -> str | None:
    """The ref on which a memory stands; None for one that is local, or unknown."""
    row = raw.execute("SELECT ref FROM git_memories WHERE memory = ?", (memory_id,)).fetchone()
    return None if row is None else str(row[0])


def claimed_origin(raw: sqlite3.Connection, memory_id: MemoryId) -> str | None:
    """What the ref says of a memory's origin, where that is not believed here."""
    row = raw.execute("SELECT claimed FROM git_memories WHERE memory = ?", (memory_id,)).fetchone()
    return None if row is None or row[0] is None else str(row[0])


def stand_on(
    raw: sqlite3.Connection, memory_id: MemoryId, ref: str, *, recorded: bool, head: int, claimed: str | None
) -> None:
    """Note that a memory stands on a ref; what was recorded stays so."""
    raw.execute(
        "INSERT INTO git_memories (memory, ref, recorded, head, claimed) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (memory) DO UPDATE "
        "SET recorded = max(recorded, excluded.recorded), head = excluded.head, claimed = excluded.claimed",
        (memory_id, ref, int(recorded), head, claimed),
    )


def record(raw: sqlite3.Connection, memory_id: MemoryId) -> None:
    """Note that a memory is written down on its ref."""
    raw.execute("UPDATE git_memories SET recorded = 1 WHERE memory = ?", (memory_id,))


def head_of(raw: sqlite3.Connection, memory_id: MemoryId) -> int:
    """The revision of a memory's newest image on its ref; 0 without one. Here it may have a higher one: histories that
    were joined are one line here."""
    row = raw.execute("SELECT head FROM git_memories WHERE memory = ?", (memory_id,)).fetchone()
    return 0 if row is None else int(row[0])


def stand_alone(raw: sqlite3.Connection, memory_id: MemoryId) -> None:
    """Note that a memory is local from now on."""
    raw.execute("DELETE FROM git_memories WHERE memory = ?", (memory_id,))


def note_change(raw: sqlite3.Connection, change: ChangeId, ref: str, *, recorded: bool, own: bool, local: bool) -> None:
    """Note that a change stands on a ref. ``local`` says that some of it stands here alone."""
    raw.execute(
        "INSERT INTO git_changes (change, ref, recorded, own, local) VALUES (?, ?, ?, ?, ?) ON CONFLICT (change) "
        "DO UPDATE SET recorded = max(recorded, excluded.recorded), own = max(own, excluded.own)",
        (change, ref, int(recorded), int(own), int(local)),
    )


def knows_change(raw: sqlite3.Connection, change: ChangeId) -> bool:
    """Whether a change is in the history here."""
    return raw.execute("SELECT 1 FROM changes WHERE id = ?", (change,)).fetchone() is not None


def own_changes(raw: sqlite3.Connection) -> set[str]:
    """The changes that were made here."""
    return {row[0] for row in raw.execute("SELECT change FROM git_changes WHERE own = 1")}


def own_words(raw: sqlite3.Connection) -> dict[str, set[tuple[str, str]]]:
    """The texts, each with its origin, in the changes that were made here, by change."""
    found: dict[str, set[tuple[str, str]]] = {}
    for side in ("before", "after"):
        rows = raw.execute(
            f"SELECT e.change, json_extract(e.{side}, '$.content'), json_extract(e.{side}, '$.origin') "
            f"FROM change_edits e JOIN git_changes g ON g.change = e.change WHERE g.own = 1 AND e.{side} IS NOT NULL"
        )
        for change, content, origin in rows:
            found.setdefault(change, set()).add((content, origin))
    return found


def unrecorded(raw: sqlite3.Connection, memory_id: MemoryId, ref: str) -> list[ChangeId]:
    """The changes of a memory that were derived from a ref's lines and are not written down there yet, oldest first.
    What was decided while it was private is no such change: that stands here alone for ever."""
    rows = raw.execute(
        "SELECT c.id FROM changes c JOIN git_changes g ON g.change = c.id JOIN change_edits e ON e.change = c.id "
        "JOIN memories m ON m.n = e.n WHERE m.id = ? AND g.recorded = 0 AND g.ref = ? ORDER BY c.at_us, c.id",
        (memory_id, ref),
    )
    return [ChangeId(row[0]) for row in rows]


def all_unrecorded(raw: sqlite3.Connection, ref: str) -> list[ChangeId]:
    """The changes of a ref that were derived from lines and are not written down yet, oldest first."""
    rows = raw.execute(
        "SELECT c.id FROM changes c JOIN git_changes g ON g.change = c.id WHERE g.recorded = 0 AND g.ref = ? "
        "ORDER BY c.at_us, c.id",
        (ref,),
    )
    return [ChangeId(row[0]) for row in rows]


def last_decision(raw: sqlite3.Connection, memory_id: MemoryId) -> tuple[int, str]:
    """The change that made a memory what it is here, and its time in microseconds since 1970."""
    row = raw.execute(
        "SELECT c.at_us, c.id FROM change_edits e JOIN changes c ON c.id = e.change JOIN memories m ON m.n = e.n "
        "WHERE m.id = ? ORDER BY json_extract(e.after, '$.revision') DESC, c.at_us DESC, c.id DESC LIMIT 1",
        (memory_id,),
    ).fetchone()
    return (int(row[0]), str(row[1])) if row else (-(1 << 62), "")


def highest_number_on(raw: sqlite3.Connection, ref: str) -> int:
    """The highest number of a memory that is written down on a ref; 0 without one."""
    row = raw.execute(
        "SELECT max(m.n) FROM memories m JOIN git_memories g ON g.memory = m.id WHERE g.ref = ? AND g.recorded = 1",
        (ref,),
    ).fetchone()
    return int(row[0] or 0)


def vouch(raw: sqlite3.Connection, ref: str) -> None:
    """Believe what a ref says of the origins of memories; the next replay, which reads all of it, will."""
    raw.execute("UPDATE git_changes SET own = 1 WHERE recorded = 1 AND ref = ?", (ref,))
    set_tip(raw, ref, None)


def memories_on(raw: sqlite3.Connection, ref: str) -> set[MemoryId]:
    """The ids of the memories that stand on a ref."""
    return {MemoryId(row[0]) for row in raw.execute("SELECT memory FROM git_memories WHERE ref = ?", (ref,))}


def count_unshared(raw: sqlite3.Connection) -> int:
    """How many memories stand on no ref, forgotten ones left out."""
    alone = "SELECT count(*) FROM memories WHERE state <> 'deleted' AND id NOT IN (SELECT memory FROM git_memories)"
    return int(raw.execute(alone).fetchone()[0])


def _tags(raw: sqlite3.Connection, n: int) -> tuple[str, ...]:
    return tuple(tag for (tag,) in raw.execute("SELECT tag FROM memory_tags WHERE n = ? ORDER BY position", (n,)))
