"""Every text in the rows of a tenant beside its memories, and what rewriting it there takes: nothing is written yet.

The memories, and erasing as one transaction, are in ``erased_rows.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.passages import index_told, unindex
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.blobs import blob_from_row
from backstory.adapters.stores.sqlite.erased_texts import rewrite_of
from backstory.codecs.erasure import NAMES, erased_key, rewritten_detail, rewritten_image, rewritten_text
from backstory.domain.attached_text import kept_bytes
from backstory.domain.blob import content_of, make_blob
from backstory.domain.conversation import BlobHash
from backstory.domain.erasure import Rewrite
from backstory.domain.evidence_passages import PassageLimits
from backstory.domain.excerpt import excerpt_anew
from backstory.ports.erasing import Found, Progress

Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects
_STEP = 500  # rows between two tidings of progress

# What has a way of its own below, holds no text, or is the very name of something.
_APART = frozenset({
    "tenants", "memories", "memory_tags", "memory_terms", "term_frequencies", "change_edits", "parts", "passages",
    "passage_terms", "blobs", "part_blobs", "vectors", "embeddings", "passage_vectors", "passage_embeddings",
    "passage_statistics", "vector_removals", "summaries", "summary_sources", "recall_block_memories", "erasures",
    "erased_parts", "projects", "project_aliases", "project_traits", "project_moves", "ocpg_source", "ocpg_links",
    "ocpg_pending", "ocpg_pending_sessions",
})  # fmt: skip
_PLACES = {
    "changes": "history", "sessions": "titles", "recall_blocks": "blocks", "digest_pieces": "digests",
    "dreams": "dreaming", "ledger": "accounts",
}  # fmt: skip
_COLUMNS = (
    "SELECT c.table_name, c.column_name, c.data_type, EXISTS (SELECT 1 FROM information_schema.key_column_usage k "
    "JOIN information_schema.table_constraints t ON t.constraint_schema = k.constraint_schema "
    "AND t.constraint_name = k.constraint_name AND t.constraint_type = 'PRIMARY KEY' "
    "WHERE k.table_schema = c.table_schema AND k.table_name = c.table_name AND k.column_name = c.column_name) "
    "FROM information_schema.columns c WHERE c.table_schema = current_schema() AND EXISTS ("
    "SELECT 1 FROM information_schema.columns o WHERE o.table_schema = c.table_schema AND o.table_name = c.table_name "
    "AND o.column_name = 'tenant') ORDER BY c.table_name, c.ordinal_position"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    erased: frozenset[str]
    rewrite: Rewrite
    at: datetime
    done: Progress

    def rows(self, raw: Raw, statement: str) -> Iterator[Sequence[Any]]:
        """The rows of a statement, telling now and then how many there were."""
        count = 0
        for count, row in enumerate(raw.execute(statement), start=1):
            if count % _STEP == 0:
                self.done(_STEP)
            yield row
        self.done(count % _STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """One text that changes, and what to do about it."""

    found: Found
    apply: Callable[[], object]


def texts_beside(raw: Raw, walk: Walk, limits: PassageLimits) -> Iterator[Rewritten]:
    yield from _images(raw, walk)
    yield from _parts(raw, walk, limits)
    yield from _blobs(raw, walk, limits)
    for table, columns in _tables(raw).items():
        yield from _columns(raw, walk, table, columns)


def _images(raw: Raw, walk: Walk) -> Iterator[Rewritten]:
    statement = f"SELECT change, position, before::text, after::text FROM change_edits WHERE tenant = {TENANT}"
    for change, position, *images in walk.rows(raw, statement):
        for column, text in zip(("before", "after"), images, strict=True):
            kept = None if text is None else rewritten_image(text, walk.erased, walk.rewrite, at=walk.at)
            if kept is not None and kept != text:
                update = (
                    f"UPDATE change_edits SET {column} = %s WHERE tenant = {TENANT} AND change = %s AND position = %s"
                )
                found = Found(place="history", where=change, before=text, after=kept)
                yield Rewritten(found=found, apply=partial(raw.execute, update, (kept, change, position)))


def _parts(raw: Raw, walk: Walk, limits: PassageLimits) -> Iterator[Rewritten]:
    statement = f"SELECT id, message, text, detail FROM parts WHERE tenant = {TENANT} ORDER BY id"
    for part, message, *given in walk.rows(raw, statement):
        text, detail = given
        kept = (walk.rewrite(text), None if detail is None else rewritten_detail(detail, walk.rewrite))
        if kept != (text, detail):
            before, after = (text, kept[0]) if kept[0] != text else (detail, kept[1] or "")
            found = Found(place="messages", where=message, before=before, after=after)
            yield Rewritten(found=found, apply=partial(_put_part, raw, part, kept, limits))


def _put_part(raw: Raw, part: str, kept: tuple[str, str | None], limits: PassageLimits) -> None:
    raw.execute(f"UPDATE parts SET text = %s, detail = %s WHERE tenant = {TENANT} AND id = %s", (*kept, part))
    raw.execute("INSERT INTO erased_parts (part) VALUES (%s) ON CONFLICT DO NOTHING", (part,))
    unindex(raw, "part", [part])
    index_told(raw, parts=[part], messages=[], limits=limits)


def _blobs(raw: Raw, walk: Walk, limits: PassageLimits) -> Iterator[Rewritten]:
    names = raw.execute(f"SELECT hash FROM blobs WHERE tenant = {TENANT} ORDER BY hash").fetchall()
    for (name,) in names:  # one at a time: each may be large
        statement = f"SELECT hash, size, packing, packed FROM blobs WHERE tenant = {TENANT} AND hash = %s"
        try:
            content = content_of(blob_from_row(raw.execute(statement, (name,)).fetchall()[0]))
        except ValueError:
            continue  # damaged: nobody can read it
        kept = kept_bytes(content, walk.rewrite)
        if kept is not None and kept != content:
            before, after = content.decode("utf-8", "replace"), kept.decode("utf-8", "replace")
            found = Found(place="attachments", where=name, before=before, after=after)
            yield Rewritten(found=found, apply=partial(_put_blob, raw, BlobHash(name), kept, limits))


def _put_blob(raw: Raw, name: BlobHash, content: bytes, limits: PassageLimits) -> None:
    """A content has another name when it is another one, and excerpts are of what is kept."""
    blob, whole = make_blob(content), content.decode("utf-8", "replace")
    raw.execute(
        "INSERT INTO blobs (hash, size, packing, packed) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
        (blob.hash, blob.size, blob.packing.value, blob.packed),
    )
    rows = raw.execute(
        "SELECT p.id, p.text, p.detail FROM part_blobs r JOIN parts p ON p.tenant = r.tenant AND p.id = r.part "
        f"WHERE r.tenant = {TENANT} AND r.hash = %s",
        (name,),
    ).fetchall()
    raw.execute(
        "INSERT INTO part_blobs (part, position, hash, size, media_type) SELECT part, position, %s, %s, media_type "
        f"FROM part_blobs WHERE tenant = {TENANT} AND hash = %s ON CONFLICT DO NOTHING",
        (blob.hash, blob.size, name),
    )
    raw.execute(f"DELETE FROM part_blobs WHERE tenant = {TENANT} AND hash = %s", (name,))
    raw.execute(f"DELETE FROM blobs WHERE tenant = {TENANT} AND hash = %s", (name,))

    def anew(text: str) -> str:
        return excerpt_anew(text, name, blob.hash, whole)

    for part, text, detail in rows:
        _put_part(raw, part, (anew(text), None if detail is None else rewritten_text(detail, anew)), limits)


def _tables(raw: Raw) -> dict[str, list[tuple[str, str, bool]]]:
    """The tables that hold texts in columns of their own, also those that were added since this was written: name, type
    and whether it is part of the key, of each column."""
    tables: dict[str, list[tuple[str, str, bool]]] = {}
    for table, column, kind, is_key in raw.execute(_COLUMNS).fetchall():
        if table not in _APART:
            tables.setdefault(table, []).append((column, kind, is_key))
    return tables


def _columns(raw: Raw, walk: Walk, table: str, columns: Sequence[tuple[str, str, bool]]) -> Iterator[Rewritten]:
    key = [name for name, _, is_key in columns if is_key and name != "tenant"]
    texts = [
        name for name, kind, is_key in columns if kind in ("text", "jsonb", "json") and not is_key and name not in NAMES
    ]
    texts = [name for name in texts if name != "tenant"]
    if not texts or not key:
        return
    where = " AND ".join(f"{name} = %s" for name in key)
    selected = ", ".join([*key, *(f"{name}::text" for name in texts)])
    for row in walk.rows(raw, f"SELECT {selected} FROM {table} WHERE tenant = {TENANT}"):
        names, values = row[: len(key)], row[len(key) :]
        for column, text in zip(texts, values, strict=True):
            kept = None if text is None else rewrite_of(table)(text, walk.rewrite)
            if kept is not None and kept != text:
                kept = erased_key(names[0]) if (table, column) == ("changes", "key") else kept
                found = Found(place=_PLACES.get(table, table), where=str(names[0]), before=text, after=kept)
                update = f"UPDATE {table} SET {column} = %s WHERE tenant = {TENANT} AND {where}"
                yield Rewritten(found=found, apply=partial(raw.execute, update, (kept, *names)))
