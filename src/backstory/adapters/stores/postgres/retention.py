"""Removing evidence that is older than it may be, in Postgres: what would go, and some messages at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.looking import LONG
from backstory.adapters.stores.postgres.passages import lock_evidence, unindex
from backstory.adapters.stores.postgres.storable import storable
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.rows import to_us
from backstory.domain.conversation import Message
from backstory.ports.conversation import Pruned

_Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects

_OLD = f"SELECT id FROM messages WHERE tenant = {TENANT} AND created_us < %(before)s"
_OLD_SESSIONS = (
    f"SELECT s.id FROM sessions s WHERE s.tenant = {TENANT} AND s.updated_us < %(before)s AND NOT EXISTS "
    "(SELECT 1 FROM messages m WHERE m.tenant = s.tenant AND m.session = s.id AND m.created_us >= %(before)s)"
)
_LONE_BLOCKS = (
    f"SELECT b.message FROM recall_blocks b WHERE b.tenant = {TENANT} AND b.created_us < %(before)s "
    "AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.tenant = b.tenant AND m.id = b.message)"
)
# Joins throughout: a list of all old messages is too long to be looked up in memory, and is walked for every row then.
_PARTS = (
    f"SELECT id FROM parts WHERE tenant = {TENANT} AND message IN ({_OLD}) "
    f"UNION SELECT id FROM parts WHERE tenant = {TENANT} AND session IN ({_OLD_SESSIONS})"
)
_BLOBS = (
    f"WITH doomed AS MATERIALIZED ({_PARTS}), needed AS MATERIALIZED ("
    f"SELECT DISTINCT r.hash FROM part_blobs r LEFT JOIN doomed d ON d.id = r.part "
    f"WHERE r.tenant = {TENANT} AND d.id IS NULL) "
    f"SELECT b.size FROM blobs b LEFT JOIN needed n ON n.hash = b.hash WHERE b.tenant = {TENANT} AND n.hash IS NULL"
)


def expired(raw: _Raw, before_us: int) -> Pruned:
    """What ``prune`` removes in all."""
    raw.execute(LONG)

    def count(rows: str, what: str = "count(*)") -> int:
        row = raw.execute(f"SELECT {what} FROM ({rows}) counted", {"before": before_us}).fetchone()
        return int(row[0]) if row is not None else 0

    def beside(table: str, condition: str) -> str:
        return f"SELECT 1 FROM {table} WHERE tenant = {TENANT} AND {condition}"

    return Pruned(
        sessions=count(_OLD_SESSIONS),
        messages=count(_OLD),
        parts=count(_PARTS),
        passages=count(beside("passages", f"message IN ({_OLD})")),
        blobs=count(_BLOBS),
        blob_bytes=count(_BLOBS, "coalesce(sum(size), 0)"),
        blocks=count(beside("recall_blocks", f"message IN ({_OLD})"))
        + count(_LONE_BLOCKS)
        + count(beside("snapshots", f"session IN ({_OLD_SESSIONS})")),
    )


def prune(raw: _Raw, before_us: int, limit: int) -> Pruned:
    """Remove the oldest messages, at most ``limit``; what is left behind by all, once none is left."""
    lock_evidence(raw)
    given = {"before": before_us, "limit": limit}
    rows = raw.execute(f"{_OLD} ORDER BY created_us, id LIMIT %(limit)s", given).fetchall()
    messages = [name for (name,) in rows]
    if messages:
        _note_removed(raw, messages[-1])
    referred = _blobs_of(raw, "p.message = ANY(%(messages)s)", {"messages": messages})
    removed = _remove_messages(raw, messages) if messages else Pruned()
    if len(messages) < limit:
        referred |= _blobs_of(raw, f"p.session IN ({_OLD_SESSIONS})", given)
        removed += _remove_empty(raw, before_us)
    statement = f"SELECT hash FROM blobs WHERE tenant = {TENANT} AND hash = ANY(%s)"
    kept = {name for (name,) in raw.execute(statement, (list(referred),))}
    gone = [size for name, size in referred.items() if name not in kept]
    return removed + Pruned(blobs=len(gone), blob_bytes=sum(gone))


def without_pruned(raw: _Raw, messages: Sequence[Message]) -> Sequence[Message]:
    """As in SQLite: without those that were removed for good. Its caller holds ``lock_evidence``."""
    statement = f"SELECT removed_up_to_us FROM passage_statistics WHERE tenant = {TENANT}"
    (removed_us,) = raw.execute(statement).fetchone() or (None,)
    if removed_us is None:
        return messages
    old = [message.id for message in messages if to_us(message.created_at) <= removed_us]
    statement = f"SELECT id FROM messages WHERE tenant = {TENANT} AND id = ANY(%s)"
    kept = {name for (name,) in raw.execute(statement, (list(storable(*old)),))} if old else set()
    gone = {name for name in old if storable(name)[0] not in kept}
    return [message for message in messages if message.id not in gone]


def _note_removed(raw: _Raw, youngest: str) -> None:
    """Keep in mind up to when messages were removed; the youngest is still there."""
    raw.execute(
        "UPDATE passage_statistics s SET removed_up_to_us = greatest(s.removed_up_to_us, m.created_us) "
        f"FROM messages m WHERE s.tenant = {TENANT} AND m.tenant = s.tenant AND m.id = %s",
        (youngest,),
    )


def _blobs_of(raw: _Raw, condition: str, given: Mapping[str, object]) -> dict[str, int]:
    """The contents that some parts refer to, with their sizes."""
    statement = (
        "SELECT r.hash, r.size FROM parts p JOIN part_blobs r ON r.tenant = p.tenant AND r.part = p.id "
        f"WHERE p.tenant = {TENANT} AND {condition}"
    )
    return {name: int(size) for name, size in raw.execute(statement, given)}


def _remove_messages(raw: _Raw, messages: list[str]) -> Pruned:
    def remove(table: str, column: str) -> int:
        return raw.execute(f"DELETE FROM {table} WHERE tenant = {TENANT} AND {column} = ANY(%s)", (messages,)).rowcount

    statement = f"SELECT count(*) FROM passages WHERE tenant = {TENANT} AND message = ANY(%s)"
    passages = raw.execute(statement, (messages,)).fetchone() or (0,)
    unindex(raw, "message", messages)
    return Pruned(
        passages=int(passages[0]),
        parts=remove("parts", "message"),
        blocks=remove("recall_blocks", "message"),
        messages=remove("messages", "id"),
    )


def _remove_empty(raw: _Raw, before_us: int) -> Pruned:
    """Old sessions without messages, with parts whose messages were never told; and blocks beside nothing."""

    def remove(table: str, column: str, rows: str) -> int:
        statement = f"DELETE FROM {table} WHERE tenant = {TENANT} AND {column} IN ({rows})"
        return raw.execute(statement, {"before": before_us}).rowcount

    parts = remove("parts", "session", _OLD_SESSIONS)
    blocks = remove("snapshots", "session", _OLD_SESSIONS) + remove("recall_blocks", "message", _LONE_BLOCKS)
    for table in ("digests", "dreams", "keepsakes"):  # what was made of them, and kept with them
        remove(table, "session", _OLD_SESSIONS)
    return Pruned(parts=parts, blocks=blocks, sessions=remove("sessions", "id", _OLD_SESSIONS))
