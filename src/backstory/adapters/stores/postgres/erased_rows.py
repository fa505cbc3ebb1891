"""Every text in the rows of a tenant, and rewriting it there: one transaction of whoever calls.

The room that old rows take in the server's files, and searching for them, are in ``erasing.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.commits import commit_change
from backstory.adapters.stores.postgres.frozen_texts import withdraw_showing
from backstory.adapters.stores.postgres.looking import LONG
from backstory.adapters.stores.postgres.passages import index_told, lock_evidence, unindex
from backstory.adapters.stores.postgres.tenancy import TENANT, lock_tenant
from backstory.adapters.stores.postgres.words import index_words, unindex_words
from backstory.adapters.stores.sqlite.blobs import blob_from_row
from backstory.adapters.stores.sqlite.erased_rows import WITHDRAWN, rewrite_of
from backstory.adapters.stores.sqlite.receipts import receipt_of, receipt_row
from backstory.adapters.stores.sqlite.rows import COLUMNS, WRITTEN, memory_from_row, memory_row
from backstory.codecs.erasure import (
    NAMES,
    changed_text,
    erased_key,
    rewritten_detail,
    rewritten_image,
    rewritten_text,
    without,
)
from backstory.domain.attached_text import kept_bytes
from backstory.domain.blob import content_of, make_blob
from backstory.domain.conversation import BlobHash
from backstory.domain.erasure import Rewrite
from backstory.domain.evidence_passages import PassageLimits
from backstory.domain.excerpt import excerpt_anew
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.memory import Memory, searchable_text
from backstory.domain.text import normalise
from backstory.ports.erasing import Erasure, Found, Progress, Receipt

_Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects

_EVER = datetime.min.replace(tzinfo=UTC)  # when nothing is erased
_STEP = 500  # rows between two tidings of progress
_RECEIPT = ("id", "at_us", "reason", "memories", "places", "remains", "traces", "finished")
_TAGS = "ARRAY(SELECT g.tag FROM memory_tags g WHERE g.tenant = m.tenant AND g.n = m.n ORDER BY g.position)"

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
class _Walk:
    erased: frozenset[str]
    rewrite: Rewrite
    at: datetime
    done: Progress

    def rows(self, raw: _Raw, statement: str) -> Iterator[Sequence[Any]]:
        """The rows of a statement, telling now and then how many there were."""
        count = 0
        for count, row in enumerate(raw.execute(statement), start=1):
            if count % _STEP == 0:
                self.done(_STEP)
            yield row
        self.done(count % _STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rewritten:
    """One text that changes, and what to do about it."""

    found: Found
    apply: Callable[[], object]


def look_at(raw: _Raw, rewrite: Rewrite, done: Progress) -> Iterator[Found]:
    """Every text that would change. Changes nothing."""
    raw.execute(LONG)
    walk = _Walk(erased=frozenset(), rewrite=rewrite, at=_EVER, done=done)
    for memory, kept in _memories(raw, walk):
        before, after = changed_text(memory, kept)
        yield Found(place="memories", where=memory.id, before=before, after=after)
    for item in _others(raw, walk, PassageLimits()):
        yield item.found
    for project, text in raw.execute(f"SELECT project, text FROM summaries WHERE tenant = {TENANT} ORDER BY project"):
        if (kept_text := rewrite(text)) != text:
            yield Found(place="summaries", where=project, before=text, after=kept_text)


def erase(raw: _Raw, erasure: Erasure, limits: PassageLimits, done: Progress) -> dict[str, int]:
    """Erase within the transaction that runs, note it in the history and keep a receipt that is not finished; how many
    texts of each place changed."""
    raw.execute(LONG)
    lock_tenant(raw)
    lock_evidence(raw)
    walk = _Walk(erased=frozenset(erasure.memories), rewrite=erasure.rewrite, at=erasure.at, done=done)
    masked = [_put(raw, memory, kept) for memory, kept in _memories(raw, walk)]
    counts = Counter(memories=len(masked))
    for item in list(_others(raw, walk, limits)):
        item.apply()
        counts[item.found.place] += 1
    counts += _let_go(raw, sorted({*erasure.memories, *(memory.id for memory in masked)}), walk)
    if counts.total():
        raw.execute(f"DELETE FROM term_frequencies WHERE tenant = {TENANT} AND documents <= 0")
        for journal in ("digests", "dreams"):  # whoever works on it reads it again
            raw.execute(f"UPDATE {journal} SET revision = revision + 1 WHERE tenant = {TENANT}")
    if masked:
        _tell_history(raw, erasure, masked)
    places = dict(+counts)
    if places:
        put_receipt(raw, receipt_of(erasure, places))
    return places


def put_receipt(raw: _Raw, receipt: Receipt) -> None:
    """Keep a receipt in place of the one with its id."""
    updates = ", ".join(f"{name} = excluded.{name}" for name in _RECEIPT[1:])
    raw.execute(
        f"INSERT INTO erasures ({', '.join(_RECEIPT)}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s) "
        f"ON CONFLICT (tenant, id) DO UPDATE SET {updates}",
        receipt_row(receipt),
    )


def _memories(raw: _Raw, walk: _Walk) -> list[tuple[Memory, Memory]]:
    """The memories that change, each before and after."""
    found = []
    statement = f"SELECT {COLUMNS}, {_TAGS} FROM memories m WHERE m.tenant = {TENANT} ORDER BY m.n"
    for row in walk.rows(raw, statement):
        memory = memory_from_row(row[:-1], tuple(row[-1]))
        kept = without(memory, walk.erased, walk.rewrite, at=walk.at)
        if kept is not memory:
            found.append((memory, kept))
    return found


def _put(raw: _Raw, memory: Memory, kept: Memory) -> Memory:
    """Write a memory anew under its revision, with its words; its vectors go."""
    assignments = ", ".join(f"{name} = %s" for name in (*WRITTEN[1:], "normalised"))
    values = (*memory_row(kept)[1:], normalise(kept.content), kept.n)
    raw.execute(f"UPDATE memories SET {assignments} WHERE tenant = {TENANT} AND n = %s", values)
    raw.execute(f"DELETE FROM memory_tags WHERE tenant = {TENANT} AND n = %s", (kept.n,))
    for position, tag in enumerate(kept.tags):
        raw.execute("INSERT INTO memory_tags (n, position, tag) VALUES (%s, %s, %s)", (kept.n, position, tag))
    if searchable_text(memory) != searchable_text(kept):
        unindex_words(raw, [kept.n])
        index_words(raw, [kept])
        raw.execute(f"DELETE FROM vectors WHERE tenant = {TENANT} AND n = %s", (kept.n,))
    return kept


def _tell_history(raw: _Raw, erasure: Erasure, masked: Sequence[Memory]) -> None:
    """One change by which each memory has another revision, so that no earlier state can be written back."""
    edits = tuple(Edit(before=memory, after=memory) for memory in masked)
    change = Change(
        id=erasure.id, at=erasure.at, author=Author.USER, action=Action.MASK, edits=edits, reason=erasure.reason
    )
    commit_change(raw, change, None)


def _others(raw: _Raw, walk: _Walk, limits: PassageLimits) -> Iterator[_Rewritten]:
    yield from _images(raw, walk)
    yield from _parts(raw, walk, limits)
    yield from _blobs(raw, walk, limits)
    for table, columns in _tables(raw).items():
        yield from _columns(raw, walk, table, columns)


def _images(raw: _Raw, walk: _Walk) -> Iterator[_Rewritten]:
    statement = f"SELECT change, position, before::text, after::text FROM change_edits WHERE tenant = {TENANT}"
    for change, position, *images in walk.rows(raw, statement):
        for column, text in zip(("before", "after"), images, strict=True):
            kept = None if text is None else rewritten_image(text, walk.erased, walk.rewrite, at=walk.at)
            if kept is not None and kept != text:
                update = (
                    f"UPDATE change_edits SET {column} = %s WHERE tenant = {TENANT} AND change = %s AND position = %s"
                )
                found = Found(place="history", where=change, before=text, after=kept)
                yield _Rewritten(found=found, apply=partial(raw.execute, update, (kept, change, position)))


def _parts(raw: _Raw, walk: _Walk, limits: PassageLimits) -> Iterator[_Rewritten]:
    statement = f"SELECT id, message, text, detail FROM parts WHERE tenant = {TENANT} ORDER BY id"
    for part, message, *given in walk.rows(raw, statement):
        text, detail = given
        kept = (walk.rewrite(text), None if detail is None else rewritten_detail(detail, walk.rewrite))
        if kept != (text, detail):
            before, after = (text, kept[0]) if kept[0] != text else (detail, kept[1] or "")
            found = Found(place="messages", where=message, before=before, after=after)
            yield _Rewritten(found=found, apply=partial(_put_part, raw, part, kept, limits))


def _put_part(raw: _Raw, part: str, kept: tuple[str, str | None], limits: PassageLimits) -> None:
    raw.execute(f"UPDATE parts SET text = %s, detail = %s WHERE tenant = {TENANT} AND id = %s", (*kept, part))
    raw.execute("INSERT INTO erased_parts (part) VALUES (%s) ON CONFLICT DO NOTHING", (part,))
    unindex(raw, "part", [part])
    index_told(raw, parts=[part], messages=[], limits=limits)


def _blobs(raw: _Raw, walk: _Walk, limits: PassageLimits) -> Iterator[_Rewritten]:
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
            yield _Rewritten(found=found, apply=partial(_put_blob, raw, BlobHash(name), kept, limits))


def _put_blob(raw: _Raw, name: BlobHash, content: bytes, limits: PassageLimits) -> None:
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


def _tables(raw: _Raw) -> dict[str, list[tuple[str, str, bool]]]:
    """The tables that hold texts in columns of their own, also those that were added since this was written: name, type
    and whether it is part of the key, of each column."""
    tables: dict[str, list[tuple[str, str, bool]]] = {}
    for table, column, kind, is_key in raw.execute(_COLUMNS).fetchall():
        if table not in _APART:
            tables.setdefault(table, []).append((column, kind, is_key))
    return tables


def _columns(raw: _Raw, walk: _Walk, table: str, columns: Sequence[tuple[str, str, bool]]) -> Iterator[_Rewritten]:
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
                yield _Rewritten(found=found, apply=partial(raw.execute, update, (kept, *names)))


def _let_go(raw: _Raw, memories: Sequence[Any], walk: _Walk) -> Counter[str]:
    """Let go of what shows or sums up the memories, and of summaries that hold what goes."""
    withdraw_showing(raw, memories, because=WITHDRAWN)
    raw.execute(f"DELETE FROM doubts WHERE tenant = {TENANT} AND memory = ANY(%s)", (list(memories),))
    of_memories = f"DELETE FROM keepsakes WHERE tenant = {TENANT} AND memory = ANY(%s)"
    let_go = raw.execute(of_memories, (list(memories),)).rowcount
    statement = f"SELECT project FROM summary_sources WHERE tenant = {TENANT} AND memory = ANY(%s)"
    gone = {row[0] for row in raw.execute(statement, (list(memories),))}
    kept = raw.execute(f"SELECT project, text FROM summaries WHERE tenant = {TENANT}").fetchall()
    gone |= {project for project, text in kept if walk.rewrite(text) != text}
    raw.execute(f"DELETE FROM summaries WHERE tenant = {TENANT} AND project = ANY(%s)", (list(gone),))
    return Counter(summaries=len(gone), keepsakes=let_go)
