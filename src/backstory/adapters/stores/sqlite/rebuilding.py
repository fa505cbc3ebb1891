"""Making everything derived anew from memories and messages, a few at a time, so that others may write in between."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial

from backstory.adapters.stores.sqlite.connection import Connection
from backstory.adapters.stores.sqlite.digests import mend_digests
from backstory.adapters.stores.sqlite.doubts import mend_doubts
from backstory.adapters.stores.sqlite.dreams import mend_dreams
from backstory.adapters.stores.sqlite.frozen_texts import withdraw_showing
from backstory.adapters.stores.sqlite.passages import index_session, mark_current
from backstory.adapters.stores.sqlite.rows import COLUMNS, memory_from_row
from backstory.adapters.stores.sqlite.verified_evidence import LONE_BLOBS, LONE_REFS, SHOWN_BY_BLOCKS
from backstory.adapters.stores.sqlite.verified_memories import LONE_WORD_VECTORS, lookups_of, sums_of, unfit, words_of
from backstory.adapters.stores.sqlite.words import index_words, unindex_words
from backstory.domain.evidence_passages import PassageLimits
from backstory.domain.history import WITHHELD
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory
from backstory.domain.statement_form import INDEX_VERSION
from backstory.domain.text import ANALYSER_VERSION
from backstory.ports.upkeep import Progress, Rebuilt

_BATCH = 200  # memories in one transaction: about 50 ms, which another writer waits without noticing
_ANOTHER_VERSION = 0  # of the analyser: whoever opens the store after a crash in between makes the words anew


async def rebuild(connection: Connection, limits: PassageLimits, progress: Progress | None) -> Rebuilt:
    """What ``StoreUpkeep.rebuild`` promises."""
    done = progress or (lambda count: None)
    await connection.write(_make_readable_indexes)
    corrected = await _rebuild_memories(connection, done)
    passages = await _rebuild_passages(connection, limits, done)
    corrected += await connection.write(_settle)
    corrected += await mend_digests(connection)
    corrected += await connection.write(mend_dreams) + await connection.write(mend_doubts)
    memories = await connection.read(_counting("memories"))
    return Rebuilt(memories=memories, passages=passages, corrected=corrected)


def _counting(table: str) -> Callable[[sqlite3.Connection], int]:
    return lambda raw: int(raw.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _make_readable_indexes(raw: sqlite3.Connection) -> None:
    """Make a word index that SQLite cannot read as an empty one. Its statistics say so until it is full again."""
    for words, vocabulary, statistics in (
        ("memory_words", "memory_vocabulary", "word_statistics"),
        ("passage_words", "passage_vocabulary", "passage_statistics"),
    ):
        if _is_sound(raw, words):
            continue
        statements = [
            str(raw.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0])
            for table in (words, vocabulary)
        ]
        raw.execute(f"DROP TABLE {vocabulary}")
        raw.execute(f"DROP TABLE {words}")
        for statement in statements:
            raw.execute(statement)
        raw.execute(f"UPDATE {statistics} SET documents = 0, tokens = 0, analyser = ?", (_ANOTHER_VERSION,))


def _is_sound(raw: sqlite3.Connection, words: str) -> bool:
    try:
        raw.execute(f"INSERT INTO {words} ({words}) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        if "malformed" not in str(error):
            raise
        return False
    return True


async def _rebuild_memories(connection: Connection, done: Progress) -> int:
    corrected, last = 0, 0
    while True:
        count, last, wrong = await connection.write(partial(_rebuild_some, after=last))
        corrected += wrong
        if not count:
            return corrected
        done(count)


def _rebuild_some(raw: sqlite3.Connection, after: int) -> tuple[int, int, int]:
    """The memories with the next numbers: how many, the last of them, and how many were wrong."""
    statement = f"SELECT {COLUMNS} FROM memories m WHERE m.n > ? ORDER BY m.n LIMIT {_BATCH}"
    rows = raw.execute(statement, (after,)).fetchall()
    wrong = sum(_rebuild_one(raw, memory_from_row(row, _tags(raw, row[0]))) for row in rows)
    return len(rows), rows[-1][0] if rows else after, wrong


def _tags(raw: sqlite3.Connection, n: int) -> tuple[str, ...]:
    return tuple(tag for (tag,) in raw.execute("SELECT tag FROM memory_tags WHERE n = ? ORDER BY position", (n,)))


def _rebuild_one(raw: sqlite3.Connection, memory: Memory) -> bool:
    """Put a memory's words and the columns it is searched by right; whether they were wrong."""
    wrong = False
    stored = raw.execute("SELECT content_key, state, superseded_by FROM memories WHERE n = ?", (memory.n,)).fetchone()
    if stored != (wanted := lookups_of(memory)):
        raw.execute(
            "UPDATE memories SET content_key = ?, state = ?, superseded_by = ? WHERE n = ?", (*wanted, memory.n)
        )
        wrong = True
    row = raw.execute("SELECT tokens, circle FROM memory_words WHERE rowid = ?", (memory.n,)).fetchone()
    if row != words_of(memory):
        unindex_words(raw, memory.n)
        index_words(raw, memory)
        wrong = True
    return wrong


async def _rebuild_passages(connection: Connection, limits: PassageLimits, done: Progress) -> int:
    statement = "SELECT session FROM messages UNION SELECT session FROM passages"
    for (session,) in await connection.read(lambda raw: raw.execute(statement).fetchall()):
        await connection.write(partial(_rebuild_session, session=session, limits=limits))
        done(1)
    return await connection.read(_counting("passages"))


def _rebuild_session(raw: sqlite3.Connection, session: str, limits: PassageLimits) -> None:
    gone = (
        "SELECT n FROM passages WHERE session = ? AND message NOT IN (SELECT id FROM messages WHERE removed_us IS NULL)"
    )
    for (n,) in raw.execute(gone, (session,)).fetchall():
        raw.execute("DELETE FROM passage_words WHERE rowid = ?", (n,))
        raw.execute("DELETE FROM passages WHERE n = ?", (n,))
    index_session(raw, session, limits)


def _settle(raw: sqlite3.Connection) -> int:
    """Remove what belongs to nothing, sum up anew, and note that all words are of this version; how much was wrong."""
    wrong = 0
    for words, rows in (("memory_words", "memories"), ("passage_words", "passages")):
        wrong += raw.execute(f"DELETE FROM {words} WHERE rowid NOT IN (SELECT n FROM {rows})").rowcount
    for vectors, rows in (("vectors", "memories"), ("passage_vectors", "passages")):
        wrong += raw.execute(f"DELETE FROM {vectors} WHERE {unfit(rows)}").rowcount
    wrong += raw.execute(f"DELETE FROM passage_word_vectors WHERE {LONE_WORD_VECTORS}").rowcount
    wrong += _sum_up(raw, "memory_words", "word_statistics", INDEX_VERSION)
    wrong += _sum_up(raw, "passage_words", "passage_statistics", ANALYSER_VERSION)
    mark_current(raw)
    wrong += raw.execute(f"DELETE FROM part_blobs WHERE part IN ({LONE_REFS})").rowcount
    wrong += raw.execute(f"DELETE FROM blobs WHERE hash IN ({LONE_BLOBS})").rowcount
    return wrong + _note_showings(raw) + _withdraw_hidden(raw)


def _sum_up(raw: sqlite3.Connection, words: str, statistics: str, version: int) -> int:
    wanted = (*sums_of(raw, words), version)
    present = raw.execute(f"SELECT documents, tokens, analyser FROM {statistics}").fetchone()
    raw.execute(f"INSERT OR REPLACE INTO {statistics} (id, documents, tokens, analyser) VALUES (1, ?, ?, ?)", wanted)
    return int(present != wanted)


def _note_showings(raw: sqlite3.Connection) -> int:
    kept = "SELECT memory, message FROM recall_block_memories"
    missing = raw.execute(f"{SHOWN_BY_BLOCKS} EXCEPT {kept}").fetchall()
    strange = raw.execute(f"{kept} EXCEPT {SHOWN_BY_BLOCKS}").fetchall()
    raw.executemany("DELETE FROM recall_block_memories WHERE memory = ? AND message = ?", strange)
    raw.executemany("INSERT OR IGNORE INTO recall_block_memories (memory, message) VALUES (?, ?)", missing)
    return len(missing) + len(strange)


def _withdraw_hidden(raw: sqlite3.Connection) -> int:
    statement = "SELECT id FROM memories WHERE state = 'deleted' OR sensitivity <> 'normal'"
    hidden: Sequence[MemoryId] = [MemoryId(memory) for (memory,) in raw.execute(statement)]
    before = raw.total_changes
    withdraw_showing(raw, hidden, because=WITHHELD)
    return raw.total_changes - before
