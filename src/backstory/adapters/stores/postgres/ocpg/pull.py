"""What is new in ocpg becomes ours: rows added, changed, replaced, deleted and recalled there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import errors, sql

from backstory.adapters.stores.postgres.ocpg import links as known
from backstory.adapters.stores.postgres.ocpg.batch import Batch, rejected
from backstory.adapters.stores.postgres.ocpg.layout import Layout
from backstory.adapters.stores.postgres.ocpg.reading import read_rows
from backstory.adapters.stores.postgres.tenancy import TENANT, lock_tenant
from backstory.errors import InputError

BATCH = 500
BATCH_BYTES = 500_000
"""The most rows in one transaction, and of what length together: the server ends one that thinks for seconds."""

# The server took these back for others' sake, or stopped: a matter of the transaction, not of a row.
PASSING = (errors.SerializationFailure, errors.DeadlockDetected, errors.LockNotAvailable, errors.QueryCanceled)

_Raw = psycopg.Connection[Any]


def pull(raw: _Raw, layout: Layout) -> list[int]:
    """Take in some of the rows that are not as they were at the last look; which, by id. None: there are no more.

    Costs one read of ocpg's table and of the links where nothing is new.
    """
    if not _differing(raw, layout):
        return []
    lock_tenant(raw)
    ids = _differing(raw, layout)
    try:
        with raw.transaction():
            _take_in(raw, layout, ids)
    except PASSING:
        raise
    except (psycopg.DataError, psycopg.OperationalError, InputError):
        if raw.closed:
            raise
        for ocpg_id in ids:
            _take_in_alone(raw, layout, ocpg_id)
    return ids


def _differing(raw: _Raw, layout: Layout) -> list[int]:
    statement = sql.SQL(
        "SELECT coalesce(r.id, l.ocpg_id) AS id, coalesce(octet_length(r.content), 0) FROM {} r"
        f" FULL JOIN (SELECT ocpg_id, version, present FROM ocpg_links WHERE tenant = {TENANT}) l ON l.ocpg_id = r.id"
        " WHERE (r.id IS NULL AND l.present) OR l.ocpg_id IS NULL OR l.version <> r.xmin::text ORDER BY 1 LIMIT %s"
    ).format(layout.memories)
    ids: list[int] = []
    left = BATCH_BYTES
    for id_, size in raw.execute(statement, (BATCH,)):
        if ids and size > left:
            break
        ids.append(int(id_))
        left -= size
    return ids


def _take_in_alone(raw: _Raw, layout: Layout, ocpg_id: int) -> None:
    try:
        with raw.transaction():
            _take_in(raw, layout, [ocpg_id])
    except PASSING:
        raise
    except (psycopg.DataError, psycopg.OperationalError, InputError) as error:
        if raw.closed:
            raise
        state = getattr(error, "sqlstate", None)
        rows = read_rows(raw, layout, [ocpg_id])
        known.keep(raw, [rejected(row, f"the store refused it (SQLSTATE {state})") for row in rows])


def _take_in(raw: _Raw, layout: Layout, ids: Sequence[int]) -> None:
    batch = Batch(raw, layout, ids)
    for ocpg_id in ids:
        batch.take(ocpg_id)
    batch.write()
