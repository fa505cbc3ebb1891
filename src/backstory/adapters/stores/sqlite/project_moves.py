"""Aliases and sessions that pass between projects, kept so that undoing the change that moved the memories takes them
back too. Deciding what moves is in ``services/projects.py``."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from backstory.domain.history import Change


def pass_on(
    raw: sqlite3.Connection, *, source: str, target: str, aliases: Sequence[str], sessions: Sequence[str]
) -> int:
    """Make the source's aliases and sessions the target's, with how far those are distilled; those that are not the
    source's stay. How many aliases passed."""
    passed = 0
    for alias in aliases:
        passed += raw.execute(
            "UPDATE project_aliases SET project = ? WHERE alias = ? AND project = ?", (target, alias, source)
        ).rowcount
    passing = [(target, session, source) for session in sessions]
    raw.executemany("UPDATE sessions SET project = ? WHERE id = ? AND project = ?", passing)
    raw.executemany("UPDATE dreams SET project = ?, revision = revision + 1 WHERE session = ? AND project = ?", passing)
    return passed


def note_move(
    raw: sqlite3.Connection, change: str, *, source: str, target: str, aliases: Sequence[str], sessions: Sequence[str]
) -> None:
    """Keep what went with a change."""
    raw.execute(
        "INSERT INTO project_moves (change, source, target, aliases, sessions) VALUES (?, ?, ?, ?, ?)",
        (change, source, target, json.dumps(list(aliases)), json.dumps(list(sessions))),
    )


def take_back(raw: sqlite3.Connection, change: Change) -> None:
    """Where a change undoes one that moved aliases and sessions, those go back; noted, so that it can be undone too."""
    row = raw.execute(
        "SELECT source, target, aliases, sessions FROM project_moves WHERE change = ?", (change.undoes,)
    ).fetchone()
    if row is None:
        return
    source, target, aliases, sessions = row[0], row[1], json.loads(row[2]), json.loads(row[3])
    pass_on(raw, source=target, target=source, aliases=aliases, sessions=sessions)
    note_move(raw, change.id, source=target, target=source, aliases=aliases, sessions=sessions)
