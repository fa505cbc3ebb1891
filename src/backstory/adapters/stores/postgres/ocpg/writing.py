"""Memories as rows of ocpg: what is shown there, under which of its words, and the statements that write it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from backstory.adapters.formats.ocpg import rows
from backstory.adapters.formats.ocpg.rows import EVERYWHERE, PROJECT, SYSTEM
from backstory.adapters.stores.postgres.ocpg.layout import Layout
from backstory.adapters.stores.postgres.ocpg.links import BY, CONTENT, PLACE, TAGS, Link, Said, digest
from backstory.adapters.stores.postgres.ocpg.projects import folder_of
from backstory.domain.memory import Memory, Superseded, Visibility
from backstory.domain.provenance import is_injectable

_Raw = psycopg.Connection[Any]


class OutOfStep(Exception):
    """A row is not as it was at the last look: ocpg has changed it since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Who sees a row in ocpg. ``type`` is None where its rows have none."""

    type: str | None
    project: str | None


def why_not(memory: Memory, layout: Layout, *, is_there: bool, successor: int | None) -> str | None:
    """Why a memory has no place in ocpg; None where it has one. ``successor`` is the row of what took its place.

    ``is_there`` tells of a memory that came from it, or was shown there.
    """
    if (reason := rows.unfit_for(memory)) is not None:
        return reason
    if not is_there and not is_injectable(memory.origin):
        return f"ocpg would offer it unasked, which text of origin {memory.origin.value} never is"
    if isinstance(memory.status, Superseded) and (successor is None or "superseded_by" not in layout.columns):
        return "it was replaced, and what took its place cannot be named there"
    return None


def place_in(raw: _Raw, layout: Layout, memory: Memory) -> Place | None:
    """Where a memory belongs in ocpg; None for a project's memory whose project has no folder."""
    folder = None if memory.project is None else folder_of(raw, memory.project)
    if not layout.types:
        if memory.visibility is Visibility.GLOBAL:
            return Place(type=None, project=None)
        return None if folder is None else Place(type=None, project=folder)
    type_ = type_of(memory, layout)
    if type_ is None or (type_ == PROJECT and folder is None):
        return None
    return Place(type=type_, project=folder or EVERYWHERE)


def type_of(memory: Memory, layout: Layout) -> str | None:
    """ocpg's word for a memory, one that its constraint lets through; None where it has no types, or none that fits."""
    return rows.type_of(memory, layout.types)


def said_of(memory: Memory, layout: Layout) -> Said:
    """What a memory says, as far as ocpg can."""
    by = memory.status.by if isinstance(memory.status, Superseded) else None
    return {
        CONTENT: digest(memory.content),
        TAGS: [*memory.tags],
        PLACE: [type_of(memory, layout), memory.project],
        BY: by,
    }


def columns_of(
    memory: Memory, fields: set[str], place: Place, layout: Layout, *, successor: int | None
) -> Mapping[str, object]:
    """The columns that hold some fields of a memory, with their values."""
    values: dict[str, object] = {}
    if CONTENT in fields:
        values["content"] = memory.content
    if TAGS in fields:
        values["tags"] = list(memory.tags)
    if PLACE in fields:
        values |= {"project": place.project, "memory_type": place.type}
    if BY in fields:
        values["superseded_by"] = successor
    if CONTENT in fields and "embedding" in layout.columns:
        values["embedding"] = None  # that of other words; ocpg fills it again
    return {name: value for name, value in values.items() if name in layout.columns}


def insert_row(
    raw: _Raw, layout: Layout, values: Mapping[str, object], memory: Memory, *, at: int | None
) -> tuple[int, str]:
    """Add a row, under an id that it had before (``at``) or the next one. Returns its id and version."""
    times: dict[str, object] = {"created_at": memory.times.learned}
    if memory.times.updated > memory.times.learned:
        times["updated_at"] = memory.times.updated
    used = {"access_count": memory.counters.recalled, "last_accessed_at": memory.times.used}
    source = memory.provenance
    known: dict[str, object] = {"session_id": source.session or memory.session}
    if source.origin_system == SYSTEM and "source_host" in source.raw:
        known["source_host"] = source.raw["source_host"]
    all_values = {**values, **known, **times, **used, **({} if at is None else {"id": at})}
    kept = {name: value for name, value in all_values.items() if name in layout.columns}
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING id, xmin::text").format(
        layout.memories,
        sql.SQL(", ").join(map(sql.Identifier, kept)),
        sql.SQL(", ").join([sql.Placeholder()] * len(kept)),
    )
    id_, version = raw.execute(statement, list(kept.values())).fetchone() or (0, "")
    return int(id_), str(version)


def update_row(
    raw: _Raw, layout: Layout, link: Link, values: Mapping[str, object], *, at: datetime | None = None
) -> str:
    """Write columns of a row that is as it was at the last look; returns its new version. ``at`` is when it changed,
    for changes of which ocpg notes that. Raises OutOfStep."""
    if at is not None and "updated_at" in layout.columns:
        values = {**values, "updated_at": at}
    if not values:
        return link.version
    return _update(
        raw,
        layout,
        link,
        sql.SQL(", ").join(sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder()) for name in values),
        *values.values(),
    )


def count_recalls(raw: _Raw, layout: Layout, link: Link, times: int, *, last: datetime | None) -> str:
    """Add to the counter of a row; returns its new version. Raises OutOfStep."""
    sets = [sql.SQL("access_count = access_count + %s")]
    values: list[object] = [times]
    if "last_accessed_at" in layout.columns and last is not None:
        sets.append(sql.SQL("last_accessed_at = greatest(last_accessed_at, %s)"))
        values.append(last)
    return _update(raw, layout, link, sql.SQL(", ").join(sets), *values)


def _update(raw: _Raw, layout: Layout, link: Link, sets: sql.Composable, *values: object) -> str:
    statement = sql.SQL("UPDATE {} SET {} WHERE id = %s AND xmin::text = %s RETURNING xmin::text").format(
        layout.memories, sets
    )
    row = raw.execute(statement, (*values, link.ocpg_id, link.version)).fetchone()
    if row is None:
        raise OutOfStep
    return str(row[0])


def delete_rows(raw: _Raw, layout: Layout, links: Sequence[Link]) -> None:
    """Remove rows that are as they were at the last look. In one statement: else ocpg's foreign key would write to one
    of them because another went. Raises OutOfStep."""
    if not links:
        return
    statement = sql.SQL(
        "DELETE FROM {} r USING unnest(%s::bigint[], %s::text[]) AS going (id, version)"
        " WHERE r.id = going.id AND r.xmin::text = going.version"
    ).format(layout.memories)
    ids, versions = [link.ocpg_id for link in links], [link.version for link in links]
    if raw.execute(statement, (ids, versions)).rowcount != len(links):
        raise OutOfStep


def add_recalls(raw: _Raw, layout: Layout, ocpg_id: int, sessions: list[str]) -> None:
    """Note the sessions in which a row was recalled, each once."""
    if sessions and layout.has_recalls:
        statement = sql.SQL(
            "INSERT INTO {} (memory_id, session_id) SELECT %s, unnest(%s::text[]) ON CONFLICT DO NOTHING"
        )
        raw.execute(statement.format(layout.recalls), (ocpg_id, sessions))


def recall_sessions(raw: _Raw, layout: Layout, ids: list[int]) -> dict[int, list[str]]:
    """The sessions in which rows were recalled, by the rows' ids."""
    found: dict[int, list[str]] = {id_: [] for id_ in ids}
    if layout.has_recalls:
        statement = sql.SQL("SELECT memory_id, session_id FROM {} WHERE memory_id = ANY(%s) ORDER BY 2")
        for id_, session in raw.execute(statement.format(layout.recalls), (ids,)):
            found[id_].append(session)
    return found
