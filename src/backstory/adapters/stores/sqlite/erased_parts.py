"""What a host tells once more after some of it was erased: hosts tell their messages more than once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from backstory.domain.conversation import BlobHash, BlobRef, Part
from backstory.domain.erasure import ERASED


def as_erased(raw: sqlite3.Connection, parts: Sequence[Part]) -> list[Part]:
    """The parts, each of which something was erased as it is kept since."""
    if raw.execute("SELECT 1 FROM erased_parts LIMIT 1").fetchone() is None:
        return list(parts)
    return [_as_kept(raw, part) for part in parts]


def _as_kept(raw: sqlite3.Connection, part: Part) -> Part:
    if raw.execute("SELECT 1 FROM erased_parts WHERE part = ?", (part.id,)).fetchone() is None:
        return part
    row = raw.execute("SELECT text, tool, detail FROM parts WHERE id = ?", (part.id,)).fetchone()
    if row is None:
        return replace(part, text=ERASED, tool=None, detail=None, blobs=())
    refs = raw.execute("SELECT hash, size, media_type FROM part_blobs WHERE part = ? ORDER BY position", (part.id,))
    blobs = tuple(BlobRef(hash=BlobHash(name), size=size, media_type=media) for name, size, media in refs)
    return replace(part, text=row[0], tool=row[1], detail=row[2], blobs=blobs)
