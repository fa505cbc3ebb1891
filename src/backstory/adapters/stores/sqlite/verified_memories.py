"""The invariants of memories, their history and what is derived from them, each as a check."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from backstory.adapters.stores.sqlite.looking import Look, Rule
from backstory.adapters.stores.sqlite.rows import (
    COLUMNS,
    change_from_rows,
    content_key,
    memory_from_image,
    memory_from_row,
)
from backstory.domain.history import with_counted
from backstory.domain.memory import Memory, Superseded, searchable_text, status_name
from backstory.domain.scope import circle
from backstory.domain.statement_form import INDEX_VERSION
from backstory.domain.text import analyse
from backstory.errors import StoreDamaged
from backstory.ports.upkeep import Finding, Invariant, Severity

_MOST_IN_VOCABULARY = 5000  # rows whose every word is counted without ``full``


def memories_of(look: Look) -> Iterator[tuple[int, Memory | StoreDamaged]]:
    """The memories to look at, by number; for a row that cannot be read, why."""
    rows = look.raw.execute(f"SELECT {COLUMNS} FROM memories m WHERE {look.sampled('memories')} ORDER BY n")
    for row in rows:
        tags = look.raw.execute("SELECT tag FROM memory_tags WHERE n = ? ORDER BY position", (row[0],))
        try:
            yield row[0], memory_from_row(row, tuple(str(tag) for (tag,) in tags))
        except StoreDamaged as error:
            yield row[0], error


def same_decision(one: Memory, other: Memory) -> bool:
    """Whether two states of a memory are alike but for what is counted, not decided."""
    return with_counted(one, of=other) == other


def _references(look: Look) -> Iterator[str]:
    for table, row, parent, _ in look.raw.execute("PRAGMA foreign_key_check"):
        yield f"{table} row {row}: leads to a row of {parent} that is not there"


def _readable(look: Look) -> Iterator[str]:
    for n, memory in memories_of(look):
        if isinstance(memory, StoreDamaged):
            yield f"#{n}: {memory}"


def _history(look: Look) -> Iterator[str]:
    """Each memory was added once, each edit begins where the one before ended, and the last one leads to the row."""
    yield from _unreadable_changes(look)
    for n, memory in memories_of(look):
        try:
            edits = _edits(look.raw, n)
        except StoreDamaged as error:
            yield f"#{n}: {error}"
            continue
        if trouble := trouble_in_history(edits, memory):
            yield f"#{n}: {trouble}"


Edits = Sequence[tuple[Memory | None, Memory]]
"""Before and after of each edit of one memory, in the order of its revisions."""


def _edits(raw: sqlite3.Connection, n: int) -> Edits:
    """Before and after of each edit of a memory, in the order of its revisions."""
    rows = raw.execute("SELECT before, after FROM change_edits WHERE n = ?", (n,))
    edits = [
        (None if before is None else memory_from_image(before), memory_from_image(after)) for before, after in rows
    ]
    return sorted(edits, key=lambda edit: edit[1].revision)


def trouble_in_history(edits: Edits, memory: Memory | StoreDamaged) -> str | None:
    """What is wrong with the history of a memory, None where it leads to the memory as it is."""
    if not edits:
        return "has no history"
    if [after.revision for _, after in edits] != list(range(1, len(edits) + 1)):
        return "a change is missing from its history, or stands there twice"
    if edits[0][0] is not None:
        return "its history does not begin with its being added"
    for (_, left), (before, _) in pairwise(edits):
        if before is None or not same_decision(before, left):
            return f"its change to revision {left.revision + 1} does not begin where revision {left.revision} ended"
    if isinstance(memory, Memory) and not same_decision(memory, edits[-1][1]):
        return "is not as its last change left it"
    return None


def _unreadable_changes(look: Look) -> Iterator[str]:
    columns = "id, at_us, author, action, reason, session, undoes, key"
    for row in look.raw.execute(f"SELECT {columns} FROM changes"):
        try:
            change_from_rows(row, ())
        except (ValueError, OverflowError) as error:
            yield f"change {row[0]}: cannot be read: {error}"
    lonely = "SELECT id FROM changes c WHERE NOT EXISTS (SELECT 1 FROM change_edits e WHERE e.change = c.id)"
    for (change,) in look.raw.execute(lonely):
        yield f"change {change}: says nothing of what it did"


def _numbers(look: Look) -> Iterator[str]:
    """A number means one memory for ever: the next one to be given is above all that were."""
    given = look.raw.execute("SELECT seq FROM sqlite_sequence WHERE name = 'memories'").fetchone()
    used = "SELECT max(coalesce((SELECT max(n) FROM memories), 0), coalesce((SELECT max(n) FROM change_edits), 0))"
    highest = int(look.raw.execute(used).fetchone()[0])
    if highest > (int(given[0]) if given else 0):
        yield f"#{highest}: its number would be given again"
    strange = (
        "SELECT DISTINCT e.n FROM change_edits e JOIN memories m ON m.n = e.n "
        "WHERE json_valid(e.after) AND json_extract(e.after, '$.id') <> m.id"
    )
    for (n,) in look.raw.execute(strange):
        yield f"#{n}: its history is that of another memory"


def _projects(look: Look) -> Iterator[Finding]:
    statement = (
        "SELECT project, count(*) FROM memories WHERE project IS NOT NULL "
        "AND project NOT IN (SELECT id FROM projects) GROUP BY project"
    )
    for project, count in look.raw.execute(statement):
        yield Finding(
            invariant=Invariant.PROJECTS,
            severity=Severity.NOTE,
            what=f"{count} memories belong to a project that was never seen here",
            where=f"project {project}",
            way_out="they were imported or brought from elsewhere; `backstory list --all-projects` shows them",
        )


def _lookups(look: Look) -> Iterator[str]:
    """What a row is searched by says what the row says."""
    statement = "SELECT content_key, state, superseded_by FROM memories WHERE n = ?"
    for n, memory in memories_of(look):
        if isinstance(memory, StoreDamaged):
            continue
        stored = look.raw.execute(statement, (n,)).fetchone()
        if stored != lookups_of(memory):
            yield f"#{n}: the columns it is searched by do not fit its text and status"


def lookups_of(memory: Memory) -> tuple[str, str, str | None]:
    """What the columns content_key, state and superseded_by hold of a memory."""
    by = memory.status.by if isinstance(memory.status, Superseded) else None
    return content_key(memory.content), status_name(memory.status), by


def _words(look: Look) -> Iterator[str]:
    version = look.raw.execute("SELECT analyser FROM word_statistics").fetchone()
    if version is None or version[0] != INDEX_VERSION:
        yield "memory_words: made by another version; the next command that writes makes them anew"
        return
    for n, memory in memories_of(look):
        if isinstance(memory, StoreDamaged):
            continue
        row = look.raw.execute("SELECT tokens, circle FROM memory_words WHERE rowid = ?", (n,)).fetchone()
        if row != words_of(memory):
            yield f"#{n}: {'has no words' if row is None else 'its words are not those of its text'} in the index"
    yield from index_trouble(
        look, words="memory_words", rows="memories", counts="memory_vocabulary WHERE col = 'tokens'"
    )
    yield from sums_trouble(look, words="memory_words", statistics="word_statistics")


def words_of(memory: Memory) -> tuple[str, str]:
    """What the columns tokens and circle of the word index hold of a memory."""
    return " ".join(analyse(searchable_text(memory))), circle(memory)


def index_trouble(look: Look, *, words: str, rows: str, counts: str) -> Iterator[str]:
    """Rows of a word index that belong to nothing, and words that the index counts otherwise than its rows."""
    orphans = f"SELECT rowid FROM {words} WHERE rowid NOT IN (SELECT n FROM {rows})"
    for (n,) in look.raw.execute(orphans):
        yield f"{words} row {n}: belongs to nothing"
    if not look.full and look.raw.execute(f"SELECT count(*) FROM {words}").fetchone()[0] > _MOST_IN_VOCABULARY:
        return
    held: Counter[str] = Counter()
    for (tokens,) in look.raw.execute(f"SELECT tokens FROM {words}"):
        held.update({_folded(token) for token in tokens.split(" ") if token})
    indexed = dict(look.raw.execute(f"SELECT term, doc FROM {counts}"))
    if wrong := sum(indexed.get(term) != count for term, count in held.items()) + len(indexed.keys() - held.keys()):
        yield f"{words}: {wrong} words lead to other rows than those that hold them"


def _folded(token: str) -> str:
    """A token as the index keeps it: letters of ASCII in lower case."""
    return token.lower() if token.isascii() else "".join(sign.lower() if sign.isascii() else sign for sign in token)


def sums_trouble(look: Look, *, words: str, statistics: str) -> Iterator[str]:
    """Sums over a word index that do not fit it."""
    kept = look.raw.execute(f"SELECT documents, tokens FROM {statistics}").fetchone()
    if kept != sums_of(look.raw, words):
        yield f"{statistics}: the sums do not fit the rows of {words}"


def sums_of(raw: sqlite3.Connection, words: str) -> tuple[int, int]:
    """How many rows a word index has, and how many tokens they hold."""
    row = raw.execute(
        f"SELECT count(*), coalesce(sum(CASE WHEN tokens = '' THEN 0 "
        f"ELSE 1 + length(tokens) - length(replace(tokens, ' ', '')) END), 0) FROM {words}"
    ).fetchone()
    return int(row[0]), int(row[1])


def _vectors(look: Look) -> Iterator[str]:
    for table, rows in (("vectors", "memories"), ("passage_vectors", "passages")):
        for n, model in look.raw.execute(f"SELECT n, model FROM {table} WHERE {unfit(rows)}"):
            yield f"{table} of {n}: the vector of {model} belongs to nothing or has a wrong length"
    for n, model in look.raw.execute(f"SELECT n, model FROM passage_word_vectors WHERE {LONE_WORD_VECTORS}"):
        yield f"passage_word_vectors of {n}: the words of {model} belong to no vector"


LONE_WORD_VECTORS = (
    "NOT EXISTS (SELECT 1 FROM passage_vectors v WHERE v.n = passage_word_vectors.n "
    "AND v.model = passage_word_vectors.model)"
)
"""A condition on passage_word_vectors: those whose passage has no vector of their model."""


def unfit(rows: str) -> str:
    """A condition on a table of vectors: those that no search can use."""
    return f"(length(vector) <> 2 * dimension OR n NOT IN (SELECT n FROM {rows}))"


MEMORY_RULES = (
    Rule(invariant=Invariant.REFERENCES, severity=Severity.DAMAGE, check=_references),
    Rule(invariant=Invariant.READABLE, severity=Severity.DAMAGE, check=_readable),
    Rule(invariant=Invariant.HISTORY, severity=Severity.DAMAGE, check=_history),
    Rule(invariant=Invariant.NUMBERS, severity=Severity.DAMAGE, check=_numbers),
    Rule(invariant=Invariant.PROJECTS, severity=Severity.NOTE, check=_projects),
    Rule(invariant=Invariant.LOOKUPS, severity=Severity.OUT_OF_STEP, check=_lookups),
    Rule(invariant=Invariant.WORDS, severity=Severity.OUT_OF_STEP, check=_words),
    Rule(invariant=Invariant.VECTORS, severity=Severity.OUT_OF_STEP, check=_vectors),
)
