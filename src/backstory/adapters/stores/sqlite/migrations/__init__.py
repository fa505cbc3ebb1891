"""The schema as numbered SQL files, applied in order. A released file is never edited; the next one changes it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

_FOLDER = Path(__file__).parent


def scripts() -> list[tuple[int, Path]]:
    """The migrations as (version, file), in order; versions are 1, 2, 3 ..."""
    return [(int(path.name[:4]), path) for path in sorted(_FOLDER.glob("[0-9][0-9][0-9][0-9]_*.sql"))]


def latest_version() -> int:
    """The version this Backstory writes."""
    return scripts()[-1][0]


def apply(connection: sqlite3.Connection, *, from_version: int) -> None:
    """Run every script above ``from_version``. The caller holds the write transaction."""
    for version, path in scripts():
        if version > from_version:
            for statement in _statements(path.read_text(encoding="utf-8")):
                connection.execute(statement)


def _statements(script: str) -> Iterator[str]:
    """Split a script where SQLite itself sees a statement end, since ``executescript`` would commit in between."""
    pending = ""
    for line in script.splitlines(keepends=True):
        if not pending and (not line.strip() or line.lstrip().startswith("--")):
            continue
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if pending.strip():
        raise ValueError(f"a migration ends inside a statement: {pending[:80]!r}")
