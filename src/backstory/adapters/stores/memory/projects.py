"""The project registry in dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from backstory.adapters.stores.memory.conversation import InMemoryConversations
from backstory.adapters.stores.memory.memories import InMemoryMemories
from backstory.domain.history import Change
from backstory.domain.ids import ChangeId, ProjectId, SessionId
from backstory.domain.project import Alias, Project, ProjectSighting, past
from backstory.errors import Conflict, NotFound
from backstory.ports.store import ProjectMove


class InMemoryProjects:
    """The ProjectRegistry in dicts."""

    def __init__(self, memories: InMemoryMemories, conversations: InMemoryConversations) -> None:
        self._memories = memories
        self._conversations = conversations
        self._projects: dict[ProjectId, Project] = {}
        self._aliases: dict[str, Alias] = {}
        self._moves: dict[ChangeId, tuple[ProjectId, ProjectId, Sequence[str], Sequence[SessionId]]] = {}
        memories.on_commit = self._take_back

    async def identify(self, sighting: ProjectSighting, *, now: datetime, new_id: ProjectId) -> Project:
        known = self._known(sighting)
        project_id = known or new_id
        name = self._projects[project_id].name if known else sighting.name
        self._projects[project_id] = Project(id=project_id, name=name, root=sighting.root)
        for taken in sighting.taken:
            self._retire(taken, sighting)
        for alias in sighting.aliases:
            self._see(alias, project_id, sighting, now)
        return self._projects[project_id]

    async def find(self, sighting: ProjectSighting) -> Project | None:
        known = self._known(sighting)
        return None if known is None else replace(self._projects[known], root=sighting.root)

    async def projects(self) -> Mapping[ProjectId, Project]:
        return dict(self._projects)

    async def aliases(self, names: Sequence[str] | None = None) -> list[Alias]:
        wanted = None if names is None else set(names)
        found = [alias for alias in self._aliases.values() if wanted is None or alias.name in wanted]
        return sorted(found, key=lambda alias: (alias.first_seen, alias.name))

    async def rename(self, project: ProjectId, name: str) -> Project:
        self._projects[project] = replace(self._existing(project), name=name)
        return self._projects[project]

    async def move(self, move: ProjectMove, *, now: datetime) -> Change | None:
        source, target = self._existing(move.source).id, move.target.id
        if any(self._owner(alias) != source for alias in move.aliases):
            raise Conflict("a folder of the project has become another project's in the meantime; look again")
        moving = set() if move.change is None else {edit.after.id for edit in move.change.edits}
        left = [memory for memory in self._memories.rows.values() if memory.project == source]
        if move.sessions is None and any(memory.id not in moving for memory in left):
            raise Conflict("a memory was stored in the project in the meantime; look again")
        stored = None if move.change is None else await self._memories.commit(move.change)
        sessions = self._conversations.ids_of(source) if move.sessions is None else move.sessions
        self._projects.setdefault(target, move.target)
        self._pass_on(source, target, move.aliases, sessions)
        if stored is not None:
            self._moves[stored.id] = source, target, move.aliases, sessions
        return stored

    def _known(self, sighting: ProjectSighting) -> ProjectId | None:
        if sighting.joins in self._projects:
            return sighting.joins
        for name in sighting.aliases:
            alias = self._aliases.get(name)
            if alias is not None and (name not in sighting.taken or alias.stamp == sighting.stamp(name)):
                return alias.project
        return None

    def _retire(self, name: str, sighting: ProjectSighting) -> None:
        alias = self._aliases.get(name)
        if alias is not None and alias.stamp != sighting.stamp(name):
            del self._aliases[name]
            self._aliases[past(alias)] = replace(alias, name=past(alias))

    def _see(self, name: str, project: ProjectId, sighting: ProjectSighting, now: datetime) -> None:
        fresh = Alias(name=name, project=project, first_seen=now, last_seen=now)
        alias = self._aliases.setdefault(name, fresh)
        if alias.project != project:
            return
        alias = replace(alias, last_seen=now, stamp=sighting.stamp(name) or alias.stamp)
        if name == sighting.git and sighting.traits is not None:
            alias = replace(alias, looked=sighting.looked, traits=tuple(sorted(set(sighting.traits))))
        self._aliases[name] = alias

    def _owner(self, name: str) -> ProjectId | None:
        alias = self._aliases.get(name)
        return None if alias is None else alias.project

    def _existing(self, project: ProjectId) -> Project:
        if project not in self._projects:
            raise NotFound(f"there is no project {project}")
        return self._projects[project]

    def _pass_on(
        self, source: ProjectId, target: ProjectId, aliases: Sequence[str], sessions: Sequence[SessionId]
    ) -> None:
        for name in aliases:
            if self._owner(name) == source:
                self._aliases[name] = replace(self._aliases[name], project=target)
        self._conversations.pass_on(sessions, source=source, target=target)

    def _take_back(self, change: Change) -> None:
        """Where a change undoes one that moved aliases and sessions, those go back."""
        if change.undoes in self._moves:
            source, target, aliases, sessions = self._moves[change.undoes]
            self._pass_on(target, source, aliases, sessions)
            self._moves[change.id] = target, source, aliases, sessions
