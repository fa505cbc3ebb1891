"""What a host tells once more after some of it was erased: hosts tell their messages more than once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.storable import storable
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.domain.conversation import BlobHash, BlobRef, Part
from backstory.domain.erasure import ERASED

_Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects


def as_erased(raw: _Raw, parts: Sequence[Part]) -> list[Part]:
    """The parts, each of which something was erased as it is kept since."""
    statement = f"SELECT part FROM erased_parts WHERE tenant = {TENANT} AND part = ANY(%s)"
    erased = {row[0] for row in raw.execute(statement, (list(storable(*(part.id for part in parts))),))}
    return (
        [_as_kept(raw, part) if storable(part.id)[0] in erased else part for part in parts] if erased else list(parts)
    )


def _as_kept(raw: _Raw, part: Part) -> Part:
    statement = f"SELECT text, tool, detail FROM parts WHERE tenant = {TENANT} AND id = %s"
    row = raw.execute(statement, storable(part.id)).fetchone()
    if row is None:
        return replace(part, text=ERASED, tool=None, detail=None, blobs=())
    refs = raw.execute(
        f"SELECT hash, size, media_type FROM part_blobs WHERE tenant = {TENANT} AND part = %s ORDER BY position",
        storable(part.id),
    )
    blobs = tuple(BlobRef(hash=BlobHash(name), size=size, media_type=media) for name, size, media in refs)
    return replace(part, text=row[0], tool=row[1], detail=row[2], blobs=blobs)
