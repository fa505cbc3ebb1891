"""The word index over FTS5: keeping it in step with the memories, and finding candidates in it."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from backstory.adapters.stores.sqlite.connection import Connection
from backstory.adapters.stores.sqlite.filters import Where, where
from backstory.adapters.stores.sqlite.rows import COLUMNS, content_key, memory_from_row
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory, searchable_text
from backstory.domain.scope import circle, circles
from backstory.domain.selection import Selection
from backstory.domain.statement_form import INDEX_VERSION
from backstory.domain.text import analyse
from backstory.ports.index import TextHit, TextSearch, affordable, is_common

_MAX_TOKENS = 200  # SQLite joins up to 500 searches; the rarest tokens of a longer query tell enough


class SqliteTextIndex:
    """The TextIndex over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def search_text(self, tokens: Sequence[str], selection: Selection, *, limit: int) -> TextSearch:
        wanted = tuple(dict.fromkeys(tokens))
        sight = _Sight(where(selection), circles(selection.viewer))
        return await self._connection.read(lambda raw: _search(raw, wanted, sight, limit))


@dataclass(frozen=True, slots=True)
class _Sight:
    """Which memories count: an exact condition, and the circles outside which none meets it (None: any may)."""

    clause: Where
    circles: frozenset[str] | None

    def match(self, token: str) -> str:
        """An FTS5 query for the rows that hold a token."""
        if self.circles is None:
            return f"tokens : {_quote(token)}"
        return f"tokens : {_quote(token)} AND circle : ({' OR '.join(map(_quote, sorted(self.circles - {''})))})"


def index_words(raw: sqlite3.Connection, memory: Memory) -> None:
    """Put a memory's tokens into the word index, where it has none yet."""
    tokens = analyse(searchable_text(memory))
    row = (memory.n, " ".join(tokens), circle(memory))
    raw.execute("INSERT INTO memory_words (rowid, tokens, circle) VALUES (?, ?, ?)", row)
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
    if row is not None and row[0] == INDEX_VERSION:
        return False
    raw.execute("DELETE FROM memory_words")
    raw.execute(
        "INSERT OR REPLACE INTO word_statistics (id, documents, tokens, analyser) VALUES (1, 0, 0, ?)",
        (INDEX_VERSION,),
    )
    for memory in list(_all(raw)):
        index_words(raw, memory)
        raw.execute("UPDATE memories SET content_key = ? WHERE n = ?", (content_key(memory.content), memory.n))
    return True


def is_stale(raw: sqlite3.Connection) -> bool:
    """Whether ``reindex_if_stale`` would rebuild."""
    row = raw.execute("SELECT analyser FROM word_statistics").fetchone()
    return row is None or row[0] != INDEX_VERSION


def _all(raw: sqlite3.Connection) -> Iterable[Memory]:
    for row in raw.execute(f"SELECT {COLUMNS} FROM memories m ORDER BY m.n"):
        tags = raw.execute("SELECT tag FROM memory_tags WHERE n = ? ORDER BY position", (row[0],))
        yield memory_from_row(row, tuple(tag for (tag,) in tags))


def _count(raw: sqlite3.Connection, *, documents: int, tokens: int) -> None:
    raw.execute("UPDATE word_statistics SET documents = documents + ?, tokens = tokens + ?", (documents, tokens))


def _search(raw: sqlite3.Connection, tokens: Sequence[str], sight: _Sight, limit: int) -> TextSearch:
    documents, total_tokens = raw.execute("SELECT documents, tokens FROM word_statistics").fetchone() or (0, 0)
    frequency = {token: _frequency(raw, token) for token in tokens}
    wanted, dropped = affordable(frequency, documents=documents)
    if any(is_common(frequency[token], documents=documents) for token in wanted):
        rows = _newest(raw, wanted, sight, limit)
    else:
        rows = _most_telling(raw, {token: _rarity(frequency[token], documents) for token in wanted}, sight, limit)
    return TextSearch(
        hits=[_hit(MemoryId(memory_id), text.split(), tokens) for memory_id, text in rows],
        frequency=frequency,
        documents=documents,
        mean_length=total_tokens / documents if documents else 0.0,
        dropped=dropped,
    )


def _frequency(raw: sqlite3.Connection, token: str) -> int:
    row = raw.execute("SELECT doc FROM memory_vocabulary WHERE term = ? AND col = 'tokens'", (token,)).fetchone()
    return 0 if row is None else int(row[0])


def _rarity(frequency: int, documents: int) -> float:
    return math.log(1.0 + (documents - frequency + 0.5) / (frequency + 0.5))


def _newest(raw: sqlite3.Connection, wanted: Sequence[str], sight: _Sight, limit: int) -> Iterable[tuple[str, str]]:
    """The newest of those that hold any of the tokens: FTS5 stops at the limit only in the order of its rows."""
    return raw.execute(
        "SELECT m.id, w.tokens FROM memory_words w JOIN memories m ON m.n = w.rowid "
        f"WHERE w.memory_words MATCH ? AND {sight.clause.sql} ORDER BY w.rowid DESC LIMIT ?",
        (" OR ".join(f"({sight.match(token)})" for token in wanted), *sight.clause.parameters, limit),
    )


def _most_telling(
    raw: sqlite3.Connection, rarities: Mapping[str, float], sight: _Sight, limit: int
) -> Iterable[tuple[str, str]]:
    """Those whose tokens tell most together, then the newest.

    FTS5's own ``rank`` (BM25) would read the lengths and counts of all that match: 1.8 ms among 10,000 memories and 7.5
    among 100,000, against 0.8 and 1.8 for this; counts and lengths are weighed afterwards, for the best alone.
    """
    rarest = sorted(rarities, key=lambda token: -rarities[token])[:_MAX_TOKENS]
    if not rarest:
        return ()
    each = "SELECT rowid AS n, ? AS tells FROM memory_words WHERE memory_words MATCH ?"
    told = (value for token in rarest for value in (rarities[token], sight.match(token)))
    # CROSS JOIN fixes the order: the best first, so that few of them are held against the condition
    return raw.execute(
        f"SELECT m.id, w.tokens FROM (SELECT n, sum(tells) AS told FROM ({' UNION ALL '.join([each] * len(rarest))}) "
        "GROUP BY n ORDER BY told DESC, n DESC) f CROSS JOIN memories m ON m.n = f.n "
        f"CROSS JOIN memory_words w ON w.rowid = f.n WHERE {sight.clause.sql} LIMIT ?",
        (*told, *sight.clause.parameters, limit),
    )


def _quote(token: str) -> str:
    return '"' + token.replace('"', '""') + '"'


def _hit(memory_id: MemoryId, held: Sequence[str], tokens: Sequence[str]) -> TextHit:
    counts = Counter(held)
    matched = {token: counts[token] for token in tokens if token in counts}
    return TextHit(id=memory_id, matched=matched, length=len(held))
