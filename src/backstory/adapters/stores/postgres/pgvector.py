"""The nearest memories by pgvector: exactly within a small selection, through an HNSW index within a large one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql

from backstory.adapters.stores.postgres.filters import Where
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.domain.ids import MemoryId
from backstory.ports.index import VectorHit
from backstory.ports.models import EmbeddingModel, Vector

_Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects

INDEXED_FROM = 20_000
"""Vectors of one model from which they get an index. Measured with 384 numbers each: to compare 10,000 takes 14 ms, to
add one to an index 1 to 6 ms, so that below this an index costs more than it spares."""

EXACT_AT_MOST = 2_000
"""Selected memories up to which they are compared one by one, which the index is not asked for. Measured, among 100,000
to 200,000: to compare 2,000 scattered ones takes 24 ms, 10,000 115 ms; the index answers for 12,500 in 5 to 10 ms."""

_TIMES_DEARER = 1.3  # a vector that the index looks at, over a selected one that is compared: 13 us over 10

_EF_SEARCH = 400
"""How many candidates HNSW keeps. Measured among 200,000 vectors that spread in about 40 directions: of the ten nearest
it finds 99 %, with 200 candidates 95 % in two thirds of the time. Among a million, of which an eighth is selected and
five hundred at a time are all but equal, it finds 76 % of them, 0.013 less similar in the mean; with 200, 67 %."""

_EF_SEARCH_ONCE = 800  # of an index that cannot go on when the selection took most of what it found
_ITERATIVE = (0, 8)  # the first pgvector whose index goes on

_SELECTED = """
    FROM embeddings e JOIN memories m ON m.tenant = e.tenant AND m.n = e.n
    WHERE e.tenant = {tenant} AND e.model = {model} AND e.dimension = {dimension} AND """


def as_text(vector: Vector) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join(map(repr, map(float, vector)))}]"


def nearest(
    raw: _Raw,
    vector: Vector,
    clause: Where,
    *,
    roughly: Where,
    model: EmbeddingModel,
    limit: int,
    version: Sequence[int],
    exact_at_most: int,
) -> list[VectorHit]:
    """The nearest memories that ``clause`` selects, nearest first, then the highest number. ``roughly`` selects
    about as many, by conditions from which the planner can tell how many.

    Exact, but for a selection of more than about ``exact_at_most`` where there is an index that is faster: it may miss
    one or another. Where it finds too few, all are compared after all, so that nobody is ever starved.
    """
    statement = (
        "SELECT current_setting('backstory.tenant'), to_regclass(embeddings_index(%s, %s)) IS NOT NULL, "
        f"(SELECT documents FROM tenants WHERE tenant = {TENANT})"
    )
    tenant, indexed, among = raw.execute(statement, (model.name, model.dimension)).fetchone() or ("", False, 0)
    # literals rather than parameters: the index is of one tenant and model, and the planner has to see that it fits
    selected = sql.SQL(_SELECTED).format(tenant=tenant, model=model.name, dimension=model.dimension).as_string(None)
    selected = selected.replace("%", "%%") + clause.sql
    if indexed and _index_pays(estimate(raw, roughly), among or 0, limit=limit, exact_at_most=exact_at_most):
        hits = _by_index(raw, vector, selected, clause, model=model, limit=limit, version=version)
        if len(hits) >= limit:
            return hits
    statement = f"SELECT m.n, m.id, e.embedding <#> %s AS distance {selected} ORDER BY distance, m.n DESC LIMIT %s"
    return _hits(raw.execute(statement, (as_text(vector), *clause.parameters, limit)).fetchall())


def keep_indexed(raw: _Raw, model: EmbeddingModel, *, least: int) -> None:
    """Make the index if the tenant has ``least`` vectors of the model. Other writers wait, 1 to 2 ms a vector."""
    raw.execute("SET LOCAL statement_timeout TO 0")
    raw.execute("SELECT index_embeddings(%s, %s, %s)", (model.name, model.dimension, least))


def unindex(raw: _Raw, model: EmbeddingModel) -> None:
    """Drop the index."""
    raw.execute("SELECT unindex_embeddings(%s, %s)", (model.name, model.dimension))


def _index_pays(selected: int, among: int, *, limit: int, exact_at_most: int) -> bool:
    """Whether the index has found enough of a selection sooner than all of it is compared: it looks at everybody's."""
    return selected > exact_at_most and _TIMES_DEARER * limit * among / selected < selected


def estimate(raw: _Raw, clause: Where) -> int:
    """About how many memories are selected, by the planner's statistics: to count them costs more than it spares."""
    row = raw.execute(
        f"EXPLAIN (FORMAT JSON) SELECT 1 FROM memories m WHERE {clause.sql}", clause.parameters
    ).fetchone()
    return 0 if row is None else int(row[0][0]["Plan"]["Plan Rows"])


def _by_index(
    raw: _Raw,
    vector: Vector,
    selected: str,
    clause: Where,
    *,
    model: EmbeddingModel,
    limit: int,
    version: Sequence[int],
) -> list[VectorHit]:
    # to the planner it is the dearer way, since it takes conditions that say the same for independent ones
    raw.execute("SET LOCAL enable_sort TO off")
    iterative = tuple(version) >= _ITERATIVE
    raw.execute(f"SET LOCAL hnsw.ef_search TO {_EF_SEARCH if iterative else _EF_SEARCH_ONCE}")
    if iterative:
        raw.execute("SET LOCAL hnsw.iterative_scan TO strict_order")
    typed = f"{'halfvec' if tuple(version) >= (0, 7) else 'vector'}({model.dimension})"
    statement = (
        f"SELECT m.n, m.id, e.embedding::{typed} <#> %s::{typed} AS distance {selected} ORDER BY distance LIMIT %s"
    )
    rows = raw.execute(statement, (as_text(vector), *clause.parameters, limit)).fetchall()
    raw.execute("SET LOCAL enable_sort TO on")
    return _hits(sorted(rows, key=lambda row: (row[2], -row[0])))


def _hits(rows: Sequence[Sequence[Any]]) -> list[VectorHit]:
    return [VectorHit(id=MemoryId(memory_id), similarity=-distance) for _, memory_id, distance in rows]
