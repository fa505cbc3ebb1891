"""Dream states of sessions and summaries of projects in SQLite. Nothing of their domain is imported before it is used:
a recall has no need of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from backstory.adapters.stores.sqlite.connection import Connection

if TYPE_CHECKING:
    from backstory.domain.dream_state import DreamState, Summary
    from backstory.domain.ids import MemoryId, ProjectId, SessionId

Row = Sequence[Any]  # Any: as each column holds it

STATE_COLUMNS = (
    "session", "project", "revision", "through", "through_us", "target", "due", "not_before_us", "lease_token",
    "lease_until_us", "attempts", "problem", "updated_us",
)  # fmt: skip
STATE = ", ".join(STATE_COLUMNS)
SUMMARY = "project, text, made_by, prompt, created_us"
GLOBAL = ""
"""The project of the summary that belongs to none."""
UNFIT_SOURCES = (
    "SELECT s.project FROM summary_sources s LEFT JOIN memories m ON m.id = s.memory "
    "WHERE m.id IS NULL OR m.state IN ('superseded', 'deleted') OR m.sensitivity <> 'normal'"
)
"""The summaries with a source that no summary may be made from; ``domain.history.may_be_summed_up``, in SQL."""
_UNREADABLE = (ValueError, TypeError, OverflowError)

_ADD_STATE = f"INSERT OR IGNORE INTO dreams ({STATE}) VALUES ({', '.join('?' * len(STATE_COLUMNS))})"
_REPLACE_STATE = (
    f"UPDATE dreams SET ({STATE}) = ({', '.join('?' * len(STATE_COLUMNS))}) WHERE session = ? AND revision = ?"
)


class SqliteDreams:
    """The DreamStore over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def state(self, session: SessionId) -> DreamState | None:
        statement = f"SELECT {STATE} FROM dreams WHERE session = ?"
        row = await self._connection.read(lambda raw: raw.execute(statement, (session,)).fetchone())
        return None if row is None else state_from_row(row)

    async def apply(self, state: DreamState) -> bool:
        row = state_row(state)

        def work(raw: sqlite3.Connection) -> bool:
            if state.revision == 0:
                return raw.execute(_ADD_STATE, row).rowcount == 1
            return raw.execute(_REPLACE_STATE, (*row, state.session, state.revision)).rowcount == 1

        return await self._connection.write(work)

    async def due(self, *, now: datetime, limit: int, project: ProjectId | None = None) -> Sequence[SessionId]:
        from backstory.adapters.stores.sqlite.rows import to_us

        statement = (
            "SELECT session FROM dreams WHERE due = 1 AND (lease_until_us IS NULL OR lease_until_us <= :now) "
            "AND (not_before_us IS NULL OR not_before_us <= :now) AND (:project IS NULL OR project = :project) "
            "ORDER BY updated_us DESC, session LIMIT :limit"
        )
        given = {"now": to_us(now), "project": project, "limit": limit}
        rows = await self._connection.read(lambda raw: raw.execute(statement, given).fetchall())
        return [session for (session,) in rows]

    async def forget(self, session: SessionId) -> bool:
        statement = "DELETE FROM dreams WHERE session = ?"
        return await self._connection.write(lambda raw: raw.execute(statement, (session,)).rowcount > 0)

    async def summary(self, project: ProjectId | None) -> Summary | None:
        return await self._connection.read(lambda raw: load_summary(raw, project or GLOBAL))

    async def put_summary(self, summary: Summary) -> None:
        await self._connection.write(lambda raw: _put_summary(raw, summary))

    async def drop_summary(self, project: ProjectId | None) -> bool:
        return await self._connection.write(lambda raw: _drop_summary(raw, project))


def load_summary(raw: sqlite3.Connection, project: str) -> Summary | None:
    """The summary of a project. Raises StoreDamaged for values that no Backstory writes."""
    row = raw.execute(f"SELECT {SUMMARY} FROM summaries WHERE project = ?", (project,)).fetchone()
    if row is None:
        return None
    statement = "SELECT memory FROM summary_sources WHERE project = ? ORDER BY position"
    return summary_from_rows(row, [memory for (memory,) in raw.execute(statement, (project,))])


def let_go_of_summaries(raw: sqlite3.Connection, memories: Sequence[MemoryId]) -> None:
    """Remove every summary that was made from one of the memories."""
    raw.executemany(
        "DELETE FROM summaries WHERE project IN (SELECT project FROM summary_sources WHERE memory = ?)",
        [(memory,) for memory in memories],
    )


def unreadable_states(raw: sqlite3.Connection) -> list[str]:
    """The sessions with a state that no Backstory writes: they are distilled anew without it."""
    rows = raw.execute(f"SELECT {STATE} FROM dreams").fetchall()
    return [row[0] for row in rows if not is_readable(partial(state_from_row, row))]


def unreadable_summaries(raw: sqlite3.Connection) -> list[str]:
    """The projects with a summary that no Backstory writes."""
    projects = [project for (project,) in raw.execute("SELECT project FROM summaries").fetchall()]
    return [project for project in projects if not is_readable(partial(load_summary, raw, project))]


def mend_dreams(raw: sqlite3.Connection) -> int:
    """Remove the states and summaries that cannot be read, and the summaries with a source that none may be made from;
    how many those were."""
    states = [(session,) for session in unreadable_states(raw)]
    raw.executemany("DELETE FROM dreams WHERE session = ?", states)
    summaries = [(project,) for project in unreadable_summaries(raw)]
    raw.executemany("DELETE FROM summaries WHERE project = ?", summaries)
    unfit = raw.execute(f"DELETE FROM summaries WHERE project IN ({UNFIT_SOURCES})").rowcount
    return len(states) + len(summaries) + unfit


def is_readable(read: Callable[[], object]) -> bool:
    """Whether reading a row does not raise StoreDamaged."""
    from backstory.errors import StoreDamaged

    try:
        read()
    except StoreDamaged:
        return False
    return True


def _put_summary(raw: sqlite3.Connection, summary: Summary) -> None:
    from backstory.adapters.stores.sqlite.rows import to_us

    project = summary.project or GLOBAL
    _drop_summary(raw, summary.project)
    raw.execute(
        f"INSERT INTO summaries ({SUMMARY}) VALUES (?, ?, ?, ?, ?)",
        (project, summary.text, summary.made_by, summary.prompt, to_us(summary.created_at)),
    )
    raw.executemany(
        "INSERT INTO summary_sources (project, position, memory) VALUES (?, ?, ?)",
        [(project, position, memory) for position, memory in enumerate(summary.sources)],
    )
    raw.execute(f"DELETE FROM summaries WHERE project = ? AND project IN ({UNFIT_SOURCES})", (project,))


def _drop_summary(raw: sqlite3.Connection, project: ProjectId | None) -> bool:
    return raw.execute("DELETE FROM summaries WHERE project = ?", (project or GLOBAL,)).rowcount > 0  # with its sources


def state_row(state: DreamState) -> Row:
    """The values of ``STATE_COLUMNS`` after a state was written: with a revision that is one further."""
    from backstory.adapters.stores.sqlite.rows import to_us, to_us_or_none

    return (
        state.session,
        state.project,
        state.revision + 1,
        state.through,
        to_us_or_none(state.through_at),
        state.target,
        int(state.due),
        to_us_or_none(state.not_before),
        None if state.lease is None else state.lease.token,
        None if state.lease is None else to_us(state.lease.expires_at),
        state.attempts,
        state.problem,
        to_us(state.updated_at),
    )


def state_from_row(row: Row) -> DreamState:
    """The state that ``state_row`` made a row of. Raises StoreDamaged for anything else."""
    from backstory.adapters.stores.sqlite.rows import from_us, from_us_or_none
    from backstory.domain.digest import Lease
    from backstory.domain.dream_state import DreamState
    from backstory.errors import StoreDamaged

    (
        session, project, revision, through, through_us, target, due, not_before_us, token, until_us, attempts, problem,
        updated_us,
    ) = row  # fmt: skip
    try:
        return DreamState(
            session=session,
            project=project,
            revision=revision,
            through=through,
            through_at=from_us_or_none(through_us),
            target=target,
            due=bool(due),
            not_before=from_us_or_none(not_before_us),
            lease=None if token is None else Lease(token=token, expires_at=from_us(until_us)),
            attempts=attempts,
            problem=problem,
            updated_at=from_us(updated_us),
        )
    except _UNREADABLE as error:
        raise StoreDamaged(f"the dream state of session {session} in the store cannot be read: {error}") from error


def summary_from_rows(row: Row, sources: Sequence[MemoryId]) -> Summary:
    """The summary of (project, text, made_by, prompt, created_us). Raises StoreDamaged for what no Backstory writes."""
    from backstory.adapters.stores.sqlite.rows import from_us
    from backstory.domain.dream_state import Summary
    from backstory.errors import StoreDamaged

    project, text, made_by, prompt, created_us = row
    try:
        return Summary(
            project=project or None,
            text=text,
            sources=tuple(sources),
            made_by=made_by,
            prompt=prompt,
            created_at=from_us(created_us),
        )
    except _UNREADABLE as error:
        raise StoreDamaged(f"the summary of project {project!r} in the store cannot be read: {error}") from error
