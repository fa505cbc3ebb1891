"""The project registry in SQLite: many aliases, one project."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from backstory.adapters.stores.sqlite.connection import Connection
from backstory.adapters.stores.sqlite.rows import to_us
from backstory.domain.ids import ProjectId
from backstory.domain.project import Project, ProjectSighting


class SqliteProjects:
    """The ProjectRegistry over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def identify(self, sighting: ProjectSighting, *, now: datetime, new_id: ProjectId) -> Project:
        known = await self._connection.read(lambda raw: _known(raw, sighting))
        if self._connection.read_only:
            project_id, name = (known.id, known.name) if known else (new_id, sighting.name)
            return Project(id=project_id, name=name, root=sighting.root)
        # the common case writes nothing: every alias is known and the folder is where it was
        if known is not None and known.root == sighting.root and await self._knows_all(sighting):
            return known
        return await self._connection.write(lambda raw: _identify(raw, sighting, now, new_id))

    async def find(self, sighting: ProjectSighting) -> Project | None:
        known = await self._connection.read(lambda raw: _known(raw, sighting))
        return None if known is None else replace(known, root=sighting.root)

    async def projects(self) -> Mapping[ProjectId, Project]:
        def work(raw: sqlite3.Connection) -> dict[ProjectId, Project]:
            rows = raw.execute("SELECT id, name, root FROM projects ORDER BY created_us, id")
            return {ProjectId(row[0]): Project(id=ProjectId(row[0]), name=row[1], root=row[2]) for row in rows}

        return await self._connection.read(work)

    async def _knows_all(self, sighting: ProjectSighting) -> bool:
        marks = ", ".join("?" * len(sighting.aliases))
        statement = f"SELECT count(*) FROM project_aliases WHERE alias IN ({marks})"
        count = await self._connection.read(lambda raw: int(raw.execute(statement, sighting.aliases).fetchone()[0]))
        return count == len(set(sighting.aliases))


def _known(raw: sqlite3.Connection, sighting: ProjectSighting) -> Project | None:
    for alias in sighting.aliases:
        row = raw.execute(
            "SELECT p.id, p.name, p.root FROM projects p JOIN project_aliases a ON a.project = p.id WHERE a.alias = ?",
            (alias,),
        ).fetchone()
        if row is not None:
            return Project(id=ProjectId(row[0]), name=row[1], root=row[2])
    return None


def _identify(raw: sqlite3.Connection, sighting: ProjectSighting, now: datetime, new_id: ProjectId) -> Project:
    known = _known(raw, sighting)
    project_id = known.id if known else new_id
    if known is None:
        raw.execute(
            "INSERT INTO projects (id, name, root, created_us) VALUES (?, ?, ?, ?)",
            (project_id, sighting.name, sighting.root, to_us(now)),
        )
    else:
        raw.execute("UPDATE projects SET root = ? WHERE id = ?", (sighting.root, project_id))
    raw.executemany(
        "INSERT OR IGNORE INTO project_aliases (alias, project, created_us) VALUES (?, ?, ?)",
        [(alias, project_id, to_us(now)) for alias in sighting.aliases],
    )
    return Project(id=project_id, name=known.name if known else sighting.name, root=sighting.root)
