"""What the server's planner knows of the sizes of tables. Autovacuum tells it within some minutes; an import of ten
thousand memories is over by then, and each of its statements, the checks of foreign keys among them, would go on by the
plan that was right for an empty table: it walks through all rows of a tenant."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.connection import Connection
from backstory.errors import StoreUnavailable

OF_MEMORIES = ("memories", "memory_tags", "changes", "change_edits", "memory_terms", "term_frequencies")
OF_VECTORS = ("memories", "vectors", "embeddings")
ALL = (*OF_MEMORIES, "vectors", "embeddings", "messages", "parts", "passages", "passage_terms", "passage_vectors")
DOUBLED, SOME = 2.0, 1.1
_LEAST_GROWTH = 32  # pages of 8 kB

_GROWN = f"""
    SELECT oid::regclass::text FROM pg_class
    WHERE oid = ANY(SELECT to_regclass(name) FROM unnest(%s::text[]) name)
        AND pg_relation_size(oid) / 8192 > %s * relpages + {_LEAST_GROWTH}
"""


async def keep_informed(connection: Connection, tables: Sequence[str], *, growth: float = DOUBLED) -> None:
    """Have those tables looked at that have grown to more than ``growth`` of what they were when they last were; each
    time costs up to a second.

    A role that does not own them may not, unless it was given MAINTAIN; then autovacuum does it in its time.
    """
    with contextlib.suppress(StoreUnavailable):  # somebody else is at it
        await connection.write(lambda raw: _inform(raw, tables, growth))


def _inform(raw: psycopg.Connection[Any], tables: Sequence[str], growth: float) -> None:
    grown = [str(name) for (name,) in raw.execute(_GROWN, (list(tables), growth))]
    if grown:
        raw.execute("SET LOCAL statement_timeout TO 0")
        raw.execute(f"ANALYZE {', '.join(grown)}")
