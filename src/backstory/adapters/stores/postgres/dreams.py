"""Dream states of sessions and summaries of projects in Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.storable import storable
from backstory.adapters.stores.postgres.tenancy import TENANT, lock_tenant
from backstory.adapters.stores.sqlite.dreams import (
    GLOBAL,
    STATE,
    STATE_COLUMNS,
    SUMMARY,
    is_readable,
    state_from_row,
    state_row,
    summary_from_rows,
)
from backstory.adapters.stores.sqlite.rows import to_us
from backstory.domain.dream_state import DreamState, Summary
from backstory.domain.ids import MemoryId, ProjectId, SessionId

_Raw = psycopg.Connection[Any]  # Any: rows hold whatever a statement selects

UNFIT_SOURCES = (
    "SELECT s.project FROM summary_sources s LEFT JOIN memories m ON m.tenant = s.tenant AND m.id = s.memory "
    f"WHERE s.tenant = {TENANT} "
    "AND (m.id IS NULL OR m.state IN ('superseded', 'deleted') OR m.sensitivity <> 'normal')"
)
"""The summaries with a source that no summary may be made from; ``domain.history.may_be_summed_up``, in SQL."""
_MARKS = ", ".join(["%s"] * len(STATE_COLUMNS))
_OF_SESSION = f"WHERE tenant = {TENANT} AND session = %s"
_OF_PROJECT = f"WHERE tenant = {TENANT} AND project = %s"
_ADD_STATE = f"INSERT INTO dreams ({STATE}) VALUES ({_MARKS}) ON CONFLICT (tenant, session) DO NOTHING"
_REPLACE_STATE = f"UPDATE dreams SET ({STATE}) = ROW ({_MARKS}) {_OF_SESSION} AND revision = %s"


class PostgresDreams:
    """The DreamStore over one store. Whoever writes a session's row first keeps others waiting until it has ended."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def state(self, session: SessionId) -> DreamState | None:
        row = await self._connection.read(lambda raw: _state(raw, storable(session)[0]))
        return None if row is None else state_from_row(row)

    async def apply(self, state: DreamState) -> bool:
        row = storable(*state_row(state))

        def work(raw: _Raw) -> bool:
            if state.revision == 0:
                return raw.execute(_ADD_STATE, row).rowcount == 1
            return raw.execute(_REPLACE_STATE, (*row, row[0], state.revision)).rowcount == 1

        def again(raw: _Raw) -> bool:
            return work(raw) or _state(raw, row[0]) == row

        return await self._connection.write(work, again=again)

    async def due(self, *, now: datetime, limit: int, project: ProjectId | None = None) -> Sequence[SessionId]:
        [asked] = storable(project)
        own, given = ("", ()) if asked is None else (" AND project = %s", (asked,))
        statement = (
            f"SELECT session FROM dreams WHERE tenant = {TENANT} AND due = 1 "
            "AND (lease_until_us IS NULL OR lease_until_us <= %s) AND (not_before_us IS NULL OR not_before_us <= %s)"
            f"{own} ORDER BY updated_us DESC, session LIMIT %s"
        )
        parameters = (to_us(now), to_us(now), *given, limit)
        rows = await self._connection.read(lambda raw: raw.execute(statement, parameters).fetchall())
        return [session for (session,) in rows]

    async def forget(self, session: SessionId) -> bool:
        return await self._remove(f"DELETE FROM dreams {_OF_SESSION}", session)

    async def summary(self, project: ProjectId | None) -> Summary | None:
        return await self._connection.read(lambda raw: load_summary(raw, _key(project)))

    async def put_summary(self, summary: Summary) -> None:
        kept = _kept_summary(summary)

        def work(raw: _Raw) -> None:
            lock_tenant(raw)  # no memory changes from the look at it to the commit
            _put_summary(raw, kept)

        await self._connection.write(work, again=work)

    async def drop_summary(self, project: ProjectId | None) -> bool:
        return await self._remove(f"DELETE FROM summaries {_OF_PROJECT}", _key(project))

    async def _remove(self, statement: str, key: str) -> bool:
        removed = False

        def work(raw: _Raw) -> bool:
            nonlocal removed  # by a commit of which nobody knows whether it went through
            removed = raw.execute(statement, storable(key)).rowcount > 0 or removed
            return removed

        return await self._connection.write(work, again=work)


def load_summary(raw: _Raw, project: str) -> Summary | None:
    """The summary of a project. Raises StoreDamaged for values that no Backstory writes."""
    row = raw.execute(f"SELECT {SUMMARY} FROM summaries {_OF_PROJECT}", (project,)).fetchone()
    if row is None:
        return None
    sources = raw.execute(f"SELECT memory FROM summary_sources {_OF_PROJECT} ORDER BY position", (project,))
    return summary_from_rows(row, [MemoryId(memory) for (memory,) in sources.fetchall()])


def let_go_of_summaries(raw: _Raw, memories: Sequence[MemoryId]) -> None:
    """Remove every summary that was made from one of the memories."""
    made_from = f"SELECT project FROM summary_sources WHERE tenant = {TENANT} AND memory = ANY(%s)"
    raw.execute(f"DELETE FROM summaries WHERE tenant = {TENANT} AND project IN ({made_from})", ([*memories],))


def unreadable_states(raw: _Raw) -> list[str]:
    """The sessions with a state that no Backstory writes: they are distilled anew without it."""
    rows = raw.execute(f"SELECT {STATE} FROM dreams WHERE tenant = {TENANT}").fetchall()
    return [row[0] for row in rows if not is_readable(partial(state_from_row, row))]


def unreadable_summaries(raw: _Raw) -> list[str]:
    """The projects with a summary that no Backstory writes."""
    rows = raw.execute(f"SELECT project FROM summaries WHERE tenant = {TENANT}").fetchall()
    return [project for (project,) in rows if not is_readable(partial(load_summary, raw, project))]


def mend_dreams(raw: _Raw) -> int:
    """Remove the states and summaries that cannot be read, and the summaries with a source that none may be made from;
    how many those were."""
    lock_tenant(raw)
    states, summaries = unreadable_states(raw), unreadable_summaries(raw)
    own = f"WHERE tenant = {TENANT} AND"
    return (
        raw.execute(f"DELETE FROM dreams {own} session = ANY(%s)", (states,)).rowcount
        + raw.execute(f"DELETE FROM summaries {own} project = ANY(%s)", (summaries,)).rowcount
        + raw.execute(f"DELETE FROM summaries {own} project IN ({UNFIT_SOURCES})").rowcount
    )


def _state(raw: _Raw, session: str) -> tuple[Any, ...] | None:
    return raw.execute(f"SELECT {STATE} FROM dreams {_OF_SESSION}", (session,)).fetchone()


def _put_summary(raw: _Raw, summary: Summary) -> None:
    project = _key(summary.project)
    raw.execute(f"DELETE FROM summaries {_OF_PROJECT}", (project,))
    raw.execute(
        f"INSERT INTO summaries ({SUMMARY}) VALUES (%s, %s, %s, %s, %s)",
        (project, summary.text, summary.made_by, summary.prompt, to_us(summary.created_at)),
    )
    raw.execute(
        "INSERT INTO summary_sources (project, position, memory) SELECT %s, position - 1, memory "
        "FROM unnest(%s::text[]) WITH ORDINALITY AS given (memory, position)",
        (project, [*summary.sources]),
    )
    raw.execute(f"DELETE FROM summaries {_OF_PROJECT} AND project IN ({UNFIT_SOURCES})", (project,))


def _key(project: ProjectId | None) -> str:
    return str(storable(project or GLOBAL)[0])


def _kept_summary(summary: Summary) -> Summary:
    text, made_by, prompt = storable(summary.text, summary.made_by, summary.prompt)
    return replace(summary, text=text, made_by=made_by, prompt=prompt, sources=storable(*summary.sources))
