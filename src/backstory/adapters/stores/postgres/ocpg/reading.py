"""Rows of ocpg as memories: what each word and column means here."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

import psycopg
from psycopg import sql

from backstory.adapters.stores.postgres.ocpg.layout import PROJECT, Layout
from backstory.adapters.stores.postgres.ocpg.links import BY, CONTENT, MADE, PLACE, TAGS, Said, digest
from backstory.adapters.stores.sqlite.rows import from_us
from backstory.domain.admission import MAX_TAG_CHARS, TextLimits, admit, admit_label
from backstory.domain.ids import MemoryId, ProjectId, SessionId, make_ulid
from backstory.domain.memory import (
    Active,
    Conflicted,
    Counters,
    Deleted,
    Kind,
    Memory,
    Source,
    Status,
    Superseded,
    Times,
    Visibility,
)
from backstory.domain.provenance import Origin, Provenance, lowest
from backstory.domain.vocabulary import classify
from backstory.errors import InputError

_Raw = psycopg.Connection[Any]

SYSTEM = "ocpg"
EVERYWHERE = "global"
"""Stands in the column of the project where there is none: an empty one keeps ocpg from showing anything."""

_USER = re.compile("user:.*", re.DOTALL)  # the scope of the middle layout that held in all projects of a user
_LIMITS = TextLimits(min_chars=1, max_chars=100_000)
_LABEL_MAX_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row. ``version`` changes with every write to it. Times are microseconds since 1970, None where they are not
    known or no calendar has them; ``by_created`` is when what took its place was made."""

    id: int
    version: str
    content: str
    tags: tuple[str, ...]
    session: str | None
    project: str | None
    type: str | None
    created: int | None
    updated: int | None
    accessed: int | None
    access_count: int
    by: int | None
    by_created: int | None
    host: str | None

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

    @property
    def path(self) -> str | None:
        """The folder whose project it belongs to."""
        return None if self.project in (None, "", EVERYWHERE) or self.is_users else self.project

    @property
    def is_users(self) -> bool:
        """Whether it belongs to a user rather than to a project."""
        return self.project is not None and _USER.fullmatch(self.project) is not None


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
    kind, visibility = place_of(row)
    learned = now if row.created is None else from_us(row.created)
    updated = learned if row.updated is None else from_us(row.updated)
    session = label(row.session)
    known = {"memory_type": row.type, "project": row.project, "source_host": row.host}
    return Memory(
        id=memory_id(row.id, row.created),
        content=content_of(row),
        kind=kind,
        visibility=visibility,
        project=project,
        session=None if session is None else SessionId(session),
        tags=tags_of(row),
        status=status_of(row, by, now=now),
        origin=Origin.IMPORTED,
        source=Source.IMPORTED,
        provenance=Provenance(
            session=None if session is None else SessionId(session),
            origin_system=SYSTEM,
            origin_id=str(row.id),
            raw=MappingProxyType({name: value for name, value in known.items() if value is not None}),
        ),
        times=Times(
            learned=learned,
            updated=updated,
            confirmed=updated,
            used=None if row.accessed is None else from_us(row.accessed),
        ),
        counters=Counters(recalled=row.access_count, sessions=sessions),
    )


def content_of(row: Row) -> str:
    """The words of a row, fit to be kept. Raises InputError."""
    return admit(row.content, field="content", limits=_LIMITS).text


def tags_of(row: Row) -> tuple[str, ...]:
    """The tags of a row that are fit to be kept, in their order, each once."""
    admitted = (label(tag, max_chars=MAX_TAG_CHARS) for tag in row.tags)
    return tuple(dict.fromkeys(tag for tag in admitted if tag is not None))


def place_of(row: Row) -> tuple[Kind, Visibility]:
    """What sort of statement a row is, and who may see it.

    As in ocpg only a project's facts are for their project. What its oldest layout kept without a project, and its
    middle one for a user, holds everywhere.
    """
    try:
        kind = classify(row.type, None).kind or Kind.FACT
    except InputError:  # a word that somebody added to the constraint
        kind = Kind.OTHER
    if row.is_users:
        return (Kind.USER if row.type == PROJECT else kind), Visibility.GLOBAL
    if row.type is None:
        return kind, Visibility.PROJECT if row.path is not None else Visibility.GLOBAL
    return kind, Visibility.PROJECT if row.type == PROJECT else Visibility.GLOBAL


def status_of(row: Row, by: MemoryId | None, *, now: datetime) -> Status:
    """Whether it is current, or what took its place."""
    if by is None:
        return Active()
    return Superseded(by=by, since=now if row.by_created is None else from_us(row.by_created))


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
        memory = replace(memory, tags=tags_of(row))
    if PLACE in fields:
        kind, visibility = place_of(row)
        kind = memory.kind if kind is Kind.FACT else kind  # their only word for most of our kinds
        memory = replace(memory, kind=kind, visibility=visibility, project=project)
    if BY in fields and not isinstance(memory.status, Deleted):
        memory = replace(memory, status=status_of(row, by, now=now))
    return replace(memory, times=replace(memory.times, updated=updated, confirmed=updated))


def label(text: str | None, *, max_chars: int = _LABEL_MAX_CHARS) -> str | None:
    """A name of a session or a tag, if it can be kept as it is; else None."""
    try:
        return None if text is None else admit_label(text, field="label", max_chars=max_chars)
    except InputError:
        return None
