"""The invariants of memories, their history and what is derived from them in Postgres, each as a check."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from backstory.adapters.stores.postgres.looking import Look, Raw, Rule, rows_of
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.rows import COLUMNS, change_from_rows, memory_from_image, memory_from_row
from backstory.adapters.stores.sqlite.verified_memories import Edits, lookups_of, trouble_in_history
from backstory.domain.memory import Memory, searchable_text
from backstory.domain.statement_form import INDEX_VERSION
from backstory.domain.text import analyse, normalise
from backstory.errors import StoreDamaged
from backstory.ports.upkeep import Finding, Invariant, Severity

_TAGS = "ARRAY(SELECT g.tag FROM memory_tags g WHERE g.tenant = m.tenant AND g.n = m.n ORDER BY g.position)"
_LOOKUPS = "m.content_key, m.state, m.superseded_by, m.normalised"
_FOREIGN_KEYS = """
    SELECT c.conrelid::regclass::text, c.confrelid::regclass::text,
        ARRAY(SELECT attname::text FROM unnest(c.conkey) WITH ORDINALITY k (number, place)
            JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.number ORDER BY place),
        ARRAY(SELECT attname::text FROM unnest(c.confkey) WITH ORDINALITY k (number, place)
            JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.number ORDER BY place)
    FROM pg_constraint c JOIN pg_namespace s ON s.oid = c.connamespace
    WHERE c.contype = 'f' AND s.nspname = current_schema() ORDER BY 1, 2
"""
WRONG_FREQUENCIES = f"""
    SELECT term, coalesce(held.documents, 0) FROM
    (SELECT term, count(*) AS documents FROM memory_terms WHERE tenant = {TENANT} GROUP BY term) held
    FULL JOIN (SELECT term, documents FROM term_frequencies WHERE tenant = {TENANT}) kept USING (term)
    WHERE coalesce(held.documents, 0) <> coalesce(kept.documents, 0)
"""
"""The terms that are in another number of memories than is kept, with the right one."""
SUMS = f"""
    SELECT (SELECT count(*) FROM memories WHERE tenant = {TENANT}),
        (SELECT coalesce(sum(count), 0) FROM memory_terms WHERE tenant = {TENANT})
"""
UNFIT = "length(vector) <> 2 * dimension"
"""Of a table of vectors: those that no search can use."""
_TWIN = "LATERAL (SELECT half_floats(v.vector) AS floats OFFSET 0) f WHERE array_position(f.floats, NULL) IS NULL"
MISSING_TWINS = {
    "vectors": (
        "SELECT v.seq, v.n, v.model FROM (SELECT v.* FROM vectors v LEFT JOIN embeddings e ON e.tenant = v.tenant "
        f"AND e.seq = v.seq WHERE v.tenant = {TENANT} AND e.seq IS NULL) v, {_TWIN}"
    ),
    "passage_vectors": (
        "SELECT v.n, v.n, v.model FROM (SELECT v.* FROM passage_vectors v LEFT JOIN passage_embeddings e "
        f"ON e.tenant = v.tenant AND e.n = v.n AND e.model = v.model WHERE v.tenant = {TENANT} AND e.n IS NULL) v, "
        f"{_TWIN}"
    ),
}
"""The vectors that pgvector does not have though it could: their key, their row and model."""
WRONG_TWINS = {
    "vectors": (
        "SELECT v.seq, v.n, v.model FROM vectors v JOIN embeddings e ON e.tenant = v.tenant AND e.seq = v.seq "
        f"WHERE v.tenant = {TENANT} AND {{condition}} AND ((v.n, v.model, v.dimension) <> (e.n, e.model, e.dimension) "
        "OR half_floats(v.vector)::vector <> e.embedding::vector)"
    ),
    "passage_vectors": (
        "SELECT v.n, v.n, v.model FROM passage_vectors v JOIN passage_embeddings e ON e.tenant = v.tenant "
        f"AND e.n = v.n AND e.model = v.model WHERE v.tenant = {TENANT} AND {{condition}} AND "
        "(v.dimension <> e.dimension OR half_floats(v.vector)::vector <> e.embedding::vector)"
    ),
}
"""The vectors that pgvector has otherwise, among those that ``condition`` selects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A memory's row: the memory, or why it cannot be read; and what it is searched by."""

    n: int
    memory: Memory | StoreDamaged
    lookups: tuple[object, ...]


def stored_memories(raw: Raw, condition: str = "true", *parameters: object) -> Iterator[list[Stored]]:
    """The rows that ``condition`` selects, by number, some at a time."""
    statement = (
        f"SELECT {COLUMNS}, {_TAGS}, {_LOOKUPS} FROM memories m WHERE m.tenant = {TENANT} AND {condition} ORDER BY n"
    )
    for rows in rows_of(raw, statement, *parameters):
        yield [_stored(row) for row in rows]


def _stored(row: Sequence[object]) -> Stored:
    n, tags, lookups = row[0], row[-5], tuple(row[-4:])
    assert isinstance(n, int)
    assert isinstance(tags, list)
    try:
        return Stored(n=n, memory=memory_from_row(row[:-5], tuple(tags)), lookups=lookups)
    except StoreDamaged as error:
        return Stored(n=n, memory=error, lookups=lookups)


def searched_by(memory: Memory) -> tuple[object, ...]:
    """What the columns hold that a memory is searched by."""
    return (*lookups_of(memory), normalise(memory.content))


def terms_of(memory: Memory) -> tuple[Counter[str], int]:
    """Which terms a memory has in the word index, how often, and how many tokens that are."""
    tokens = analyse(searchable_text(memory))
    return Counter(tokens), len(tokens)


def indexed_terms(raw: Raw, numbers: Sequence[int]) -> Mapping[int, dict[str, tuple[int, int]]]:
    """The terms that memories have in the word index, each with its count and the memory's length."""
    found: defaultdict[int, dict[str, tuple[int, int]]] = defaultdict(dict)
    statement = f"SELECT n, term, count, length FROM memory_terms WHERE tenant = {TENANT} AND n = ANY(%s)"
    for n, term, count, length in raw.execute(statement, (list(numbers),)):
        found[n][term] = (count, length)
    return found


def is_indexed(memory: Memory, terms: Mapping[str, tuple[int, int]]) -> bool:
    """Whether the word index has of a memory what the analyser makes of its text."""
    counts, length = terms_of(memory)
    return terms == {term: (count, length) for term, count in counts.items()}


def _references(look: Look) -> Iterator[str]:
    """The server keeps these itself, unless somebody told it not to while loading."""
    for child, parent, columns, theirs in look.raw.execute(_FOREIGN_KEYS).fetchall():
        pairs = list(zip(columns, theirs, strict=True))
        same = " AND ".join(f"p.{their} = c.{own}" for own, their in pairs)
        named = " AND ".join(f"c.{own} IS NOT NULL" for own in columns)
        statement = (
            f"SELECT count(*) FROM {child} c WHERE c.tenant = {TENANT} AND {named} "
            f"AND NOT EXISTS (SELECT 1 FROM {parent} p WHERE {same})"
        )
        count = int((look.raw.execute(statement).fetchone() or (0,))[0])
        if count:
            yield f"{child}: {count} rows lead to rows of {parent} that are not there"


def _readable(look: Look) -> Iterator[str]:
    for some in stored_memories(look.raw, look.sampled("memories")):
        for row in some:
            if isinstance(row.memory, StoreDamaged):
                yield f"#{row.n}: {row.memory}"


def _history(look: Look) -> Iterator[str]:
    yield from _unreadable_changes(look)
    for some in stored_memories(look.raw, look.sampled("memories")):
        edits = _edits(look.raw, [row.n for row in some])
        for row in some:
            found = edits.get(row.n, [])
            trouble = str(found) if isinstance(found, StoreDamaged) else trouble_in_history(found, row.memory)
            if trouble:
                yield f"#{row.n}: {trouble}"


def _edits(raw: Raw, numbers: Sequence[int]) -> dict[int, Edits | StoreDamaged]:
    """The edits of each memory, in the order of their revisions."""
    images: defaultdict[int, list[tuple[str | None, str]]] = defaultdict(list)
    statement = f"SELECT n, before::text, after::text FROM change_edits WHERE tenant = {TENANT} AND n = ANY(%s)"
    for n, before, after in raw.execute(statement, (list(numbers),)):
        images[n].append((before, after))
    return {n: _decoded(rows) for n, rows in images.items()}


def _decoded(rows: Sequence[tuple[str | None, str]]) -> Edits | StoreDamaged:
    try:
        edits = [
            (None if before is None else memory_from_image(before), memory_from_image(after)) for before, after in rows
        ]
    except StoreDamaged as error:
        return error
    return sorted(edits, key=lambda edit: edit[1].revision)


def _unreadable_changes(look: Look) -> Iterator[str]:
    columns = "c.id, c.at_us, c.author, c.action, c.reason, c.session, c.undoes, c.key"
    edited = "EXISTS (SELECT 1 FROM change_edits e WHERE e.tenant = c.tenant AND e.change = c.id)"
    statement = f"SELECT {columns}, {edited} FROM changes c WHERE c.tenant = {TENANT}"
    for some in rows_of(look.raw, statement):
        for *row, says_something in some:
            try:
                change_from_rows(row, ())
            except (ValueError, OverflowError) as error:
                yield f"change {row[0]}: cannot be read: {error}"
            if not says_something:
                yield f"change {row[0]}: says nothing of what it did"


def _numbers(look: Look) -> Iterator[str]:
    """A number means one memory for ever: the next one to be given is above all that were."""
    statement = (
        f"SELECT coalesce((SELECT last_n FROM tenants WHERE tenant = {TENANT}), 0), greatest("
        f"(SELECT max(n) FROM memories WHERE tenant = {TENANT}), "
        f"(SELECT max(n) FROM change_edits WHERE tenant = {TENANT}), 0)"
    )
    given, highest = look.raw.execute(statement).fetchone() or (0, 0)
    if highest > given:
        yield f"#{highest}: its number would be given again"
    strange = (
        "SELECT DISTINCT e.n FROM change_edits e JOIN memories m ON m.tenant = e.tenant AND m.n = e.n "
        f"WHERE e.tenant = {TENANT} AND e.after ->> 'id' IS DISTINCT FROM m.id"
    )
    for (n,) in look.raw.execute(strange).fetchall():
        yield f"#{n}: its history is that of another memory"


def _projects(look: Look) -> Iterator[Finding]:
    statement = (
        f"SELECT project, count(*) FROM memories m WHERE tenant = {TENANT} AND project IS NOT NULL AND NOT EXISTS "
        "(SELECT 1 FROM projects p WHERE p.tenant = m.tenant AND p.id = m.project) GROUP BY project ORDER BY project"
    )
    for project, count in look.raw.execute(statement).fetchall():
        yield Finding(
            invariant=Invariant.PROJECTS,
            severity=Severity.NOTE,
            what=f"{count} memories belong to a project that was never seen here",
            where=f"project {project}",
            way_out="they were imported or brought from elsewhere; `backstory list --all-projects` shows them",
        )


def _lookups(look: Look) -> Iterator[str]:
    for some in stored_memories(look.raw, look.sampled("memories")):
        for row in some:
            if isinstance(row.memory, Memory) and row.lookups != searched_by(row.memory):
                yield f"#{row.n}: the columns it is searched by do not fit its text and status"


def _words(look: Look) -> Iterator[str]:
    statement = f"SELECT documents, tokens, analyser FROM tenants WHERE tenant = {TENANT}"
    *kept, version = look.raw.execute(statement).fetchone() or (0, 0, None)
    if version != INDEX_VERSION:
        yield "memory_terms: made by another version; the next command that writes makes them anew"
        return
    for some in stored_memories(look.raw, look.sampled("memories")):
        terms = indexed_terms(look.raw, [row.n for row in some])
        for row in some:
            if isinstance(row.memory, Memory) and not is_indexed(row.memory, terms.get(row.n, {})):
                yield f"#{row.n}: its words are not those of its text in the index"
    for (n,) in look.raw.execute(orphans("memory_terms", "memories")).fetchall():
        yield f"memory_terms of {n}: belong to nothing"
    if wrong := len(look.raw.execute(WRONG_FREQUENCIES).fetchall()):
        yield f"term_frequencies: {wrong} words are in another number of memories than it says"
    if kept != list(look.raw.execute(SUMS).fetchone() or ()):
        yield "tenants: the sums do not fit the rows of memory_terms"


def orphans(terms: str, rows: str) -> str:
    """A statement for the numbers in a table of terms that are no row's."""
    return (
        f"SELECT n FROM (SELECT DISTINCT n FROM {terms} WHERE tenant = {TENANT}) t WHERE NOT EXISTS "
        f"(SELECT 1 FROM {rows} m WHERE m.tenant = {TENANT} AND m.n = t.n)"
    )


def _vectors(look: Look) -> Iterator[str]:
    for table, rows in (("vectors", "memories"), ("passage_vectors", "passages")):
        unfit = f"SELECT n, model FROM {table} WHERE tenant = {TENANT} AND {UNFIT}"
        for n, model in look.raw.execute(unfit).fetchall():
            yield f"{table} of {n}: the vector of {model} has a wrong length"
        if not look.has_vector:
            continue
        newest = look.sampled(rows) if look.full else f"v.n > (SELECT max(n) - 200 FROM {rows} WHERE tenant = {TENANT})"
        statements = (MISSING_TWINS[table], WRONG_TWINS[table].format(condition=newest))
        for statement, what in zip(statements, ("has no", "has another"), strict=True):
            for _, n, model in look.raw.execute(statement).fetchall():
                yield f"{table} of {n}: the vector of {model} {what} twin in pgvector"


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
