"""The word index in two tables: keeping it in step with the memories, and finding candidates in it.

Candidates come in the order in which SQLite's have them, so that both stores find the same ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.filters import Where, where
from backstory.adapters.stores.postgres.tenancy import TENANT, lock_tenant
from backstory.adapters.stores.postgres.texts import is_storable
from backstory.adapters.stores.sqlite.rows import COLUMNS, content_key, memory_from_row
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory, searchable_text
from backstory.domain.selection import Selection
from backstory.domain.statement_form import INDEX_VERSION
from backstory.domain.text import analyse, normalise
from backstory.ports.index import TextHit, TextSearch, affordable, is_common

_Raw = psycopg.Connection[Any]
_REINDEXED = 1000  # memories at a time

_MOST_TELLING = f"""
    SELECT m.id, m.n FROM (
        SELECT t.n, sum(w.tells) AS told FROM unnest(%s::text[], %s::float8[]) AS w (term, tells)
        JOIN memory_terms t ON t.tenant = {TENANT} AND t.term = w.term
        GROUP BY t.n ORDER BY told DESC, t.n DESC
    ) found JOIN memories m ON m.n = found.n
    WHERE {{condition}} ORDER BY found.told DESC, found.n DESC LIMIT %s
"""
_NEWEST = f"""
    SELECT m.id, m.n FROM memory_terms t JOIN memories m ON m.tenant = t.tenant AND m.n = t.n
    WHERE t.tenant = {TENANT} AND t.term = %s AND {{condition}} ORDER BY t.n DESC LIMIT %s
"""


class PostgresTextIndex:
    """The TextIndex over one store."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def search_text(self, tokens: Sequence[str], selection: Selection, *, limit: int) -> TextSearch:
        clause = where(selection)
        return await self._connection.read(lambda raw: _search(raw, tuple(dict.fromkeys(tokens)), clause, limit))


def index_words(raw: _Raw, memories: Sequence[Memory]) -> None:
    """Put the tokens of memories that have none yet into the word index. The caller holds the tenant's lock."""
    rows: list[tuple[str, int, int, int]] = []
    frequency: Counter[str] = Counter()
    total = 0
    for memory in memories:
        tokens = analyse(searchable_text(memory))
        counts = Counter(tokens)
        rows += [(term, memory.n, count, len(tokens)) for term, count in counts.items()]
        frequency.update(counts.keys())
        total += len(tokens)
    if rows:
        raw.execute(
            "INSERT INTO memory_terms (term, n, count, length)"
            " SELECT * FROM unnest(%s::text[], %s::bigint[], %s::int[], %s::int[])",
            [list(column) for column in zip(*rows, strict=True)],
        )
    _count(raw, frequency, documents=len(memories), tokens=total)


def unindex_words(raw: _Raw, numbers: Sequence[int]) -> None:
    """Take the tokens of memories out of the word index. The caller holds the tenant's lock."""
    gone = raw.execute(
        f"DELETE FROM memory_terms WHERE tenant = {TENANT} AND n = ANY(%s) RETURNING term, count", (list(numbers),)
    ).fetchall()
    frequency: Counter[str] = Counter()
    for term, _ in gone:
        frequency[term] -= 1
    _count(raw, frequency, documents=-len(numbers), tokens=-sum(count for _, count in gone))


def reindex_if_stale(raw: _Raw) -> bool:
    """Rebuild all that the analyser made if it was another version's. Runs in a write transaction of its own."""
    if not _is_stale(raw):
        return False
    lock_tenant(raw)
    if not _is_stale(raw):  # another process was first
        return False
    for table in ("memory_terms", "term_frequencies"):
        raw.execute(f"DELETE FROM {table} WHERE tenant = {TENANT}")
    raw.execute(
        f"UPDATE tenants SET documents = 0, tokens = 0, analyser = %s WHERE tenant = {TENANT}", (INDEX_VERSION,)
    )
    last = 0
    while batch := _after(raw, last):
        index_words(raw, batch)
        with raw.cursor() as cursor:
            cursor.executemany(
                f"UPDATE memories SET content_key = %s, normalised = %s WHERE tenant = {TENANT} AND n = %s",
                [(content_key(memory.content), normalise(memory.content), memory.n) for memory in batch],
            )
        last = batch[-1].n
    return True


def _is_stale(raw: _Raw) -> bool:
    row = raw.execute(f"SELECT analyser FROM tenants WHERE tenant = {TENANT}").fetchone()
    return row is None or row[0] != INDEX_VERSION


def _after(raw: _Raw, n: int) -> list[Memory]:
    tags = "ARRAY(SELECT g.tag FROM memory_tags g WHERE g.tenant = m.tenant AND g.n = m.n ORDER BY g.position)"
    rows = raw.execute(
        f"SELECT {COLUMNS}, {tags} FROM memories m WHERE m.tenant = {TENANT} AND m.n > %s ORDER BY m.n LIMIT %s",
        (n, _REINDEXED),
    )
    return [memory_from_row(row[:-1], tuple(row[-1])) for row in rows]


def _count(raw: _Raw, frequency: Counter[str], *, documents: int, tokens: int) -> None:
    if frequency:
        # in one order, so that the rows of a tenant are always locked alike
        terms = sorted(frequency)
        raw.execute(
            "INSERT INTO term_frequencies AS known (term, documents) SELECT * FROM unnest(%s::text[], %s::bigint[])"
            " ON CONFLICT (tenant, term) DO UPDATE SET documents = known.documents + excluded.documents",
            (terms, [frequency[term] for term in terms]),
        )
    raw.execute(
        f"UPDATE tenants SET documents = documents + %s, tokens = tokens + %s WHERE tenant = {TENANT}",
        (documents, tokens),
    )


def _search(raw: _Raw, tokens: Sequence[str], clause: Where, limit: int) -> TextSearch:
    documents, total_tokens = raw.execute(
        f"SELECT documents, tokens FROM tenants WHERE tenant = {TENANT}"
    ).fetchone() or (0, 0)
    frequency = _frequencies(raw, tokens)
    mean_length = total_tokens / documents if documents else 0.0
    wanted, dropped = affordable(frequency, documents=documents)
    if any(is_common(frequency[token], documents=documents) for token in wanted):
        found = _newest(raw, wanted[0], clause, limit)
    else:
        rarities = [_rarity(frequency[token], documents=documents) for token in wanted]
        found = _most_telling(raw, wanted, rarities, clause, limit) if wanted else []
    return TextSearch(
        hits=_hits(raw, found, [token for token in tokens if frequency[token]]),
        frequency=frequency,
        documents=documents,
        mean_length=mean_length,
        dropped=dropped,
    )


def _frequencies(raw: _Raw, tokens: Sequence[str]) -> dict[str, int]:
    askable = [token for token in tokens if is_storable(token)]
    rows = raw.execute(
        f"SELECT term, documents FROM term_frequencies WHERE tenant = {TENANT} AND term = ANY(%s)", (askable,)
    )
    return dict.fromkeys(tokens, 0) | {str(term): int(count) for term, count in rows}


def _rarity(count: int, *, documents: int) -> float:
    """In whole millionths, so that sums are exact in any order, and ties are ties."""
    return round(1e6 * math.log(1.0 + (documents - count + 0.5) / (count + 0.5)))


def _most_telling(
    raw: _Raw, wanted: Sequence[str], rarities: Sequence[float], clause: Where, limit: int
) -> list[tuple[MemoryId, int]]:
    """Those whose tokens tell most together, then the newest; counts and lengths are weighed by the caller."""
    statement = _MOST_TELLING.format(condition=clause.sql)
    rows = raw.execute(statement, (list(wanted), list(rarities), *clause.parameters, limit))
    return [(MemoryId(row[0]), row[1]) for row in rows]


def _newest(raw: _Raw, token: str, clause: Where, limit: int) -> list[tuple[MemoryId, int]]:
    rows = raw.execute(_NEWEST.format(condition=clause.sql), (token, *clause.parameters, limit))
    return [(MemoryId(row[0]), row[1]) for row in rows]


def _hits(raw: _Raw, found: Sequence[tuple[MemoryId, int]], tokens: Sequence[str]) -> list[TextHit]:
    lengths: dict[int, int] = {}
    counts: dict[int, dict[str, int]] = {n: {} for _, n in found}
    for n, term, count, length in raw.execute(
        f"SELECT n, term, count, length FROM memory_terms WHERE tenant = {TENANT} AND n = ANY(%s) AND term = ANY(%s)",
        (list(counts), list(tokens)),
    ):
        lengths[n] = length
        counts[n][term] = count
    return [
        TextHit(id=memory_id, matched={t: counts[n][t] for t in tokens if t in counts[n]}, length=lengths[n])
        for memory_id, n in found
    ]
