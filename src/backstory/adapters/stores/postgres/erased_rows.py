"""Erasing in the rows of a tenant: its memories, and with them every other text, in the transaction of whoever calls.

The other texts are found in ``erased_texts.py``. The room that old rows take in the server's files, and searching for
them, are in ``erasing.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from backstory.adapters.stores.postgres.commits import commit_change
from backstory.adapters.stores.postgres.erased_texts import Raw, Walk, texts_beside
from backstory.adapters.stores.postgres.frozen_texts import withdraw_showing
from backstory.adapters.stores.postgres.looking import LONG
from backstory.adapters.stores.postgres.passages import lock_evidence
from backstory.adapters.stores.postgres.tenancy import TENANT, lock_tenant
from backstory.adapters.stores.postgres.words import index_words, unindex_words
from backstory.adapters.stores.sqlite.receipts import receipt_of, receipt_row
from backstory.adapters.stores.sqlite.rows import COLUMNS, WRITTEN, memory_from_row, memory_row
from backstory.codecs.erasure import changed_text, without
from backstory.domain.erasure import Rewrite
from backstory.domain.evidence_passages import PassageLimits
from backstory.domain.history import WITHDRAWN, Action, Author, Change, Edit
from backstory.domain.memory import Memory, searchable_text
from backstory.domain.text import normalise
from backstory.ports.erasing import Erasure, Found, Progress, Receipt

_EVER = datetime.min.replace(tzinfo=UTC)  # when nothing is erased
_RECEIPT = ("id", "at_us", "reason", "memories", "places", "remains", "traces", "finished")
_TAGS = "ARRAY(SELECT g.tag FROM memory_tags g WHERE g.tenant = m.tenant AND g.n = m.n ORDER BY g.position)"


def look_at(raw: Raw, rewrite: Rewrite, done: Progress) -> Iterator[Found]:
    """Every text that would change. Changes nothing."""
    raw.execute(LONG)
    walk = Walk(erased=frozenset(), rewrite=rewrite, at=_EVER, done=done)
    for memory, kept in _memories(raw, walk):
        before, after = changed_text(memory, kept)
        yield Found(place="memories", where=memory.id, before=before, after=after)
    for item in texts_beside(raw, walk, PassageLimits()):
        yield item.found
    for project, text in raw.execute(f"SELECT project, text FROM summaries WHERE tenant = {TENANT} ORDER BY project"):
        if (kept_text := rewrite(text)) != text:
            yield Found(place="summaries", where=project, before=text, after=kept_text)


def erase(raw: Raw, erasure: Erasure, limits: PassageLimits, done: Progress) -> dict[str, int]:
    """Erase within the transaction that runs, note it in the history and keep a receipt that is not finished; how many
    texts of each place changed."""
    raw.execute(LONG)
    lock_tenant(raw)
    lock_evidence(raw)
    walk = Walk(erased=frozenset(erasure.memories), rewrite=erasure.rewrite, at=erasure.at, done=done)
    masked = [_put(raw, memory, kept) for memory, kept in _memories(raw, walk)]
    counts = Counter(memories=len(masked))
    for item in list(texts_beside(raw, walk, limits)):
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


def put_receipt(raw: Raw, receipt: Receipt) -> None:
    """Keep a receipt in place of the one with its id."""
    updates = ", ".join(f"{name} = excluded.{name}" for name in _RECEIPT[1:])
    raw.execute(
        f"INSERT INTO erasures ({', '.join(_RECEIPT)}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s) "
        f"ON CONFLICT (tenant, id) DO UPDATE SET {updates}",
        receipt_row(receipt),
    )


def _memories(raw: Raw, walk: Walk) -> list[tuple[Memory, Memory]]:
    """The memories that change, each before and after."""
    found = []
    statement = f"SELECT {COLUMNS}, {_TAGS} FROM memories m WHERE m.tenant = {TENANT} ORDER BY m.n"
    for row in walk.rows(raw, statement):
        memory = memory_from_row(row[:-1], tuple(row[-1]))
        kept = without(memory, walk.erased, walk.rewrite, at=walk.at)
        if kept is not memory:
            found.append((memory, kept))
    return found


def _put(raw: Raw, memory: Memory, kept: Memory) -> Memory:
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


def _tell_history(raw: Raw, erasure: Erasure, masked: Sequence[Memory]) -> None:
    """One change by which each memory has another revision, so that no earlier state can be written back."""
    edits = tuple(Edit(before=memory, after=memory) for memory in masked)
    change = Change(
        id=erasure.id, at=erasure.at, author=Author.USER, action=Action.MASK, edits=edits, reason=erasure.reason
    )
    commit_change(raw, change, None)


def _let_go(raw: Raw, memories: Sequence[Any], walk: Walk) -> Counter[str]:
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
