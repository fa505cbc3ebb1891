"""Rows of an ocpg database: read, made into memories, and taken over where they change.

What each word and column means is in ``formats/ocpg/rows.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from backstory.adapters.formats.ocpg import rows
from backstory.adapters.formats.ocpg.rows import SYSTEM, OcpgRow, place_of, status_of, tags_of
from backstory.adapters.stores.postgres.ocpg.layout import Layout
from backstory.adapters.stores.postgres.ocpg.links import BY, CONTENT, MADE, PLACE, TAGS, Said, digest
from backstory.adapters.stores.sqlite.rows import from_us
from backstory.domain.admission import TextLimits, admit
from backstory.domain.ids import MemoryId, ProjectId, make_ulid
from backstory.domain.memory import Active, Conflicted, Deleted, Kind, Memory, Status
from backstory.domain.provenance import Origin, lowest

_Raw = psycopg.Connection[Any]

_LIMITS = TextLimits(min_chars=1, max_chars=100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(OcpgRow):
    """A row as of one look. ``version`` changes with every write to it."""

    version: str

    @property
    def said(self) -> Said:
        """What it says."""
        return {
            CONTENT: digest(self.content),
            TAGS: [*self.tags],
            PLACE: [self.type, self.project],
            BY: self.by,
            MADE: self.created,
        }


def read_rows(raw: _Raw, layout: Layout, ids: Sequence[int]) -> list[Row]:
    """The rows with these ids that are there, by id."""

    def column(name: str, otherwise: str) -> sql.Composable:
        return sql.SQL("r.{}").format(sql.Identifier(name)) if name in layout.columns else sql.SQL(otherwise)

    def time(of: str, name: str) -> sql.Composable:
        if name not in layout.columns:
            return sql.SQL("NULL::bigint")
        given = sql.SQL("{}.{}").format(sql.SQL(of), sql.Identifier(name))
        return sql.SQL(
            "CASE WHEN {0} > '1970-01-01Z' AND {0} < '9998-01-01Z' THEN (extract(epoch FROM {0}) * 1000000)::bigint END"
        ).format(given)

    has_by = "superseded_by" in layout.columns
    statement = sql.SQL(
        "SELECT r.id, r.xmin::text, r.content, r.tags, r.session_id, r.project, {type}, {created}, {updated},"
        " {accessed}, {count}, {by}, {by_created}, {host} FROM {table} r {join} WHERE r.id = ANY(%s) ORDER BY r.id"
    ).format(
        type=column("memory_type", "NULL::text"),
        created=time("r", "created_at"),
        updated=time("r", "updated_at"),
        accessed=time("r", "last_accessed_at"),
        count=column("access_count", "0"),
        by=column("superseded_by", "NULL::integer"),
        by_created=time("s", "created_at") if has_by else sql.SQL("NULL::bigint"),
        host=column("source_host", "NULL::text"),
        table=layout.memories,
        join=sql.SQL("LEFT JOIN {} s ON s.id = r.superseded_by").format(layout.memories) if has_by else sql.SQL(""),
    )
    return [_row(values) for values in raw.execute(statement, (list(ids),))]


def _row(values: Sequence[Any]) -> Row:
    id_, version, content, tags, session, project, type_, created, updated, accessed, count, by, by_created, host = (
        values
    )
    return Row(
        id=id_,
        version=version,
        content=content,
        tags=tuple(tag for tag in tags if tag is not None),
        session=session,
        project=project,
        type=type_,
        created=created,
        updated=updated,
        accessed=accessed,
        access_count=max(count, 0),
        by=by,
        by_created=by_created,
        host=host,
    )


def memory_id(ocpg_id: int, created: int | None) -> MemoryId:
    """The id of the memory that a row becomes: the same whoever reads it, and whenever."""
    seed = hashlib.blake2b(f"{SYSTEM} {ocpg_id} {created}".encode(), digest_size=10).digest()
    return MemoryId(make_ulid(time_ms=(created or 0) // 1000, randomness=seed))


def memory_of(row: Row, project: ProjectId | None, *, by: MemoryId | None, sessions: int, now: datetime) -> Memory:
    """The memory that a row becomes; ``by`` took its place. Raises InputError for a row that none can be made of."""
    known = {"memory_type": row.type, "project": row.project, "source_host": row.host}
    return rows.memory_of(
        row,
        project,
        id=memory_id(row.id, row.created),
        content=content_of(row),
        by=by,
        sessions=sessions,
        raw={name: value for name, value in known.items() if value is not None},
        now=now,
    )


def content_of(row: Row) -> str:
    """The words of a row, fit to be kept. Raises InputError."""
    return admit(row.content, field="content", limits=_LIMITS).text


def applied(
    memory: Memory, row: Row, fields: set[str], project: ProjectId | None, *, by: MemoryId | None, now: datetime
) -> Memory:
    """A memory with what a row says in some fields. New words come with their own origin. Raises InputError."""
    updated = now if row.updated is None else max(from_us(row.updated), memory.times.updated)
    if CONTENT in fields:
        status: Status = Active() if isinstance(memory.status, Conflicted) else memory.status
        origin = lowest((memory.origin, Origin.IMPORTED))
        memory = replace(memory, content=content_of(row), origin=origin, status=status)
    if TAGS in fields:
        memory = replace(memory, tags=tags_of(row.tags))
    if PLACE in fields:
        kind, visibility = place_of(row)
        kind = memory.kind if kind is Kind.FACT else kind  # their only word for most of our kinds
        memory = replace(memory, kind=kind, visibility=visibility, project=project)
    if BY in fields and not isinstance(memory.status, Deleted):
        memory = replace(memory, status=status_of(row, by, now=now))
    return replace(memory, times=replace(memory.times, updated=updated, confirmed=updated))
