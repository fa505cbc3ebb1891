"""Which memory is which row, what both said when they were last in step, and what is still to be written there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.rows import COLUMNS, memory_from_row
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory

_Raw = psycopg.Connection[Any]

Said = Mapping[str, object]
"""What one side says, by the names in FIELDS; comparable with ``==`` and storable as JSON."""

CONTENT, TAGS, PLACE, BY = "content", "tags", "place", "by"
FIELDS = (CONTENT, TAGS, PLACE, BY)
"""The words, the tags, who may see it (type and project), and what took its place."""
MADE = "made"
"""When a row was made; said by rows alone. Under the same id one with another date is another row."""

UNSEEN = ""
"""The version of a row that has to be looked at again before anything is written to it."""

_COLUMNS = "ocpg_id, memory, revision, version, theirs, ours, access_count, recalled, present, removed_here, note"
_READ = "l." + _COLUMNS.replace(", ", ", l.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A row and its memory, which was at ``revision``. ``memory`` None: the row could not become one, for the reason in
    ``note``. ``n`` is the memory's number, None where there is none (any more); it is read, not kept."""

    ocpg_id: int
    memory: MemoryId | None
    revision: int = 0
    n: int | None = None
    version: str
    theirs: Said
    ours: Said | None = None
    access_count: int = 0
    recalled: int = 0
    present: bool = True
    removed_here: bool = False
    note: str | None = None


def digest(text: str) -> str:
    """What stands for a text in what was said: a link keeps no copy of it."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def links_of_rows(raw: _Raw, ocpg_ids: Sequence[int]) -> dict[int, Link]:
    """The links of rows, by the rows' ids."""
    return {link.ocpg_id: link for link in _links(raw, "l.ocpg_id = ANY(%s)", list(ocpg_ids))}


def links_of_memories(raw: _Raw, numbers: Sequence[int]) -> dict[int, Link]:
    """The links of memories, by the memories' numbers."""
    return {link.n: link for link in _links(raw, "m.n = ANY(%s)", list(numbers)) if link.n is not None}


def rows_of_memories(raw: _Raw, ids: Sequence[MemoryId]) -> dict[MemoryId, int]:
    """The rows that memories have in ocpg, by the memories' ids."""
    statement = (
        "SELECT m.id, l.ocpg_id FROM ocpg_links l JOIN memories m ON m.tenant = l.tenant AND m.id = l.memory"
        f" WHERE l.tenant = {TENANT} AND l.present AND m.id = ANY(%s)"
    )
    return {MemoryId(memory_id): int(row) for memory_id, row in raw.execute(statement, (list(ids),))}


def followers(raw: _Raw, numbers: Sequence[int]) -> list[int]:
    """The memories that were replaced by one of these, or by another such, and have been in ocpg."""
    rows = raw.execute(
        "WITH RECURSIVE chain AS ("
        f" SELECT id, n FROM memories WHERE tenant = {TENANT} AND n = ANY(%s) UNION"
        " SELECT older.id, older.n FROM chain JOIN memories older"
        f" ON older.tenant = {TENANT} AND older.superseded_by = chain.id"
        f") SELECT chain.n FROM chain JOIN ocpg_links l ON l.tenant = {TENANT} AND l.memory = chain.id"
        " ORDER BY chain.n DESC",
        (list(numbers),),
    )
    return [int(n) for (n,) in rows]


def numbers_of(raw: _Raw, ids: Sequence[MemoryId]) -> set[int]:
    """The numbers of those of these memories that there are."""
    statement = f"SELECT n FROM memories WHERE tenant = {TENANT} AND id = ANY(%s)"
    return {int(n) for (n,) in raw.execute(statement, (list(ids),))}


def memories_by_number(raw: _Raw, numbers: Iterable[int]) -> dict[int, Memory]:
    """The memories with these numbers that there are."""
    tags = "ARRAY(SELECT t.tag FROM memory_tags t WHERE t.tenant = m.tenant AND t.n = m.n ORDER BY t.position)"
    statement = f"SELECT {tags}, {COLUMNS} FROM memories m WHERE m.tenant = {TENANT} AND m.n = ANY(%s)"
    rows = raw.execute(statement, (sorted(numbers),)).fetchall()
    return {memory.n: memory for memory in (memory_from_row(row, tuple(held)) for held, *row in rows)}


def _links(raw: _Raw, condition: str, *parameters: object) -> list[Link]:
    statement = (
        f"SELECT {_READ}, m.n FROM ocpg_links l LEFT JOIN memories m ON m.tenant = l.tenant AND m.id = l.memory"
        f" WHERE l.tenant = {TENANT} AND {condition}"
    )
    names = [*_COLUMNS.split(", "), "n"]
    return [Link(**dict(zip(names, row, strict=True))) for row in raw.execute(statement, parameters)]


def keep(raw: _Raw, links: Sequence[Link]) -> None:
    """Write links over those of the same rows. What else named one of their memories is let go."""
    if not links:
        return
    memories = [link.memory for link in links if link.memory is not None]
    rows = [link.ocpg_id for link in links]
    raw.execute(
        f"DELETE FROM ocpg_links WHERE tenant = {TENANT} AND (ocpg_id = ANY(%s) OR memory = ANY(%s))", (rows, memories)
    )
    places = ", ".join(["%s"] * len(_COLUMNS.split(", ")))
    with raw.cursor() as cursor:
        cursor.executemany(f"INSERT INTO ocpg_links ({_COLUMNS}) VALUES ({places})", [_row(link) for link in links])


def _row(link: Link) -> tuple[object, ...]:
    ours = None if link.ours is None else json.dumps(link.ours)
    return (
        link.ocpg_id, link.memory, link.revision, link.version, json.dumps(link.theirs), ours,
        link.access_count, link.recalled, link.present, link.removed_here, link.note,
    )  # fmt: skip


def drop(raw: _Raw, ocpg_id: int) -> None:
    """Forget a link."""
    raw.execute(f"DELETE FROM ocpg_links WHERE tenant = {TENANT} AND ocpg_id = %s", (ocpg_id,))


_PENDING = f"""
WITH idle AS (
    DELETE FROM ocpg_pending_sessions s WHERE s.tenant = {TENANT} AND NOT EXISTS
        (SELECT 1 FROM ocpg_pending p WHERE p.tenant = s.tenant AND p.n = s.n AND p.note IS NULL)
)
SELECT n FROM ocpg_pending WHERE tenant = {TENANT} AND note IS NULL ORDER BY n DESC FOR UPDATE SKIP LOCKED
"""


def pending(raw: _Raw) -> list[int]:
    """The numbers of memories that were written since they were last brought there, newest first. Those that another
    transaction works on are left out. Forgets the sessions of memories that a block showed and nobody recalled."""
    return [int(n) for (n,) in raw.execute(_PENDING)]


def settle(raw: _Raw, numbers: Sequence[int]) -> None:
    """Nothing of these memories is left to write."""
    for table in ("ocpg_pending", "ocpg_pending_sessions"):
        raw.execute(f"DELETE FROM {table} WHERE tenant = {TENANT} AND n = ANY(%s)", (list(numbers),))


def leave_out(raw: _Raw, n: int, reason: str) -> None:
    """Note why a memory is not there, until it changes again."""
    raw.execute(f"UPDATE ocpg_pending SET note = %s WHERE tenant = {TENANT} AND n = %s", (reason, n))
    raw.execute(f"DELETE FROM ocpg_pending_sessions WHERE tenant = {TENANT} AND n = %s", (n,))


def reached(raw: _Raw, n: int) -> list[str]:
    """The sessions that a memory reached since it was last brought there."""
    statement = f"SELECT session FROM ocpg_pending_sessions WHERE tenant = {TENANT} AND n = %s"
    return [str(session) for (session,) in raw.execute(statement, (n,))]


def notes(raw: _Raw) -> list[str]:
    """What stands on one side only, and why."""
    rows = raw.execute(
        f"SELECT ocpg_id, note FROM ocpg_links WHERE tenant = {TENANT} AND note IS NOT NULL ORDER BY ocpg_id"
    ).fetchall()
    memories = raw.execute(
        f"SELECT n, note FROM ocpg_pending WHERE tenant = {TENANT} AND note IS NOT NULL ORDER BY n"
    ).fetchall()
    return [f"row {ocpg_id} of ocpg: {note}" for ocpg_id, note in rows] + [
        f"memory #{n} is not in ocpg: {note}" for n, note in memories
    ]
