"""Recognising an ocpg database, in each of its layouts. Its rows are read and written elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from backstory.adapters.formats.ocpg.rows import EPISODIC, PROJECT, STACK

_Raw = psycopg.Connection[Any]

_ALWAYS = {
    "content": "text",
    "tags": "text[]",
    "session_id": "text",
    "project": "text",
    "created_at": "timestamp with time zone",
    "search_vector": "tsvector",
}
_LATER = {
    "memory_type": "text",
    "access_count": "integer",
    "last_accessed_at": "timestamp with time zone",
    "updated_at": "timestamp with time zone",
    "superseded_by": "integer",
    "source_host": "text",
}
_WRITTEN = {*_ALWAYS, *_LATER, "id"}
_WORD = re.compile("'([^']+)'")

# Tables named memories where this role would find them without our own search path, the first of them first.
_CANDIDATES = """
WITH path AS (
    SELECT coalesce(nullif(btrim(part, ' "'), '$user'), current_user) AS name, min(place) AS place
    FROM pg_settings, unnest(string_to_array(reset_val, ',')) WITH ORDINALITY AS parts (part, place)
    WHERE name = 'search_path' GROUP BY 1
)
SELECT s.nspname,
    has_schema_privilege(s.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),
    has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE')
        AND has_table_privilege(c.oid, 'DELETE'),
    (SELECT json_object_agg(a.attname, format_type(a.atttypid, a.atttypmod)) FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
    ARRAY(SELECT a.attname::text FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull AND NOT a.atthasdef
            AND a.attidentity = ''),
    ARRAY(SELECT pg_get_constraintdef(k.oid) FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'c'),
    (SELECT has_table_privilege(r.oid, 'SELECT') AND has_table_privilege(r.oid, 'INSERT') FROM pg_class r
        WHERE r.relnamespace = s.oid AND r.relname = 'memory_recalls' AND r.relkind IN ('r', 'p'))
FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace LEFT JOIN path ON path.name = s.nspname
WHERE c.relname = 'memories' AND c.relkind IN ('r', 'p') AND s.nspname <> current_schema()
    AND (path.name IS NOT NULL OR s.nspname = 'public')
ORDER BY path.place NULLS LAST
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The tables of an ocpg database as they are. ``types`` is empty where its rows have none."""

    schema: str
    columns: frozenset[str]
    types: frozenset[str]
    has_recalls: bool
    can_write: bool

    @property
    def memories(self) -> sql.Identifier:
        """Its table of memories, quoted."""
        return sql.Identifier(self.schema, "memories")

    @property
    def recalls(self) -> sql.Identifier:
        """Its table of recalls, quoted; it is there if ``has_recalls``."""
        return sql.Identifier(self.schema, "memory_recalls")


def find_layouts(raw: _Raw) -> list[Layout]:
    """The ocpg databases that this role can read, the first in its search path first. One query of the catalogue."""
    found = []
    for schema, can_read, can_write, columns, needed, checks, recalls in raw.execute(_CANDIDATES):
        if can_read and _is_ocpg(columns):
            kept = frozenset(name for name, type_ in columns.items() if _is_known(name, type_))
            layout = Layout(
                schema=schema,
                columns=kept,
                types=_types(checks) if "memory_type" in kept else frozenset(),
                has_recalls=bool(recalls),
                can_write=can_write and not {*needed} - _WRITTEN,
            )
            found.append(layout)
    return found


def _is_ocpg(columns: Mapping[str, str]) -> bool:
    return columns.get("id") in ("integer", "bigint") and all(
        columns.get(name) == type_ for name, type_ in _ALWAYS.items()
    )


def _is_known(name: str, type_: str) -> bool:
    """Whether a column can be read and written as what its name says; columns of other names do not matter."""
    wanted = (_ALWAYS | _LATER).get(name, type_)
    return type_ == wanted or (wanted == "integer" and type_ == "bigint")


def _types(checks: list[str]) -> frozenset[str]:
    """The types that its check constraints let through."""
    words = [{*_WORD.findall(check)} for check in checks if "memory_type" in check]
    return frozenset(set.intersection(*words)) if words else frozenset((STACK, PROJECT, EPISODIC))
