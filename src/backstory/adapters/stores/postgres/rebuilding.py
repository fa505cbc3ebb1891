"""Making everything derived in Postgres anew from memories and messages, a few at a time, so that others may write in
between. What costs a walk through a whole table is looked for without a lock, and mended under one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.digests import mend_digests
from backstory.adapters.stores.postgres.doubts import mend_doubts
from backstory.adapters.stores.postgres.dreams import mend_dreams
from backstory.adapters.stores.postgres.frozen_texts import withdraw_showing
from backstory.adapters.stores.postgres.looking import LONG, Raw
from backstory.adapters.stores.postgres.passages import index_session, lock_evidence, mark_current
from backstory.adapters.stores.postgres.tenancy import TENANT, lock_tenant
from backstory.adapters.stores.postgres.verified_evidence import (
    HIDDEN,
    LONE_BLOBS,
    LONE_REFS,
    NOTED,
    PASSAGE_SUMS,
    SHOWN_BY_BLOCKS,
    WRONG_TERMS,
)
from backstory.adapters.stores.postgres.verified_memories import (
    MISSING_TWINS,
    SUMS,
    UNFIT,
    WRONG_FREQUENCIES,
    WRONG_TWINS,
    Stored,
    indexed_terms,
    is_indexed,
    orphans,
    searched_by,
    stored_memories,
)
from backstory.adapters.stores.postgres.words import index_words, unindex_words
from backstory.domain.evidence_passages import PassageLimits
from backstory.domain.history import WITHHELD
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory
from backstory.errors import StoreDamaged
from backstory.ports.upkeep import Progress, Rebuilt

T = TypeVar("T")
_BATCH = 200  # memories in one transaction, which another writer waits for without noticing


async def rebuild(connection: Connection, limits: PassageLimits, progress: Progress | None) -> Rebuilt:
    """What ``StoreUpkeep.rebuild`` promises."""
    done = progress or (lambda count: None)
    corrected = await _rebuild_memories(connection, done)
    corrected += await _rebuild_passages(connection, limits, done)
    corrected += await _settle(connection)
    corrected += await mend_digests(connection)
    corrected += await _write(connection, mend_dreams) + await _write(connection, mend_doubts)
    return Rebuilt(
        memories=await connection.read(_counting("memories")),
        passages=await connection.read(_counting("passages")),
        corrected=corrected,
    )


def _counting(table: str) -> Callable[[Raw], int]:
    return lambda raw: int((raw.execute(f"SELECT count(*) FROM {table} WHERE tenant = {TENANT}").fetchone() or (0,))[0])


async def _read(connection: Connection, statement: str) -> list[tuple[object, ...]]:
    def work(raw: Raw) -> list[tuple[object, ...]]:
        raw.execute(LONG)
        return raw.execute(statement).fetchall()

    return await connection.read(work)


async def _write(connection: Connection, fn: Callable[[Raw], T]) -> T:
    """All that is done here may be done twice, so what a lost connection left open is."""

    def work(raw: Raw) -> T:
        raw.execute(LONG)
        return fn(raw)

    return await connection.write(work, again=work)


# --- memories ---------------------------------------------------------------------------------------------------------


async def _rebuild_memories(connection: Connection, done: Progress) -> int:
    corrected, last = 0, 0
    while True:
        count, last, wrong = await _write(connection, partial(_rebuild_some, after=last))
        corrected += wrong
        if not count:
            return corrected
        done(count)


def _rebuild_some(raw: Raw, after: int) -> tuple[int, int, int]:
    """The memories with the next numbers: how many, the last of them, and how many were wrong."""
    lock_tenant(raw)
    rows = next(stored_memories(raw, f"n > %s AND n <= {_LAST}", after, after), [])
    terms = indexed_terms(raw, [row.n for row in rows])
    wrong = sum(_rebuild_one(raw, row, is_current=_is_current(row, terms.get(row.n, {}))) for row in rows)
    return len(rows), rows[-1].n if rows else after, wrong


_LAST = (
    f"(SELECT max(n) FROM (SELECT n FROM memories WHERE tenant = {TENANT} AND n > %s ORDER BY n LIMIT {_BATCH}) batch)"
)


def _is_current(row: Stored, terms: dict[str, tuple[int, int]]) -> bool:
    if isinstance(row.memory, StoreDamaged):
        raise row.memory
    return is_indexed(row.memory, terms)


def _rebuild_one(raw: Raw, row: Stored, *, is_current: bool) -> bool:
    """Put a memory's words and the columns it is searched by right; whether they were wrong."""
    memory = row.memory
    assert isinstance(memory, Memory)
    wrong = not is_current
    if row.lookups != (wanted := searched_by(memory)):
        raw.execute(
            "UPDATE memories SET content_key = %s, state = %s, superseded_by = %s, normalised = %s "
            f"WHERE tenant = {TENANT} AND n = %s",
            (*wanted, row.n),
        )
        wrong = True
    if not is_current:
        unindex_words(raw, [row.n])
        index_words(raw, [memory])
    return wrong


# --- passages ---------------------------------------------------------------------------------------------------------


async def _rebuild_passages(connection: Connection, limits: PassageLimits, done: Progress) -> int:
    """Cut every session anew; how many terms of the index were wrong afterwards."""
    statement = (
        f"SELECT session FROM messages WHERE tenant = {TENANT} "
        f"UNION SELECT session FROM passages WHERE tenant = {TENANT}"
    )
    for (session,) in await _read(connection, statement):
        await _write(connection, partial(_rebuild_session, session=str(session), limits=limits))
        done(1)
    wrong = [row[0] for row in await _read(connection, WRONG_TERMS)]
    return await _write(connection, partial(_rebuild_terms, numbers=wrong)) if wrong else 0


def _rebuild_session(raw: Raw, session: str, limits: PassageLimits) -> None:
    lock_evidence(raw)
    gone = (
        f"DELETE FROM passages p WHERE tenant = {TENANT} AND session = %s AND NOT EXISTS (SELECT 1 FROM messages m "
        "WHERE m.tenant = p.tenant AND m.id = p.message AND m.removed_us IS NULL)"
    )
    raw.execute(gone, (session,))  # what the index still has of them is found with the rest that is wrong
    index_session(raw, session, limits)


def _rebuild_terms(raw: Raw, numbers: Sequence[object]) -> int:
    lock_evidence(raw)
    raw.execute(f"DELETE FROM passage_terms WHERE tenant = {TENANT} AND n = ANY(%s)", (list(numbers),))
    statement = f"SELECT n, tokens FROM passages WHERE tenant = {TENANT} AND n = ANY(%s)"
    for n, tokens in raw.execute(statement, (list(numbers),)).fetchall():
        counts = Counter(tokens.split())
        raw.execute(
            "INSERT INTO passage_terms (n, term, count) SELECT %s::bigint, * FROM unnest(%s::text[], %s::int[])",
            (n, list(counts), list(counts.values())),
        )
    return len(numbers)


# --- what hangs on all rows -------------------------------------------------------------------------------------------


async def _settle(connection: Connection) -> int:
    """Remove what belongs to nothing, count and sum up anew; how much was wrong."""
    lost = [row[0] for row in await _read(connection, orphans("memory_terms", "memories"))]
    wrong = await _write(connection, partial(_drop_terms, numbers=lost)) if lost else 0
    if await _read(connection, WRONG_FREQUENCIES):
        wrong += await _write(connection, _count_terms)
    wrong += await _write(connection, _sum_up)
    wrong += await _write(connection, _drop_unfit)
    wrong += await _write(connection, _drop_loose_blobs)
    if connection.has_vector:
        for table in MISSING_TWINS:
            wrong += await _settle_twins(connection, table)
    return wrong + await _write(connection, _settle_texts)


def _drop_terms(raw: Raw, numbers: Sequence[object]) -> int:
    lock_tenant(raw)
    raw.execute(
        f"DELETE FROM memory_terms t WHERE tenant = {TENANT} AND n = ANY(%s) AND NOT EXISTS "
        "(SELECT 1 FROM memories m WHERE m.tenant = t.tenant AND m.n = t.n)",
        (list(numbers),),
    )
    return len(numbers)


def _count_terms(raw: Raw) -> int:
    lock_tenant(raw)
    wrong = raw.execute(WRONG_FREQUENCIES).fetchall()
    raw.execute(
        "INSERT INTO term_frequencies (term, documents) SELECT * FROM unnest(%s::text[], %s::bigint[]) "
        "ON CONFLICT (tenant, term) DO UPDATE SET documents = excluded.documents",
        ([term for term, _ in wrong], [documents for _, documents in wrong]),
    )
    return len(wrong)


def _sum_up(raw: Raw) -> int:
    lock_tenant(raw)
    documents, tokens = raw.execute(SUMS).fetchone() or (0, 0)
    wrong = raw.execute(
        f"UPDATE tenants SET documents = %s, tokens = %s WHERE tenant = {TENANT} AND (documents, tokens) <> (%s, %s)",
        (documents, tokens, documents, tokens),
    ).rowcount
    lock_evidence(raw)
    documents, tokens = raw.execute(PASSAGE_SUMS).fetchone() or (0, 0)
    wrong += raw.execute(
        f"UPDATE passage_statistics SET documents = %s, tokens = %s WHERE tenant = {TENANT} "
        "AND (documents, tokens) <> (%s, %s)",
        (documents, tokens, documents, tokens),
    ).rowcount
    mark_current(raw)
    return wrong


def _drop_unfit(raw: Raw) -> int:
    lock_tenant(raw)
    lock_evidence(raw)
    wrong = 0
    for vectors, rows in (("vectors", "memories"), ("passage_vectors", "passages")):
        lost = f"NOT EXISTS (SELECT 1 FROM {rows} r WHERE r.tenant = v.tenant AND r.n = v.n)"
        wrong += raw.execute(f"DELETE FROM {vectors} v WHERE tenant = {TENANT} AND ({UNFIT} OR {lost})").rowcount
    return wrong


def _drop_loose_blobs(raw: Raw) -> int:
    lock_evidence(raw)
    wrong = raw.execute(f"DELETE FROM part_blobs WHERE tenant = {TENANT} AND part IN ({LONE_REFS})").rowcount
    return wrong + raw.execute(f"DELETE FROM blobs WHERE tenant = {TENANT} AND hash IN ({LONE_BLOBS})").rowcount


async def _settle_twins(connection: Connection, table: str) -> int:
    """A vector whose twin is missing or another is written once more, and its trigger makes the twin."""
    key = "seq" if table == "vectors" else "n"
    columns = "n, model, dimension, vector, words"
    statement = f"{MISSING_TWINS[table]} UNION {WRONG_TWINS[table].format(condition='true')}"
    wrong = [(row[0], row[2]) for row in await _read(connection, statement)]

    def work(raw: Raw) -> int:
        lock_tenant(raw)
        lock_evidence(raw)
        for identity, model in wrong:
            gone = raw.execute(
                f"DELETE FROM {table} WHERE tenant = {TENANT} AND {key} = %s AND model = %s RETURNING {columns}",
                (identity, model),
            ).fetchall()
            for row in gone:
                raw.execute(f"INSERT INTO {table} ({columns}) VALUES ({', '.join(['%s'] * len(row))})", row)
        return len(wrong)

    return await _write(connection, work) if wrong else 0


def _settle_texts(raw: Raw) -> int:
    """Note anew what frozen blocks show, and withdraw those that show what is hidden."""
    missing = raw.execute(f"{SHOWN_BY_BLOCKS} EXCEPT {NOTED}").fetchall()
    strange = raw.execute(f"{NOTED} EXCEPT {SHOWN_BY_BLOCKS}").fetchall()
    with raw.cursor() as cursor:
        cursor.executemany(
            f"DELETE FROM recall_block_memories WHERE tenant = {TENANT} AND memory = %s AND message = %s", strange
        )
        cursor.executemany(
            "INSERT INTO recall_block_memories (memory, message) VALUES (%s, %s) ON CONFLICT DO NOTHING", missing
        )
    shown = (
        f"SELECT DISTINCT item ->> 'memory' FROM recall_blocks, jsonb_array_elements(shown) item "
        f"WHERE tenant = {TENANT} AND text <> '' AND item ->> 'memory' IN ({HIDDEN}) "
        "UNION SELECT DISTINCT item FROM snapshots, jsonb_array_elements_text(shown) item "
        f"WHERE tenant = {TENANT} AND item IN ({HIDDEN})"
    )
    hidden = [MemoryId(memory) for (memory,) in raw.execute(shown)]
    if hidden:
        withdraw_showing(raw, hidden, because=WITHHELD)
    return len(missing) + len(strange) + len(hidden)
