"""The git backend put together: memories on a ref, everything that stays on this machine in an SQLite file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from backstory.adapters.stores.gitbranch.connection import BUSY_TIMEOUT, GitConnection
from backstory.adapters.stores.gitbranch.erasing import GitEraser
from backstory.adapters.stores.gitbranch.git import Git
from backstory.adapters.stores.gitbranch.reference import DEFAULT_REF, stands
from backstory.adapters.stores.gitbranch.upkeep import GitUpkeep
from backstory.adapters.stores.sqlite.doubts import SqliteDoubts
from backstory.adapters.stores.sqlite.dreams import SqliteDreams
from backstory.adapters.stores.sqlite.memories import SqliteMemories
from backstory.adapters.stores.sqlite.opening import is_there
from backstory.adapters.stores.sqlite.projects import SqliteProjects
from backstory.adapters.stores.sqlite.store import _prepare, open_sqlite
from backstory.adapters.stores.sqlite.vectors import SqliteVectorIndex
from backstory.adapters.stores.sqlite.words import SqliteTextIndex
from backstory.domain.evidence_passages import PassageLimits
from backstory.domain.ids import ProjectId
from backstory.domain.project import Project, ProjectSighting
from backstory.ports.backend import Backend
from backstory.ports.store import Capabilities
from backstory.ports.synchronisation import Synchronised


def open_git(
    repository: Path,
    *,
    ref: str = DEFAULT_REF,
    also: Sequence[str] = (),
    index: Path,
    create: bool = True,
    busy_timeout: timedelta = BUSY_TIMEOUT,
    passages: PassageLimits | None = None,
    trusted: bool = False,
) -> Backend:
    """A backend over ``ref`` of the repository that holds the folder ``repository``; opened at the first use.

    The ref is the truth for memories, except private and local-only ones, which never leave the file ``index``. That
    file also makes memories searchable, and keeps evidence, vectors, what ``record_use`` counts, frozen blocks, what is
    derived, and the registry. One file belongs to one repository. Memories of the refs in ``also`` are read too, and
    not changed.

    With ``create`` False the file is still made where the ref is there, since the ref is the store.

    What others wrote to the ref is not believed about its origin, unless ``trusted``. Raises InputError for a name that
    is no full ref.
    """
    create = create or (not is_there(index) and stands(Git(repository), ref))
    connection = GitConnection(
        repository, ref=ref, also=also, path=index, on_open=_prepare, create=create, busy_timeout=busy_timeout,
        trusted=trusted,
    )  # fmt: skip
    beside = open_sqlite(index, create=create, busy_timeout=busy_timeout, passages=passages)
    return replace(
        beside,
        memories=GitMemories(connection, beside),
        text=SqliteTextIndex(connection),
        vectors=SqliteVectorIndex(connection),
        projects=GitProjects(connection),
        dreams=SqliteDreams(connection),  # of memories as they are on the ref now
        doubts=SqliteDoubts(connection),
        upkeep=GitUpkeep(connection, beside, passages or PassageLimits(), patience=busy_timeout),
        eraser=GitEraser(connection, beside, passages or PassageLimits(), patience=busy_timeout),
    )


class GitMemories(SqliteMemories):
    """The MemoryStore over a ref."""

    def __init__(self, connection: GitConnection, beside: Backend) -> None:
        super().__init__(connection)
        self.connection = connection
        self._beside = beside

    @property
    def capabilities(self) -> Capabilities:
        where = f"{self.connection.reference.name} in {self.connection.git.folder}"
        return replace(super().capabilities, name="git", location=where)

    async def synchronise(self, remote: str | None, *, dry_run: bool, trusted: bool) -> Synchronised:
        return await self.connection.synchronise(remote, dry_run=dry_run, trusted=trusted)

    async def close(self) -> None:
        await super().close()
        await self._beside.memories.close()


class GitProjects(SqliteProjects):
    """The ProjectRegistry of a git store: a new clone takes the repository's project from the ref."""

    def __init__(self, connection: GitConnection) -> None:
        super().__init__(connection)
        self._git_connection = connection

    async def identify(self, sighting: ProjectSighting, *, now: datetime, new_id: ProjectId) -> Project:
        if not self._is_ours(sighting) or await super().find(sighting) is not None:
            return await super().identify(sighting, now=now, new_id=new_id)
        suggested = await self._git_connection.read(self._git_connection.own_project)
        return await super().identify(sighting, now=now, new_id=suggested or new_id)

    async def find(self, sighting: ProjectSighting) -> Project | None:
        found = await super().find(sighting)
        if found is not None or not self._is_ours(sighting):
            return found
        suggested = await self._git_connection.read(self._git_connection.own_project)
        return None if suggested is None else Project(id=suggested, name=sighting.name, root=sighting.root)

    def _is_ours(self, sighting: ProjectSighting) -> bool:
        return sighting.git == self._git_connection.alias
