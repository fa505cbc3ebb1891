"""Erasing in the tables of a store: its memories, and with them every other text, in the transaction of whoever calls.

The other texts are found in ``erased_texts.py``. Bytes that are left behind in the file are in ``erased_bytes.py``.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from backstory.adapters.stores.sqlite.erased_texts import Walk, texts_beside
from backstory.adapters.stores.sqlite.frozen_texts import withdraw_showing
from backstory.adapters.stores.sqlite.receipts import put_receipt, receipt_of
from backstory.adapters.stores.sqlite.rows import COLUMNS, WRITTEN, dump, memory_from_row, memory_row
from backstory.adapters.stores.sqlite.words import index_words, unindex_words
from backstory.codecs.erasure import changed_text, without
from backstory.domain.erasure import Rewrite
from backstory.domain.evidence_passages import PassageLimits
from backstory.domain.history import WITHDRAWN, Action, Author, Change, Edit
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory, searchable_text
from backstory.errors import StoreDamaged
from backstory.ports.erasing import Erasure, Found, Progress

EVER = datetime.min.replace(tzinfo=UTC)  # when nothing is erased


def look_at(raw: sqlite3.Connection, rewrite: Rewrite, done: Progress) -> Iterator[Found]:
    """Every text that would change, in the order of the places. Changes nothing."""
    walk = Walk(erased=frozenset(), rewrite=rewrite, at=EVER, done=done)
    for memory, kept in _memories(raw, walk):
        before, after = changed_text(memory, kept)
        yield Found(place="memories", where=memory.id, before=before, after=after)
    for item in texts_beside(raw, walk, PassageLimits()):
        yield item.found
    for project, text in raw.execute("SELECT project, text FROM summaries ORDER BY project"):
        if (kept_text := rewrite(text)) != text:
            yield Found(place="summaries", where=project, before=text, after=kept_text)


def erase(raw: sqlite3.Connection, erasure: Erasure, limits: PassageLimits, done: Progress) -> dict[str, int]:
    """Erase within the transaction that runs, note it in the history and keep a receipt that is not finished; how many
    texts of each place changed. Everything is looked for before anything is written: most of the time goes there."""
    counts = _erase_rows(raw, erasure, limits, done)
    if counts:
        put_receipt(raw, receipt_of(erasure, counts))
    return counts


def _erase_rows(raw: sqlite3.Connection, erasure: Erasure, limits: PassageLimits, done: Progress) -> dict[str, int]:
    """The same without the receipt."""
    raw.execute("PRAGMA secure_delete = ON")  # what is freed is overwritten, even before the file is written anew
    walk = Walk(erased=frozenset(erasure.memories), rewrite=erasure.rewrite, at=erasure.at, done=done)
    memories, beside = _memories(raw, walk), list(texts_beside(raw, walk, limits))
    masked = [_put(raw, memory, kept) for memory, kept in memories]
    counts = Counter(memories=len(masked))
    for item in beside:
        item.apply()
        counts[item.found.place] += 1
    counts += _let_go(raw, {*erasure.memories, *(memory.id for memory in masked)}, walk)
    if counts.total():
        _renew_indexes(raw)
        for journal in ("digests", "dreams"):
            raw.execute(f"UPDATE {journal} SET revision = revision + 1")  # whoever works on it reads it again
    if masked:
        _tell_history(raw, erasure, masked)
    return dict(+counts)


def _memories(raw: sqlite3.Connection, walk: Walk) -> list[tuple[Memory, Memory]]:
    """The memories that change, each before and after."""
    found = []
    for row in walk.stepping(raw.execute(f"SELECT {COLUMNS} FROM memories m ORDER BY m.n")):
        tags = raw.execute("SELECT tag FROM memory_tags WHERE n = ? ORDER BY position", (row[0],))
        try:
            memory = memory_from_row(row, tuple(tag for (tag,) in tags))
        except StoreDamaged as error:
            raise StoreDamaged(f"{error}; nothing was erased, since nobody could tell whether all of it is") from error
        kept = without(memory, walk.erased, walk.rewrite, at=walk.at)
        if kept is not memory:
            found.append((memory, kept))
    return found


def _put(raw: sqlite3.Connection, memory: Memory, kept: Memory) -> Memory:
    """Write a memory anew under its revision, with its words; its vectors go."""
    assignments = ", ".join(f"{name} = ?" for name in WRITTEN[1:])
    raw.execute(f"UPDATE memories SET {assignments} WHERE n = ?", (*memory_row(kept)[1:], kept.n))
    raw.execute("DELETE FROM memory_tags WHERE n = ?", (kept.n,))
    raw.executemany(
        "INSERT INTO memory_tags (n, position, tag) VALUES (?, ?, ?)",
        [(kept.n, position, tag) for position, tag in enumerate(kept.tags)],
    )
    if searchable_text(memory) != searchable_text(kept):
        unindex_words(raw, kept.n)
        index_words(raw, kept)
        raw.execute("DELETE FROM vectors WHERE n = ?", (kept.n,))
    return kept


def _tell_history(raw: sqlite3.Connection, erasure: Erasure, masked: Sequence[Memory]) -> None:
    """One more change, by which each of the memories has another revision: whoever read it before it was rewritten is
    refused when he writes it back."""
    from backstory.adapters.stores.sqlite.commits import commit_change

    change = Change(
        id=erasure.id,
        at=erasure.at,
        author=Author.USER,
        action=Action.MASK,
        edits=tuple(Edit(before=memory, after=memory) for memory in masked),
        reason=erasure.reason,
    )
    commit_change(raw, change, None)


def _let_go(raw: sqlite3.Connection, memories: set[MemoryId], walk: Walk) -> Counter[str]:
    """Let go of what shows or sums up the memories, and of summaries that hold what goes."""
    wanted = dump(sorted(memories))
    before = raw.total_changes
    withdraw_showing(raw, sorted(memories), because=WITHDRAWN)
    counts: Counter[str] = Counter(blocks=raw.total_changes - before)
    named = "SELECT value FROM json_each(?)"
    raw.execute(f"DELETE FROM doubts WHERE memory IN ({named})", (wanted,))
    counts["keepsakes"] = raw.execute(f"DELETE FROM keepsakes WHERE memory IN ({named})", (wanted,)).rowcount
    gone = {row[0] for row in raw.execute(f"SELECT project FROM summary_sources WHERE memory IN ({named})", (wanted,))}
    gone |= {name for name, text in raw.execute("SELECT project, text FROM summaries") if walk.rewrite(text) != text}
    raw.executemany("DELETE FROM summaries WHERE project = ?", [(name,) for name in gone])
    counts["summaries"] = len(gone)
    return counts


def _renew_indexes(raw: sqlite3.Connection) -> None:
    """FTS5 keeps the words of rows that are gone until it happens to merge; made anew, it knows them no more."""
    for words in ("memory_words", "passage_words"):
        raw.execute(f"INSERT INTO {words} ({words}) VALUES ('rebuild')")
