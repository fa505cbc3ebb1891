"""The word index over FTS5: keeping it in step with the memories, and finding candidates in it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence

from backstory.adapters.stores.sqlite.connection import Connection
from backstory.adapters.stores.sqlite.filters import Where, where
from backstory.adapters.stores.sqlite.rows import COLUMNS, content_key, memory_from_row
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory, searchable_text
from backstory.domain.selection import Selection
from backstory.domain.text import ANALYSER_VERSION, analyse
from backstory.ports.index import TextHit, TextSearch, affordable, is_common


class SqliteTextIndex:
    """The TextIndex over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def search_text(self, tokens: Sequence[str], selection: Selection, *, limit: int) -> TextSearch:
        clause = where(selection)
        return await self._connection.read(lambda raw: _search(raw, tuple(dict.fromkeys(tokens)), clause, limit))


def index_words(raw: sqlite3.Connection, memory: Memory) -> None:
    """Put a memory's tokens into the word index, where it has none yet."""
    tokens = analyse(searchable_text(memory))
    raw.execute("INSERT INTO memory_words (rowid, tokens) VALUES (?, ?)", (memory.n, " ".join(tokens)))
    _count(raw, documents=1, tokens=len(tokens))


def unindex_words(raw: sqlite3.Connection, n: int) -> None:
    """Take a memory's tokens out of the word index."""
    row = raw.execute("SELECT tokens FROM memory_words WHERE rowid = ?", (n,)).fetchone()
    if row is not None:
        raw.execute("DELETE FROM memory_words WHERE rowid = ?", (n,))
        _count(raw, documents=-1, tokens=-len(row[0].split()))


def reindex_if_stale(raw: sqlite3.Connection) -> bool:
    """Rebuild all that the analyser made if it was another version's. The caller holds the write transaction."""
    row = raw.execute("SELECT analyser FROM word_statistics").fetchone()
    if row is not None and row[0] == ANALYSER_VERSION:
        return False
    raw.execute("DELETE FROM memory_words")
    raw.execute(
        "INSERT OR REPLACE INTO word_statistics (id, documents, tokens, analyser) VALUES (1, 0, 0, ?)",
        (ANALYSER_VERSION,),
    )
    for memory in list(_all(raw)):
        index_words(raw, memory)
        raw.execute("UPDATE memories SET content_key = ? WHERE n = ?", (content_key(memory.content), memory.n))
    return True


def is_stale(raw: sqlite3.Connection) -> bool:
    """Whether ``reindex_if_stale`` would rebuild."""
    row = raw.execute("SELECT analyser FROM word_statistics").fetchone()
    return row is None or row[0] != ANALYSER_VERSION


def _all(raw: sqlite3.Connection) -> Iterable[Memory]:
    for row in raw.execute(f"SELECT {COLUMNS} FROM memories m ORDER BY m.n"):
        tags = raw.execute("SELECT tag FROM memory_tags WHERE n = ? ORDER BY position", (row[0],))
        yield memory_from_row(row, tuple(tag for (tag,) in tags))


def _count(raw: sqlite3.Connection, *, documents: int, tokens: int) -> None:
    raw.execute("UPDATE word_statistics SET documents = documents + ?, tokens = tokens + ?", (documents, tokens))


def _search(raw: sqlite3.Connection, tokens: Sequence[str], clause: Where, limit: int) -> TextSearch:
    documents, total_tokens = raw.execute("SELECT documents, tokens FROM word_statistics").fetchone() or (0, 0)
    frequency = {token: _frequency(raw, token) for token in tokens}
    wanted, dropped = affordable(frequency, documents=documents)
    by_age = any(is_common(frequency[token], documents=documents) for token in wanted)
    hits = _candidates(raw, tokens, wanted, clause, limit, by_age=by_age) if wanted else []
    return TextSearch(
        hits=hits,
        frequency=frequency,
        documents=documents,
        mean_length=total_tokens / documents if documents else 0.0,
        dropped=dropped,
    )


def _frequency(raw: sqlite3.Connection, token: str) -> int:
    row = raw.execute("SELECT doc FROM memory_vocabulary WHERE term = ?", (token,)).fetchone()
    return 0 if row is None else int(row[0])


def _candidates(
    raw: sqlite3.Connection, tokens: Sequence[str], wanted: Sequence[str], clause: Where, limit: int, *, by_age: bool
) -> list[TextHit]:
    order = "w.rowid DESC" if by_age else "w.rank, m.n DESC"  # FTS5 stops at the limit only in the order of its rows
    rows = raw.execute(
        "SELECT m.id, w.tokens FROM memory_words w JOIN memories m ON m.n = w.rowid "
        f"WHERE w.memory_words MATCH ? AND {clause.sql} ORDER BY {order} LIMIT ?",
        (" OR ".join(map(_quote, wanted)), *clause.parameters, limit),
    )
    return [_hit(MemoryId(memory_id), text.split(), tokens) for memory_id, text in rows]


def _quote(token: str) -> str:
    return '"' + token.replace('"', '""') + '"'


def _hit(memory_id: MemoryId, held: Sequence[str], tokens: Sequence[str]) -> TextHit:
    counts = Counter(held)
    matched = {token: counts[token] for token in tokens if token in counts}
    return TextHit(id=memory_id, matched=matched, length=len(held))
