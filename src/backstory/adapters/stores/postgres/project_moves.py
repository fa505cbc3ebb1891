"""Aliases and sessions that pass between projects, kept so that undoing the change that moved the memories takes them
back too. Deciding what moves is in ``services/projects.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.domain.history import Change

_Raw = psycopg.Connection[Any]


def pass_on(raw: _Raw, *, source: str, target: str, aliases: Sequence[str], sessions: Sequence[str]) -> int:
    """Make the source's aliases and sessions the target's, with how far those are distilled; those that are not the
    source's stay. How many aliases passed."""
    passed = raw.execute(
        f"UPDATE project_aliases SET project = %s WHERE tenant = {TENANT} AND alias = ANY(%s) AND project = %s",
        (target, list(aliases), source),
    ).rowcount
    raw.execute(
        f"UPDATE sessions SET project = %s WHERE tenant = {TENANT} AND id = ANY(%s) AND project = %s",
        (target, list(sessions), source),
    )
    raw.execute(
        f"UPDATE dreams SET project = %s, revision = revision + 1 "
        f"WHERE tenant = {TENANT} AND session = ANY(%s) AND project = %s",
        (target, list(sessions), source),
    )
    return passed


def note_move(
    raw: _Raw, change: str, *, source: str, target: str, aliases: Sequence[str], sessions: Sequence[str]
) -> None:
    """Keep what went with a change."""
    raw.execute(
        "INSERT INTO project_moves (change, source, target, aliases, sessions) VALUES (%s, %s, %s, %s, %s)",
        (change, source, target, list(aliases), list(sessions)),
    )


def take_back(raw: _Raw, change: Change) -> None:
    """Where a change undoes one that moved aliases and sessions, those go back; noted, so that it can be undone too."""
    row = raw.execute(
        f"SELECT source, target, aliases, sessions FROM project_moves WHERE tenant = {TENANT} AND change = %s",
        (change.undoes,),
    ).fetchone()
    if row is None:
        return
    source, target, aliases, sessions = row
    pass_on(raw, source=target, target=source, aliases=aliases, sessions=sessions)
    note_move(raw, change.id, source=target, target=source, aliases=aliases, sessions=sessions)
