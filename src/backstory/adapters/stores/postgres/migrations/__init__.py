"""The schema as numbered SQL files, applied in order. A released file is never edited; the next one changes it.

``row_security.sql`` runs after each of them. ``pgvector.sql`` has no number: it runs once, where there is pgvector.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

_FOLDER = Path(__file__).parent
PGVECTOR = "pgvector"

_VERSIONS = """
CREATE TABLE IF NOT EXISTS schema_version (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS schema_options (
    name       text PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);
"""


def scripts() -> list[tuple[int, Path]]:
    """The migrations as (version, file), in order; versions are 1, 2, 3 ..."""
    return [(int(path.name[:4]), path) for path in sorted(_FOLDER.glob("[0-9][0-9][0-9][0-9]_*.sql"))]


def latest_version() -> int:
    """The version this Backstory writes."""
    return scripts()[-1][0]


def current_version(raw: psycopg.Connection[Any]) -> int:
    """The version of the schema that the search path names first."""
    row = raw.execute("SELECT max(version) FROM schema_version").fetchone()
    return 0 if row is None or row[0] is None else int(row[0])


def apply_next(raw: psycopg.Connection[Any]) -> bool:
    """Run the first script that has not run; False when all have. The caller holds the transaction and its lock."""
    raw.execute(_VERSIONS)
    current = current_version(raw)
    for version, path in scripts():
        if version > current:
            _run(raw, path.name)
            raw.execute("INSERT INTO schema_version (version, name) VALUES (%s, %s)", (version, path.stem))
            return True
    return False


def apply_option(raw: psycopg.Connection[Any], name: str) -> None:
    """Run a script without a number, and note it; once only. The caller holds the transaction and its lock."""
    if raw.execute("SELECT 1 FROM schema_options WHERE name = %s", (name,)).fetchone() is None:
        _run(raw, f"{name}.sql")
        raw.execute("INSERT INTO schema_options (name) VALUES (%s)", (name,))


def _run(raw: psycopg.Connection[Any], name: str) -> None:
    # without parameters the server takes a script of many statements at once
    raw.execute((_FOLDER / name).read_bytes())
    raw.execute((_FOLDER / "row_security.sql").read_bytes())
