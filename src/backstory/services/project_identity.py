"""Which project a folder belongs to: a quick look, and a deeper one when the quick one leaves a doubt."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from backstory.domain.ids import ProjectId
from backstory.domain.project import Alias, Project, ProjectSighting
from backstory.domain.project_identity import (
    clone_aliases,
    decide,
    is_stale,
    kept_roots,
    places_in_question,
    recognised,
)
from backstory.ports.folders import Folders
from backstory.ports.store import ProjectRegistry
from backstory.ports.system import Clock, IdSource


class ProjectIdentity:
    """Finds the project of a folder, and keeps what tells it."""

    def __init__(self, registry: ProjectRegistry, folders: Folders, *, clock: Clock, ids: IdSource) -> None:
        self._registry = registry
        self._folders = folders
        self._clock = clock
        self._ids = ids

    async def of_folder(self, directory: Path, *, register: bool = True) -> Project:
        """The project that a folder belongs to; a new folder becomes a new project.

        A known place costs a few file system calls and a read or two of the store. Git is asked at the first sight
        of a place, and when something else stands there. Without ``register`` nothing is written: a new folder's
        project has an id that nobody knows.
        """
        seen = await self._sighting(self._folders.see(directory), register=register)
        new_id = ProjectId(self._ids.new_id())
        if not register:
            known = await self._registry.find(seen)
            return known or Project(id=new_id, name=seen.name, root=seen.root)
        return await self._registry.identify(seen, now=self._clock.now(), new_id=new_id)

    async def _sighting(self, seen: ProjectSighting, *, register: bool) -> ProjectSighting:
        named = await self._registry.aliases([*seen.inner, *seen.aliases])
        certain = recognised(seen, named)
        if certain is not None:
            # the place is known, but there may be more to learn: first commits, another remote
            return await self._renewed(certain, named) if register and is_stale(certain, named) else certain
        looked = replace(seen, traits=await self._folders.traits(seen, known_roots=frozenset()))
        known = await self._registry.aliases()
        return decide(looked, known, gone=await self._folders.gone(places_in_question(looked, known)))

    async def _renewed(self, seen: ProjectSighting, named: list[Alias]) -> ProjectSighting:
        traits = await self._folders.traits(seen, known_roots=kept_roots(seen, named))
        aliases = tuple(dict.fromkeys((*seen.aliases, *clone_aliases(traits))))
        return replace(seen, traits=traits, aliases=aliases)
