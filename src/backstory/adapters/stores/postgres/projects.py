"""The project registry in Postgres: many aliases, one project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import psycopg

from backstory.adapters.stores.postgres.commits import change_by_id, commit_change
from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.project_moves import note_move, pass_on
from backstory.adapters.stores.postgres.tenancy import TENANT, lock_tenant
from backstory.adapters.stores.postgres.texts import check_storable
from backstory.adapters.stores.sqlite.rows import from_us, to_us
from backstory.domain.history import Change, check_not_empty
from backstory.domain.ids import ProjectId
from backstory.domain.project import Alias, Project, ProjectSighting, past
from backstory.errors import Conflict, NotFound
from backstory.ports.store import ProjectMove

_Raw = psycopg.Connection[Any]

SEEN_EVERY = timedelta(days=1)
"""How old a last-seen time gets before it is written again: seeing a project costs no write each time."""

_TRAITS = "ARRAY(SELECT t.trait FROM project_traits t WHERE t.tenant = a.tenant AND t.alias = a.alias ORDER BY t.trait)"
_ALIAS = f"a.alias, a.project, a.created_us, a.seen_us, a.stamp, a.looked, {_TRAITS}"


class PostgresProjects:
    """The ProjectRegistry over one store."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def identify(self, sighting: ProjectSighting, *, now: datetime, new_id: ProjectId) -> Project:
        def look(raw: _Raw) -> tuple[Project | None, bool]:
            known = _known(raw, sighting)
            return known, known is not None and _is_current(raw, known, sighting, now)

        known, is_current = await self._connection.read(look)
        if self._connection.read_only:
            project_id, name = (known.id, known.name) if known else (new_id, sighting.name)
            return Project(id=project_id, name=name, root=sighting.root)
        # the common case writes nothing: every alias is known and all stands where it did
        if known is not None and is_current:
            return known

        def work(raw: _Raw) -> Project:
            return _identify(raw, sighting, now, new_id)

        return await self._connection.write(work, again=work)

    async def find(self, sighting: ProjectSighting) -> Project | None:
        known = await self._connection.read(lambda raw: _known(raw, sighting))
        return None if known is None else replace(known, root=sighting.root)

    async def projects(self) -> Mapping[ProjectId, Project]:
        statement = f"SELECT id, name, root FROM projects WHERE tenant = {TENANT} ORDER BY created_us, id"

        def work(raw: _Raw) -> dict[ProjectId, Project]:
            return {ProjectId(row[0]): _project(row) for row in raw.execute(statement)}

        return await self._connection.read(work)

    async def aliases(self, names: Sequence[str] | None = None) -> list[Alias]:
        return await self._connection.read(lambda raw: _aliases(raw, names))

    async def rename(self, project: ProjectId, name: str) -> Project:
        def work(raw: _Raw) -> Project:
            raw.execute(f"UPDATE projects SET name = %s WHERE tenant = {TENANT} AND id = %s", (name, project))
            return _existing(raw, project)

        return await self._connection.write(work, again=work)

    async def move(self, move: ProjectMove, *, now: datetime) -> Change | None:
        change = move.change
        if change is None:
            return await self._connection.write(lambda raw: _move(raw, move, now))
        check_not_empty(change)
        check_storable(change)

        def again(raw: _Raw) -> Change | None:
            lock_tenant(raw)  # so that a commit that is still under way ends first
            return change_by_id(raw, change.id) or _move(raw, move, now)

        return await self._connection.write(lambda raw: _move(raw, move, now), again=again)


def _project(row: tuple[Any, ...]) -> Project:
    return Project(id=ProjectId(row[0]), name=row[1], root=row[2])


def _known(raw: _Raw, sighting: ProjectSighting) -> Project | None:
    if sighting.joins is not None and (project := _project_by_id(raw, sighting.joins)) is not None:
        return project
    rows = raw.execute(
        "SELECT p.id, p.name, p.root, a.alias, a.stamp FROM project_aliases a"
        " JOIN projects p ON p.tenant = a.tenant AND p.id = a.project"
        f" WHERE a.tenant = {TENANT} AND a.alias = ANY(%s) ORDER BY array_position(%s, a.alias)",
        (list(sighting.aliases), list(sighting.aliases)),
    )
    for *project, alias, stamp in rows:
        if alias not in sighting.taken or stamp == sighting.stamp(alias):
            return _project(tuple(project))
    return None


def _is_current(raw: _Raw, known: Project, sighting: ProjectSighting, now: datetime) -> bool:
    """Whether a sighting has nothing to add to what is stored."""
    if sighting.traits is not None or sighting.taken or known.root != sighting.root:
        return False
    stored = _aliases(raw, sighting.aliases)
    if len(stored) < len(set(sighting.aliases)):
        return False
    return not any(
        _newer(alias.stamp, sighting.stamp(alias.name)) or alias.last_seen + SEEN_EVERY <= now
        for alias in stored
        if alias.project == known.id
    )


def _newer(stored: str, stamp: str) -> bool:
    return stamp not in ("", stored)


def _identify(raw: _Raw, sighting: ProjectSighting, now: datetime, new_id: ProjectId) -> Project:
    lock_tenant(raw)  # so that two processes that see a new project at once make one
    known = _known(raw, sighting)
    project = Project(id=known.id if known else new_id, name=known.name if known else sighting.name, root=sighting.root)
    if known is None:
        _insert(raw, project, now)
    else:
        raw.execute(f"UPDATE projects SET root = %s WHERE tenant = {TENANT} AND id = %s", (sighting.root, project.id))
    for alias in sighting.taken:
        _retire(raw, alias, sighting)
    with raw.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO project_aliases AS known (alias, project, created_us, seen_us, stamp)"
            " VALUES (%s, %s, %s, %s, %s) ON CONFLICT (tenant, alias) DO UPDATE SET seen_us = excluded.seen_us,"
            " stamp = coalesce(nullif(excluded.stamp, ''), known.stamp) WHERE known.project = excluded.project",
            [(name, project.id, to_us(now), to_us(now), sighting.stamp(name)) for name in sighting.aliases],
        )
    _learn(raw, project.id, sighting)
    return project


def _retire(raw: _Raw, name: str, sighting: ProjectSighting) -> None:
    """Leave an alias to its owner under another name, unless the owner is who is seen."""
    found = _aliases(raw, [name])
    if found and found[0].stamp != sighting.stamp(name):
        raw.execute(f"DELETE FROM project_aliases WHERE tenant = {TENANT} AND alias = %s", (past(found[0]),))
        raw.execute(
            f"UPDATE project_aliases SET alias = %s WHERE tenant = {TENANT} AND alias = %s", (past(found[0]), name)
        )


def _learn(raw: _Raw, project: ProjectId, sighting: ProjectSighting) -> None:
    """Replace the traits of the git directory, if this project is its owner."""
    if sighting.traits is None or sighting.git is None:
        return
    changed = raw.execute(
        f"UPDATE project_aliases SET looked = %s WHERE tenant = {TENANT} AND alias = %s AND project = %s",
        (sighting.looked, sighting.git, project),
    )
    if changed.rowcount == 1:
        raw.execute(f"DELETE FROM project_traits WHERE tenant = {TENANT} AND alias = %s", (sighting.git,))
        raw.execute(
            "INSERT INTO project_traits (alias, trait) SELECT DISTINCT %s, trait FROM unnest(%s::text[]) trait",
            (sighting.git, list(sighting.traits)),
        )


def _aliases(raw: _Raw, names: Sequence[str] | None) -> list[Alias]:
    statement = f"SELECT {_ALIAS} FROM project_aliases a WHERE a.tenant = {TENANT}"
    order = "ORDER BY a.created_us, a.alias"
    if names is None:
        rows = raw.execute(f"{statement} {order}")
    else:
        rows = raw.execute(f"{statement} AND a.alias = ANY(%s) {order}", (list(names),))
    return [
        Alias(
            name=name,
            project=ProjectId(project),
            first_seen=from_us(created_us),
            last_seen=from_us(seen_us),
            stamp=stamp,
            looked=looked,
            traits=tuple(traits),
        )
        for name, project, created_us, seen_us, stamp, looked, traits in rows
    ]


def _project_by_id(raw: _Raw, project: ProjectId) -> Project | None:
    row = raw.execute(f"SELECT id, name, root FROM projects WHERE tenant = {TENANT} AND id = %s", (project,)).fetchone()
    return None if row is None else _project(row)


def _existing(raw: _Raw, project: ProjectId) -> Project:
    found = _project_by_id(raw, project)
    if found is None:
        raise NotFound(f"there is no project {project}")
    return found


def _insert(raw: _Raw, project: Project, now: datetime) -> None:
    raw.execute(
        "INSERT INTO projects (id, name, root, created_us) VALUES (%s, %s, %s, %s)",
        (project.id, project.name, project.root, to_us(now)),
    )


def _move(raw: _Raw, move: ProjectMove, now: datetime) -> Change | None:
    lock_tenant(raw)
    source, target = _existing(raw, move.source).id, move.target.id
    if _project_by_id(raw, target) is None:
        _insert(raw, move.target, now)
    sessions = move.sessions
    if sessions is None:
        statement = (
            f"SELECT id FROM sessions WHERE tenant = {TENANT} AND project = %s "
            f"UNION SELECT session FROM dreams WHERE tenant = {TENANT} AND project = %s"
        )
        rows = raw.execute(statement, (source, source)).fetchall()
        sessions = tuple(row[0] for row in rows)
    passed = pass_on(raw, source=source, target=target, aliases=move.aliases, sessions=sessions)
    if passed != len(set(move.aliases)):
        raise Conflict("a folder of the project has become another project's in the meantime; look again")
    stored = None if move.change is None else commit_change(raw, move.change, None)
    if stored is not None:
        note_move(raw, stored.id, source=source, target=target, aliases=move.aliases, sessions=sessions)
    left = f"SELECT 1 FROM memories WHERE tenant = {TENANT} AND project = %s LIMIT 1"
    if move.sessions is None and raw.execute(left, (source,)).fetchone():
        raise Conflict("a memory was stored in the project in the meantime; look again")
    return stored
