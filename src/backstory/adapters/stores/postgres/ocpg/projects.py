"""Folders of ocpg as projects of ours and back. ocpg goes by the folder's path alone; the registry knows more."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg

from backstory.adapters.project_folder import see_project
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.rows import to_us
from backstory.domain.admission import admit_label
from backstory.domain.ids import ProjectId
from backstory.domain.project import FOLDER

_Raw = psycopg.Connection[Any]
_PATH_MAX_CHARS = 1024


class Folders:
    """The projects of folders, each looked up once."""

    def __init__(self, raw: _Raw, *, new_id: Callable[[], str], now: datetime) -> None:
        self._raw = raw
        self._new_id = new_id
        self._now = now
        self._known: dict[str, ProjectId] = {}

    def project_of(self, path: str) -> ProjectId:
        """The project of a folder: the one that is registered for it; the one that its memories went to; where it is a
        folder of this machine, the one of the repository around it; else a new one, known by this path.

        Raises InputError for a path that no project can have.
        """
        if path not in self._known:
            admit_label(path, field="project", max_chars=_PATH_MAX_CHARS)
            self._known[path] = self._find(path) or self._new(path)
        return self._known[path]

    def _find(self, path: str) -> ProjectId | None:
        return self._registered([_alias(path)]) or self._of_its_memories(path) or self._registered(_aliases_here(path))

    def _registered(self, aliases: list[str]) -> ProjectId | None:
        row = self._raw.execute(
            f"SELECT project FROM project_aliases WHERE tenant = {TENANT} AND alias = ANY(%s)"
            " ORDER BY array_position(%s, alias) LIMIT 1",
            (aliases, aliases),
        ).fetchone()
        return None if row is None else ProjectId(row[0])

    def _of_its_memories(self, path: str) -> ProjectId | None:
        row = self._raw.execute(
            f"SELECT m.project FROM ocpg_links l JOIN memories m ON m.tenant = l.tenant AND m.id = l.memory"
            f" WHERE l.tenant = {TENANT} AND l.theirs -> 'place' ->> 1 = %s AND m.project IS NOT NULL"
            " ORDER BY m.n DESC LIMIT 1",
            (path,),
        ).fetchone()
        return None if row is None else ProjectId(row[0])

    def _new(self, path: str) -> ProjectId:
        project = ProjectId(self._new_id())
        alias = (_aliases_here(path) or [_alias(path)])[-1]  # the folder: repositories are for the registry to join
        root = alias.partition(":")[2]
        name = root.replace("\\", "/").rstrip("/").rpartition("/")[2] or root
        self._raw.execute(
            "INSERT INTO projects (id, name, root, created_us) VALUES (%s, %s, %s, %s)",
            (project, name, root, to_us(self._now)),
        )
        self._raw.execute(
            "INSERT INTO project_aliases (alias, project, created_us, seen_us) VALUES (%s, %s, %s, %s)",
            (alias, project, to_us(self._now), to_us(self._now)),
        )
        return project


def _alias(path: str) -> str:
    return f"{FOLDER}:{path.rstrip('/') or path}"


def _aliases_here(path: str) -> list[str]:
    """By what a folder of this machine is known, the strongest first; nothing where there is none."""
    folder = Path(path)
    try:
        is_here = folder.is_absolute() and folder.is_dir()
    except OSError:  # a name that no file system takes
        return []
    return list(see_project(folder).aliases) if is_here else []


def folder_of(raw: _Raw, project: ProjectId) -> str | None:
    """The folder in which a project was last seen: ocpg shows its facts to whoever works there."""
    statement = f"SELECT root FROM projects WHERE tenant = {TENANT} AND id = %s AND root <> ''"
    row = raw.execute(statement, (project,)).fetchone()
    return None if row is None else str(row[0])
