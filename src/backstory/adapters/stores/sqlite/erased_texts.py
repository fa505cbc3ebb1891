"""Every text in the tables of a store beside its memories, and what rewriting it there takes: nothing is written yet.

The memories, and erasing as one transaction, are in ``erased_rows.py``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from backstory.adapters.stores.sqlite.blobs import blob_from_row
from backstory.adapters.stores.sqlite.passages import index_part, unindex
from backstory.codecs.erasure import (
    NAMES,
    erased_key,
    rewritten_column,
    rewritten_detail,
    rewritten_image,
    rewritten_text,
)
from backstory.domain.attached_text import kept_bytes
from backstory.domain.blob import content_of, make_blob
from backstory.domain.conversation import BlobHash
from backstory.domain.erasure import Rewrite
from backstory.domain.evidence_passages import PassageLimits
from backstory.domain.excerpt import excerpt_anew
from backstory.ports.erasing import Found, Progress

_STEP = 500  # rows between two tidings of progress

# What has a way of its own below, holds no text, or is the very name of something. A folder's path stays: by it the
# project is known.
_APART = frozenset({
    "memories", "memory_tags", "change_edits", "parts", "passages", "blobs", "part_blobs", "vectors",
    "passage_vectors", "passage_word_vectors", "word_statistics", "passage_statistics", "vector_removals", "summaries",
    "summary_sources", "recall_block_memories", "erasures", "erased_parts", "projects", "project_aliases",
    "project_traits", "project_moves", "meta", "sqlite_sequence", "git_changes", "git_memories", "git_streams",
    "git_rewritten", "git_left",
})  # fmt: skip
_PLACES = {
    "changes": "history", "sessions": "titles", "recall_blocks": "blocks", "digest_pieces": "digests",
    "dreams": "dreaming", "ledger": "accounts",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """What is to go, as every table is told it."""

    erased: frozenset[str]
    rewrite: Rewrite
    at: datetime
    done: Progress

    def stepping(self, rows: Iterator[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
        """The rows, telling now and then how many there were."""
        count = 0
        for count, row in enumerate(rows, start=1):
            if count % _STEP == 0:
                self.done(_STEP)
            yield row
        self.done(count % _STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """One text that changes, and what else has to be done about it; the transaction's owner calls ``apply``."""

    found: Found
    apply: Callable[[], object]


def texts_beside(raw: sqlite3.Connection, walk: Walk, limits: PassageLimits) -> Iterator[Rewritten]:
    yield from _images(raw, walk)
    yield from _parts(raw, walk, limits)
    yield from _blobs(raw, walk, limits)
    yield from _passages(raw, walk)
    for table in _tables(raw):
        yield from _columns(raw, walk, table)


def _images(raw: sqlite3.Connection, walk: Walk) -> Iterator[Rewritten]:
    rows = raw.execute("SELECT change, position, before, after FROM change_edits ORDER BY change, position")
    for change, position, *images in walk.stepping(rows):
        for column, text in zip(("before", "after"), images, strict=True):
            kept = None if text is None else rewritten_image(str(text), walk.erased, walk.rewrite, at=walk.at)
            if kept is not None and kept != text:
                statement = f"UPDATE change_edits SET {column} = ? WHERE change = ? AND position = ?"
                found = Found(place="history", where=str(change), before=str(text), after=kept)
                yield _update(raw, found, statement, kept, change, position)


def _parts(raw: sqlite3.Connection, walk: Walk, limits: PassageLimits) -> Iterator[Rewritten]:
    rows = raw.execute("SELECT id, message, text, detail FROM parts ORDER BY id")
    for part, message, text, detail in walk.stepping(rows):
        given = (str(text), None if detail is None else str(detail))
        kept = (walk.rewrite(given[0]), None if given[1] is None else rewritten_detail(given[1], walk.rewrite))
        if kept != given:
            changed = 0 if kept[0] != given[0] else 1
            found = Found(place="messages", where=str(message), before=given[changed] or "", after=kept[changed] or "")
            yield Rewritten(found=found, apply=partial(_put_part, raw, str(part), kept, limits))


def _blobs(raw: sqlite3.Connection, walk: Walk, limits: PassageLimits) -> Iterator[Rewritten]:
    for row in walk.stepping(raw.execute("SELECT hash, size, packing, packed FROM blobs ORDER BY hash")):
        try:
            content = content_of(blob_from_row(row))
        except ValueError:
            continue  # damaged: nobody can read it; the search of all bytes tells what is in it
        kept = kept_bytes(content, walk.rewrite)
        if kept is not None and kept != content:
            before, after = content.decode("utf-8", "replace"), kept.decode("utf-8", "replace")
            found = Found(place="attachments", where=str(row[0]), before=before, after=after)
            yield Rewritten(found=found, apply=_putting_blob(raw, BlobHash(str(row[0])), kept, limits))


def _putting_blob(raw: sqlite3.Connection, name: BlobHash, content: bytes, limits: PassageLimits) -> Callable[[], None]:
    """A content has another name when it is another one, and excerpts are of what is kept."""

    def apply() -> None:
        blob = make_blob(content)
        raw.execute(
            "INSERT OR IGNORE INTO blobs (hash, size, packing, packed) VALUES (?, ?, ?, ?)",
            (blob.hash, blob.size, blob.packing.value, blob.packed),
        )
        rows = raw.execute(
            "SELECT p.id, p.text, p.detail FROM part_blobs r JOIN parts p ON p.id = r.part WHERE r.hash = ?", (name,)
        ).fetchall()
        raw.execute("UPDATE OR IGNORE part_blobs SET hash = ?, size = ? WHERE hash = ?", (blob.hash, blob.size, name))
        raw.execute("DELETE FROM part_blobs WHERE hash = ?", (name,))
        raw.execute("DELETE FROM blobs WHERE hash = ?", (name,))
        whole = content.decode("utf-8", "replace")

        def anew(text: str) -> str:
            return excerpt_anew(text, name, blob.hash, whole)

        for part, text, detail in rows:
            _put_part(raw, part, (anew(text), None if detail is None else rewritten_text(detail, anew)), limits)

    return apply


def _put_part(raw: sqlite3.Connection, part: str, kept: tuple[str, str | None], limits: PassageLimits) -> None:
    raw.execute("UPDATE parts SET text = ?, detail = ? WHERE id = ?", (*kept, part))
    raw.execute("INSERT OR IGNORE INTO erased_parts (part) VALUES (?)", (part,))
    index_part(raw, part, limits)


def _passages(raw: sqlite3.Connection, walk: Walk) -> Iterator[Rewritten]:
    """Only those whose part does not hold it any more: all others are cut anew with their part."""
    orphans = "SELECT part, text FROM passages x WHERE NOT EXISTS (SELECT 1 FROM parts p WHERE p.id = x.part)"
    for part, text in walk.stepping(raw.execute(orphans)):
        kept = walk.rewrite(str(text))
        if kept != text:
            found = Found(place="passages", where=str(part), before=str(text), after=kept)
            yield Rewritten(found=found, apply=partial(unindex, raw, "part", str(part)))


def _tables(raw: sqlite3.Connection) -> list[str]:
    """The tables that hold texts in columns of their own, also those that were added since this was written."""
    rows = raw.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    virtual = [name for name, sql in rows if str(sql).upper().startswith("CREATE VIRTUAL")]
    return [
        name
        for name, _ in rows
        if name not in _APART and not any(name == other or name.startswith(f"{other}_") for other in virtual)
    ]


def _columns(raw: sqlite3.Connection, walk: Walk, table: str) -> Iterator[Rewritten]:
    info = raw.execute(f"PRAGMA table_info({table})").fetchall()
    key = [row[1] for row in sorted(info, key=lambda row: row[5]) if row[5]] or ["rowid"]
    texts = [row[1] for row in info if str(row[2]).upper() == "TEXT" and not row[5] and row[1] not in NAMES]
    if not texts:
        return
    where = " AND ".join(f"{name} = ?" for name in key)
    for row in walk.stepping(raw.execute(f"SELECT {', '.join((*key, *texts))} FROM {table}")):
        names, values = row[: len(key)], row[len(key) :]
        for column, text in zip(texts, values, strict=True):
            kept = rewrite_of(table)(text, walk.rewrite) if isinstance(text, str) else text
            if isinstance(text, str) and isinstance(kept, str) and kept != text:
                if (table, column) == ("changes", "key"):
                    kept = erased_key(str(names[0]))
                found = Found(place=_PLACES.get(table, table), where=str(names[0]), before=text, after=kept)
                yield _update(raw, found, f"UPDATE {table} SET {column} = ? WHERE {where}", kept, *names)


def rewrite_of(table: str) -> Callable[[str, Rewrite], str]:
    """How the texts of a table are rewritten: JSON of another product holds texts under any name."""
    return rewritten_text if table == "keepsakes" else rewritten_column


def _update(raw: sqlite3.Connection, found: Found, statement: str, *parameters: object) -> Rewritten:
    return Rewritten(found=found, apply=partial(raw.execute, statement, parameters))
