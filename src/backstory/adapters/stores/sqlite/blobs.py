"""Blobs and what refers to them in SQLite. Triggers remove what nothing refers to any more."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from backstory.adapters.stores.sqlite.rows import dump
from backstory.domain.conversation import BlobHash, BlobRef, Part
from backstory.domain.ids import PartId
from backstory.errors import InputError

if TYPE_CHECKING:
    from backstory.domain.blob import Blob


def put_blobs(raw: sqlite3.Connection, blobs: Sequence[Blob], parts: Sequence[Part]) -> None:
    """Keep the contents that parts refer to; what is kept already is not written again."""
    wanted = {ref.hash for part in last_told(parts) for ref in part.blobs}
    for blob in blobs:
        if blob.hash in wanted and not is_kept(raw, blob.hash):
            raw.execute(
                "INSERT INTO blobs (hash, size, packing, packed) VALUES (?, ?, ?, ?)",
                (blob.hash, blob.size, blob.packing.value, blob.packed),
            )


def refer(raw: sqlite3.Connection, parts: Sequence[Part]) -> None:
    """Let parts refer to their blobs, and to no others. Raises InputError for one that is not kept.

    The old references go last: what one part lets go of, another may take up.
    """
    last = last_told(parts)
    for part in last:
        for position, ref in enumerate(part.blobs):
            if not is_kept(raw, ref.hash):
                raise missing_blob(part, ref)
            raw.execute(
                "INSERT INTO part_blobs (part, position, hash, size, media_type) VALUES (?, ?, ?, ?, ?) ON CONFLICT "
                "(part, hash) DO UPDATE SET position = excluded.position, media_type = excluded.media_type",
                (part.id, position, ref.hash, ref.size, ref.media_type),
            )
    statement = "DELETE FROM part_blobs WHERE part = ? AND hash NOT IN (SELECT value FROM json_each(?))"
    for part in last:
        raw.execute(statement, (part.id, dump([ref.hash for ref in part.blobs])))


def parts_with_blobs(raw: sqlite3.Connection, parts: Sequence[PartId]) -> dict[PartId, Part]:
    """Those of the parts that refer to blobs, as they are kept: kind, detail and references only."""
    statement = (
        "SELECT p.kind, p.detail, r.hash, r.size, r.media_type FROM part_blobs r JOIN parts p ON p.id = r.part "
        "WHERE r.part = ? ORDER BY r.position"
    )
    found: dict[PartId, Part] = {}
    for name in dict.fromkeys(parts):
        if rows := raw.execute(statement, (name,)).fetchall():
            refs = tuple(BlobRef(hash=BlobHash(row[2]), size=row[3], media_type=row[4]) for row in rows)
            found[name] = Part(id=name, kind=rows[0][0], detail=rows[0][1], blobs=refs)
    return found


def last_told(parts: Sequence[Part]) -> list[Part]:
    """What counts of parts that are told twice at once."""
    return list({part.id: part for part in parts}.values())


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
