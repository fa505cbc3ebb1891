"""Removing evidence that is older than it may be, in SQLite: what would go, and a few messages at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from backstory.adapters.stores.sqlite.blobs import is_kept
from backstory.adapters.stores.sqlite.passages import unindex
from backstory.adapters.stores.sqlite.rows import dump, to_us
from backstory.domain.conversation import BlobHash, Message
from backstory.ports.conversation import Pruned

_REMOVED_UP_TO = "messages_removed_up_to_us"  # in meta: when the youngest message was made that was removed

_OLD_SESSIONS = (
    "SELECT s.id FROM sessions s WHERE s.updated_us < :before "
    "AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.session = s.id AND m.created_us >= :before)"
)
_LONE_BLOCKS = (
    "SELECT b.message FROM recall_blocks b WHERE b.created_us < :before "
    "AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = b.message)"
)


def expired(raw: sqlite3.Connection, before_us: int) -> Pruned:
    """What ``prune`` removes in all."""

    def count(statement: str) -> int:
        return int(raw.execute(statement, {"before": before_us}).fetchone()[0])

    old = "SELECT id FROM messages WHERE created_us < :before"
    parts = f"SELECT id FROM parts WHERE message IN ({old}) OR session IN ({_OLD_SESSIONS})"
    gone = (
        f"FROM blobs b WHERE EXISTS (SELECT 1 FROM part_blobs r WHERE r.hash = b.hash) "
        f"AND NOT EXISTS (SELECT 1 FROM part_blobs r WHERE r.hash = b.hash AND r.part NOT IN ({parts}))"
    )
    return Pruned(
        sessions=count(f"SELECT count(*) FROM ({_OLD_SESSIONS})"),
        messages=count(f"SELECT count(*) FROM ({old})"),
        parts=count(f"SELECT count(*) FROM ({parts})"),
        passages=count(f"SELECT count(*) FROM passages WHERE message IN ({old})"),
        blobs=count(f"SELECT count(*) {gone}"),
        blob_bytes=count(f"SELECT coalesce(sum(b.size), 0) {gone}"),
        blocks=count(f"SELECT count(*) FROM recall_blocks WHERE message IN ({old})")
        + count(f"SELECT count(*) FROM ({_LONE_BLOCKS})")
        + count(f"SELECT count(*) FROM snapshots WHERE session IN ({_OLD_SESSIONS})"),
    )


def prune(raw: sqlite3.Connection, before_us: int, limit: int) -> Pruned:
    """Remove the oldest messages, at most ``limit``; what is left behind by all, once none is left."""
    statement = "SELECT id, created_us FROM messages WHERE created_us < ? ORDER BY created_us, id LIMIT ?"
    rows = raw.execute(statement, (before_us, limit)).fetchall()
    messages = [name for name, _ in rows]
    if rows:
        _note_removed(raw, up_to_us=rows[-1][1])
    given = {"before": before_us, "messages": dump(messages)}
    referred = _blobs_of(raw, "p.message IN (SELECT value FROM json_each(:messages))", given)
    removed = Pruned(messages=len(messages))
    for message in messages:
        removed += _remove_message(raw, message)
    if len(messages) < limit:
        referred |= _blobs_of(raw, f"p.session IN ({_OLD_SESSIONS})", given)
        removed += _remove_empty(raw, before_us)
    gone = [size for name, size in referred.items() if not is_kept(raw, name)]
    return removed + Pruned(blobs=len(gone), blob_bytes=sum(gone))


def without_pruned(raw: sqlite3.Connection, messages: Sequence[Message]) -> Sequence[Message]:
    """The messages but for those that were removed for good, and that the host tells once more: what is not kept, and
    no younger than the youngest that ``prune`` removed."""
    row = raw.execute("SELECT value FROM meta WHERE name = ?", (_REMOVED_UP_TO,)).fetchone()
    if row is None:
        return messages
    removed_us = int(row[0])
    known = "SELECT 1 FROM messages WHERE id = ?"
    return [
        message
        for message in messages
        if to_us(message.created_at) > removed_us or raw.execute(known, (message.id,)).fetchone() is not None
    ]


def _note_removed(raw: sqlite3.Connection, *, up_to_us: int) -> None:
    raw.execute(
        "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET "
        "value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER))",
        (_REMOVED_UP_TO, str(up_to_us)),
    )


def _blobs_of(raw: sqlite3.Connection, condition: str, given: Mapping[str, object]) -> dict[BlobHash, int]:
    """The contents that some parts refer to, with their sizes."""
    statement = f"SELECT r.hash, r.size FROM parts p JOIN part_blobs r ON r.part = p.id WHERE {condition}"
    return {BlobHash(name): int(size) for name, size in raw.execute(statement, given)}


def _remove_message(raw: sqlite3.Connection, message: str) -> Pruned:
    passages = raw.execute("SELECT count(*) FROM passages WHERE message = ?", (message,)).fetchone()[0]
    unindex(raw, "message", message)
    parts = raw.execute("DELETE FROM parts WHERE message = ?", (message,)).rowcount
    blocks = raw.execute("DELETE FROM recall_blocks WHERE message = ?", (message,)).rowcount
    raw.execute("DELETE FROM messages WHERE id = ?", (message,))
    return Pruned(parts=parts, passages=int(passages), blocks=blocks)


def _remove_empty(raw: sqlite3.Connection, before_us: int) -> Pruned:
    """Old sessions without messages, with parts whose messages were never told; and blocks beside nothing."""
    given = {"before": before_us}
    parts = blocks = sessions = 0
    if raw.execute(_OLD_SESSIONS, given).fetchone() is not None:
        parts = raw.execute(f"DELETE FROM parts WHERE session IN ({_OLD_SESSIONS})", given).rowcount
        blocks = raw.execute(f"DELETE FROM snapshots WHERE session IN ({_OLD_SESSIONS})", given).rowcount
        for table in (
            "digests",
            "dreams",
            "keepsakes",
        ):  # what was made of them, and kept with them
            raw.execute(f"DELETE FROM {table} WHERE session IN ({_OLD_SESSIONS})", given)
        sessions = raw.execute(f"DELETE FROM sessions WHERE id IN ({_OLD_SESSIONS})", given).rowcount
    blocks += raw.execute(f"DELETE FROM recall_blocks WHERE message IN ({_LONE_BLOCKS})", given).rowcount
    return Pruned(sessions=sessions, parts=parts, blocks=blocks)
