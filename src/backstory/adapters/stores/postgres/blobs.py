"""Blobs and what refers to them in Postgres. Triggers remove what nothing refers to any more.

Whoever writes them holds ``lock_evidence``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import psycopg

from backstory.adapters.stores.postgres.storable import storable
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.blobs import blob_from_row, last_told, missing_blob
from backstory.domain.conversation import BlobHash, BlobRef, Part
from backstory.domain.ids import PartId

if TYPE_CHECKING:
    from backstory.domain.blob import Blob

_Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects


def put_blobs(raw: _Raw, blobs: Sequence[Blob], parts: Sequence[Part]) -> None:
    """Keep the contents that parts refer to; what is kept already is not sent again."""
    wanted = {ref.hash for part in last_told(parts) for ref in part.blobs}
    missing = wanted - _kept(raw, list(wanted)) if wanted else wanted
    for blob in blobs:
        if blob.hash in missing:
            raw.execute(
                "INSERT INTO blobs (hash, size, packing, packed) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
                (blob.hash, blob.size, blob.packing.value, blob.packed),
            )


def refer(raw: _Raw, parts: Sequence[Part]) -> None:
    """Let parts refer to their blobs, and to no others. Raises InputError for one that is not kept."""
    last = last_told(parts)
    wanted = [(part, position, ref) for part in last for position, ref in enumerate(part.blobs)]
    kept = _kept(raw, [ref.hash for _, _, ref in wanted]) if wanted else set()
    for part, _, ref in wanted:
        if ref.hash not in kept:
            raise missing_blob(part, ref)
    rows = [storable(part.id, position, ref.hash, ref.size, ref.media_type) for part, position, ref in wanted]
    if rows:
        raw.cursor().executemany(
            "INSERT INTO part_blobs (part, position, hash, size, media_type) VALUES (%s, %s, %s, %s, %s) ON CONFLICT "
            "(tenant, part, hash) DO UPDATE SET position = excluded.position, media_type = excluded.media_type",
            rows,
        )
    raw.execute(
        f"DELETE FROM part_blobs r WHERE tenant = {TENANT} AND part = ANY(%s) AND NOT EXISTS "
        "(SELECT 1 FROM unnest(%s::text[], %s::text[]) AS wanted (part, hash) "
        "WHERE wanted.part = r.part AND wanted.hash = r.hash)",
        (list(storable(*(part.id for part in last))), [row[0] for row in rows], [row[2] for row in rows]),
    )


def read_blob(raw: _Raw, name: BlobHash) -> Blob | None:
    """A content as it is kept."""
    statement = f"SELECT hash, size, packing, packed FROM blobs WHERE tenant = {TENANT} AND hash = %s"
    row = raw.execute(statement, storable(name)).fetchone()
    return None if row is None else blob_from_row(row)


def refs_of_messages(raw: _Raw, messages: Sequence[str]) -> defaultdict[str, tuple[BlobRef, ...]]:
    """What the parts of messages refer to, by part."""
    refs: defaultdict[str, tuple[BlobRef, ...]] = defaultdict(tuple)
    statement = (
        "SELECT r.part, r.hash, r.size, r.media_type FROM parts p "
        "JOIN part_blobs r ON r.tenant = p.tenant AND r.part = p.id "
        f"WHERE p.tenant = {TENANT} AND p.message = ANY(%s) ORDER BY r.part, r.position"
    )
    for part, name, size, media_type in raw.execute(statement, (list(messages),)):
        refs[part] += (BlobRef(hash=BlobHash(name), size=size, media_type=media_type),)
    return refs


def parts_with_blobs(raw: _Raw, parts: Sequence[PartId]) -> dict[PartId, Part]:
    """Those of the parts that refer to blobs, as they are kept: kind, detail and references only."""
    statement = (
        "SELECT p.id, p.kind, p.detail, r.hash, r.size, r.media_type FROM parts p "
        "JOIN part_blobs r ON r.tenant = p.tenant AND r.part = p.id "
        f"WHERE p.tenant = {TENANT} AND p.id = ANY(%s) ORDER BY p.id, r.position"
    )
    found: dict[PartId, Part] = {}
    for name, kind, detail, content, size, media_type in raw.execute(statement, (list(storable(*parts)),)):
        ref = BlobRef(hash=BlobHash(content), size=size, media_type=media_type)
        known = found.get(name)
        found[name] = Part(id=name, kind=kind, detail=detail, blobs=(ref,) if known is None else (*known.blobs, ref))
    return found


def _kept(raw: _Raw, names: Sequence[BlobHash]) -> set[BlobHash]:
    statement = f"SELECT hash FROM blobs WHERE tenant = {TENANT} AND hash = ANY(%s)"
    return {BlobHash(name) for (name,) in raw.execute(statement, (list(names),))}
