"""The project registry in SQLite: many aliases, one project."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from backstory.adapters.stores.sqlite.connection import Connection
from backstory.adapters.stores.sqlite.project_moves import note_move, pass_on
from backstory.adapters.stores.sqlite.rows import from_us, to_us
from backstory.domain.history import Change, check_not_empty
from backstory.domain.ids import ProjectId
from backstory.domain.project import Alias, Project, ProjectSighting, past
from backstory.errors import Conflict, NotFound
from backstory.ports.store import ProjectMove

SEEN_EVERY = timedelta(days=1)
"""How old a last-seen time gets before it is written again: seeing a project costs no write each time."""
_BATCH = 500  # as in memories.py: stays below the least limit of bound parameters


class SqliteProjects:
    """The ProjectRegistry over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def identify(self, sighting: ProjectSighting, *, now: datetime, new_id: ProjectId) -> Project:
        def look(raw: sqlite3.Connection) -> tuple[Project | None, bool]:
            known = _known(raw, sighting)
            return known, known is not None and _is_current(raw, known, sighting, now)

        known, is_current = await self._connection.read(look)
        if self._connection.read_only:
            project_id, name = (known.id, known.name) if known else (new_id, sighting.name)
            return Project(id=project_id, name=name, root=sighting.root)
        # the common case writes nothing: every alias is known and all stands where it did
        if known is not None and is_current:
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

    async def aliases(self, names: Sequence[str] | None = None) -> list[Alias]:
        return await self._connection.read(lambda raw: _aliases(raw, names))

    async def rename(self, project: ProjectId, name: str) -> Project:
        def work(raw: sqlite3.Connection) -> Project:
            raw.execute("UPDATE projects SET name = ? WHERE id = ?", (name, project))
            return _existing(raw, project)

        return await self._connection.write(work)

    async def move(self, move: ProjectMove, *, now: datetime) -> Change | None:
        if move.change is not None:
            check_not_empty(move.change)
        return await self._connection.write(lambda raw: _move(raw, move, now))


def _known(raw: sqlite3.Connection, sighting: ProjectSighting) -> Project | None:
    if sighting.joins is not None and (project := _project(raw, sighting.joins)) is not None:
        return project
    for alias in sighting.aliases:
        row = raw.execute(
            "SELECT p.id, p.name, p.root, a.stamp FROM projects p JOIN project_aliases a ON a.project = p.id"
            " WHERE a.alias = ?",
            (alias,),
        ).fetchone()
        if row is not None and (alias not in sighting.taken or row[3] == sighting.stamp(alias)):
            return Project(id=ProjectId(row[0]), name=row[1], root=row[2])
    return None


def _is_current(raw: sqlite3.Connection, known: Project, sighting: ProjectSighting, now: datetime) -> bool:
    """Whether a sighting has nothing to add to what is stored."""
    if sighting.traits is not None or sighting.taken or known.root != sighting.root:
        return False
    for name in dict.fromkeys(sighting.aliases):
        row = raw.execute("SELECT project, stamp, seen_us FROM project_aliases WHERE alias = ?", (name,)).fetchone()
        if row is None:
            return False
        is_own = row[0] == known.id
        if is_own and (_newer(row[1], sighting.stamp(name)) or from_us(row[2]) + SEEN_EVERY <= now):
            return False
    return True


def _newer(stored: str, stamp: str) -> bool:
    return stamp not in ("", stored)


def _identify(raw: sqlite3.Connection, sighting: ProjectSighting, now: datetime, new_id: ProjectId) -> Project:
    known = _known(raw, sighting)
    project = Project(id=known.id if known else new_id, name=known.name if known else sighting.name, root=sighting.root)
    if known is None:
        _insert(raw, project, now)
    else:
        raw.execute("UPDATE projects SET root = ? WHERE id = ?", (sighting.root, project.id))
    for alias in sighting.taken:
        _retire(raw, alias, sighting)
    raw.executemany(
        "INSERT INTO project_aliases (alias, project, created_us, seen_us, stamp) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (alias) DO UPDATE SET seen_us = excluded.seen_us,"
        " stamp = coalesce(nullif(excluded.stamp, ''), stamp) WHERE project = excluded.project",
        [(name, project.id, to_us(now), to_us(now), sighting.stamp(name)) for name in sighting.aliases],
    )
    _learn(raw, project.id, sighting)
    return project


def _retire(raw: sqlite3.Connection, name: str, sighting: ProjectSighting) -> None:
    """Leave an alias to its owner under another name, unless the owner is who is seen."""
    found = _aliases(raw, [name])
    if found and found[0].stamp != sighting.stamp(name):
        raw.execute("DELETE FROM project_aliases WHERE alias = ?", (past(found[0]),))
        raw.execute("UPDATE project_aliases SET alias = ? WHERE alias = ?", (past(found[0]), name))


def _learn(raw: sqlite3.Connection, project: ProjectId, sighting: ProjectSighting) -> None:
    """Replace the traits of the git directory, if this project is its owner."""
    if sighting.traits is None or sighting.git is None:
        return
    changed = raw.execute(
        "UPDATE project_aliases SET looked = ? WHERE alias = ? AND project = ?",
        (sighting.looked, sighting.git, project),
    )
    if changed.rowcount == 1:
        raw.execute("DELETE FROM project_traits WHERE alias = ?", (sighting.git,))
        raw.executemany(
            "INSERT OR IGNORE INTO project_traits (alias, trait) VALUES (?, ?)",
            [(sighting.git, trait) for trait in sighting.traits],
        )


def _aliases(raw: sqlite3.Connection, names: Sequence[str] | None) -> list[Alias]:
    columns = "SELECT alias, project, created_us, seen_us, stamp, looked FROM project_aliases"
    if names is None:
        rows = raw.execute(columns).fetchall()
        traits = _traits(raw, None)
    else:
        rows = []
        traits = defaultdict(list)
        unique = list(dict.fromkeys(names))
        for start in range(0, len(unique), _BATCH):
            batch = unique[start : start + _BATCH]
            rows += raw.execute(f"{columns} WHERE alias IN ({', '.join('?' * len(batch))})", batch).fetchall()
            traits |= _traits(raw, batch)
    found = [
        Alias(
            name=row[0],
            project=ProjectId(row[1]),
            first_seen=from_us(row[2]),
            last_seen=from_us(row[3]),
            stamp=row[4],
            looked=row[5],
            traits=tuple(traits[row[0]]),
        )
        for row in rows
    ]
    return sorted(found, key=lambda alias: (alias.first_seen, alias.name))


def _traits(raw: sqlite3.Connection, names: Sequence[str] | None) -> defaultdict[str, list[str]]:
    condition = "1" if names is None else f"alias IN ({', '.join('?' * len(names))})"
    found: defaultdict[str, list[str]] = defaultdict(list)
    statement = f"SELECT alias, trait FROM project_traits WHERE {condition} ORDER BY alias, trait"
    for alias, trait in raw.execute(statement, names or ()):
        found[alias].append(trait)
    return found


def _project(raw: sqlite3.Connection, project: ProjectId) -> Project | None:
    row = raw.execute("SELECT id, name, root FROM projects WHERE id = ?", (project,)).fetchone()
    return None if row is None else Project(id=ProjectId(row[0]), name=row[1], root=row[2])


def _existing(raw: sqlite3.Connection, project: ProjectId) -> Project:
    found = _project(raw, project)
    if found is None:
        raise NotFound(f"there is no project {project}")
    return found


def _insert(raw: sqlite3.Connection, project: Project, now: datetime) -> None:
    raw.execute(
        "INSERT INTO projects (id, name, root, created_us) VALUES (?, ?, ?, ?)",
        (project.id, project.name, project.root, to_us(now)),
    )


def _move(raw: sqlite3.Connection, move: ProjectMove, now: datetime) -> Change | None:
    from backstory.adapters.stores.sqlite.commits import commit_change  # not needed by a recall

    source, target = _existing(raw, move.source).id, move.target.id
    if _project(raw, target) is None:
        _insert(raw, move.target, now)
    sessions = move.sessions
    if sessions is None:
        statement = "SELECT id FROM sessions WHERE project = :own UNION SELECT session FROM dreams WHERE project = :own"
        sessions = tuple(row[0] for row in raw.execute(statement, {"own": source}))
    passed = pass_on(raw, source=source, target=target, aliases=move.aliases, sessions=sessions)
    if passed != len(set(move.aliases)):
        raise Conflict("a folder of the project has become another project's in the meantime; look again")
    stored = None if move.change is None else commit_change(raw, move.change, None)
    if stored is not None:
        note_move(raw, stored.id, source=source, target=target, aliases=move.aliases, sessions=sessions)
    if move.sessions is None and raw.execute("SELECT 1 FROM memories WHERE project = ?", (source,)).fetchone():
        raise Conflict("a memory was stored in the project in the meantime; look again")
    return stored
