"""Blobs and what refers to them in SQLite. Triggers remove what nothing refers to any more."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from backstory.adapters.stores.sqlite.rows import dump
from backstory.domain.conversation import BlobHash, BlobRef, Part
from backstory.errors import InputError

if TYPE_CHECKING:
    from backstory.domain.blob import Blob


def put_blobs(raw: sqlite3.Connection, blobs: Sequence[Blob], parts: Sequence[Part]) -> None:
    """Keep the contents that parts refer to; what is kept already is not written again."""
    wanted = {ref.hash for part in parts for ref in part.blobs}
    for blob in blobs:
        if blob.hash in wanted and not is_kept(raw, blob.hash):
            raw.execute(
                "INSERT INTO blobs (hash, size, packing, packed) VALUES (?, ?, ?, ?)",
                (blob.hash, blob.size, blob.packing.value, blob.packed),
            )


def refer(raw: sqlite3.Connection, part: Part) -> None:
    """Let a part refer to its blobs, and to no others. Raises InputError for one that is not kept."""
    for position, ref in enumerate(part.blobs):
        if not is_kept(raw, ref.hash):
            raise missing_blob(part, ref)
        raw.execute(
            "INSERT INTO part_blobs (part, position, hash, size, media_type) VALUES (?, ?, ?, ?, ?) ON CONFLICT "
            "(part, hash) DO UPDATE SET position = excluded.position, media_type = excluded.media_type",
            (part.id, position, ref.hash, ref.size, ref.media_type),
        )
    if not part.blobs:
        raw.execute("DELETE FROM part_blobs WHERE part = ?", (part.id,))
        return
    kept = dump([ref.hash for ref in part.blobs])
    statement = "DELETE FROM part_blobs WHERE part = ? AND hash NOT IN (SELECT value FROM json_each(?))"
    raw.execute(statement, (part.id, kept))


def missing_blob(part: Part, ref: BlobRef) -> InputError:
    """A part that refers to what is nowhere."""
    return InputError(f"part {part.id} refers to blob {ref.hash}, which is neither given nor kept", field="blobs")


def read_blob(raw: sqlite3.Connection, name: BlobHash) -> Blob | None:
    """A content as it is kept."""
    row = raw.execute("SELECT hash, size, packing, packed FROM blobs WHERE hash = ?", (name,)).fetchone()
    return None if row is None else blob_from_row(row)


def blob_from_row(row: Sequence[Any]) -> Blob:  # Any: rows hold whatever a statement selects
    """A blob from its hash, size, packing and bytes. Raises ValueError for a packing that nobody knows."""
    from backstory.domain.blob import Blob, Packing

    name, size, packing, packed = row
    return Blob(hash=BlobHash(name), size=int(size), packing=Packing(packing), packed=bytes(packed))


def refs_of_message(raw: sqlite3.Connection, message: str) -> defaultdict[str, tuple[BlobRef, ...]]:
    """What the parts of a message refer to, by part."""
    refs: defaultdict[str, tuple[BlobRef, ...]] = defaultdict(tuple)
    statement = (
        "SELECT r.part, r.hash, r.size, r.media_type FROM parts p JOIN part_blobs r ON r.part = p.id "
        "WHERE p.message = ? ORDER BY r.part, r.position"
    )
    for part, name, size, media_type in raw.execute(statement, (message,)):
        refs[part] += (BlobRef(hash=BlobHash(name), size=size, media_type=media_type),)
    return refs


def is_kept(raw: sqlite3.Connection, name: BlobHash) -> bool:
    """Whether there is such a content."""
    return raw.execute("SELECT 1 FROM blobs WHERE hash = ?", (name,)).fetchone() is not None
