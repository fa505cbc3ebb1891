"""Show projects, and put them together or apart where only a person can know: list, show, merge, split, rename."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backstory.domain.admission import admit_label
from backstory.domain.conversation import Session
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, ProjectId, SessionId
from backstory.domain.lifecycle import supersede
from backstory.domain.memory import Memory, Visibility, status_at, status_name
from backstory.domain.project import FOLDER, GIT, Alias, Project
from backstory.domain.project_identity import Candidate, candidates
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import CURRENT, EVERY_STATE, Selection
from backstory.domain.statement_form import statement_form
from backstory.errors import AmbiguousMatch, Conflict, InputError, NotFound
from backstory.ports.backend import Backend
from backstory.ports.store import ProjectMove
from backstory.ports.system import Clock, IdSource

NAME_MAX_CHARS = 100
_ALL = 1 << 31
_ATTEMPTS = 5  # a project that is worked in right now may gain a memory between looking and moving


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectCard:
    """A project with what is kept of it. ``memories`` counts current ones that are its own, not global ones."""

    project: Project
    aliases: tuple[Alias, ...]
    memories: int
    sessions: int
    candidates: tuple[tuple[Candidate, Project], ...]

    @property
    def last_seen(self) -> datetime | None:
        """When a folder of it was last seen."""
        return max((alias.last_seen for alias in self.aliases), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What passes from one project to another. ``doubles`` are memories that the target has already: moved, and
    replaced by the target's own. ``namesakes`` are other projects of the target's name."""

    source: Project
    target: Project
    aliases: tuple[Alias, ...]
    memories: tuple[Memory, ...]
    sessions: tuple[SessionId, ...]
    doubles: tuple[tuple[Memory, Memory], ...]
    namesakes: tuple[Project, ...]
    is_merge: bool


class Projects:
    """A person's decisions about which folders are one project."""

    def __init__(self, backend: Backend, *, clock: Clock, ids: IdSource) -> None:
        self._backend = backend
        self._clock = clock
        self._ids = ids

    async def cards(self) -> list[ProjectCard]:
        """All projects that have a folder, a memory or a session, by name and then by id."""
        projects = await self._backend.projects.projects()
        aliases = await self._backend.projects.aliases()
        cards = [await self._card(project, projects, aliases) for project in projects.values()]
        kept = [card for card in cards if card.aliases or card.memories or card.sessions]
        return sorted(kept, key=lambda card: (card.project.name.casefold(), card.project.id))

    async def card(self, ref: str) -> ProjectCard:
        """One project. Raises as ``find``."""
        project = await self.find(ref)
        projects = await self._backend.projects.projects()
        return await self._card(project, projects, await self._backend.projects.aliases())

    async def candidates(self, project: ProjectId) -> tuple[tuple[Candidate, Project], ...]:
        """Other projects that may be this one; none for a project that is not stored."""
        projects = await self._backend.projects.projects()
        found = candidates(project, await self._backend.projects.aliases())
        return tuple((item, projects[item.project]) for item in found if item.project in projects)

    async def find(self, ref: str, *, field: str = "project") -> Project:
        """The project named by id, by one of its folders (an absolute path or a whole alias), or by a name that is one
        project's alone. Raises NotFound and AmbiguousMatch."""
        projects = await self._backend.projects.projects()
        if (project := projects.get(ProjectId(ref.strip().upper()))) is not None:
            return project
        for alias in await self._backend.projects.aliases():
            if ref in (alias.name, alias.path) and alias.kind in (GIT, FOLDER) and alias.project in projects:
                return projects[alias.project]
        named = [card.project for card in await self.cards() if card.project.name == ref]
        if not named:
            raise NotFound(f"there is no project {ref[:NAME_MAX_CHARS]!r}", hint="`backstory projects` lists them")
        if len(named) > 1:
            listed = "".join(f"\n  {project.id}  {project.root}" for project in named)
            ids = [project.id for project in named]
            error = AmbiguousMatch(f"{len(named)} projects are called {ref!r}{listed}", field=field, candidates=ids)
            error.hint = "name one by its id or its folder"
            raise error
        return named[0]

    async def plan_merge(self, source: str, into: str) -> Plan:
        """What a merge would move. Raises as ``find``, and InputError for a project into itself."""
        return await self._merge_plan(await self.find(source, field="from"), await self.find(into, field="into"))

    async def merge(self, source: str, into: str, *, author: Author) -> tuple[Plan, Change | None]:
        """Make two projects one: ``into`` gets all folders, sessions and memories of ``source``, or nothing moves.

        The change (None where there was no memory) can be undone, which also takes the folders and sessions back.
        """
        one, other = await self.find(source, field="from"), await self.find(into, field="into")
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._carry_out(await self._merge_plan(one, other), author)
            except Conflict:
                continue
        return await self._carry_out(await self._merge_plan(one, other), author)

    async def plan_split(self, ref: str, *, alias: str, name: str) -> Plan:
        """What a split would move. Raises as ``find``; NotFound for an alias that the project does not have; InputError
        for one that is no folder, for the only one, and for an impossible name."""
        source = await self.find(ref)
        target = Project(id=ProjectId(self._ids.new_id()), name=_admitted(name), root="")
        own = [item for item in await self._backend.projects.aliases() if item.project == source.id]
        going = _of_one_folder(own, alias, source)
        folder = _folder(going[0])
        sessions = await self._backend.conversations.sessions(limit=_ALL, project=source.id)
        folders = [_folder(item) for item in own if item.kind in (GIT, FOLDER)]
        moving = tuple(item.id for item in sessions if _nearest(item, folders) == folder)
        memories = await self._memories(source)
        return Plan(
            source=source,
            target=replace(target, root=folder),
            aliases=going,
            memories=tuple(memory for memory in memories if _is_from(memory, frozenset(moving))),
            sessions=moving,
            doubles=(),
            namesakes=await self._namesakes(target),
            is_merge=False,
        )

    async def split(self, ref: str, *, alias: str, name: str, author: Author) -> tuple[Plan, Change | None]:
        """Make one folder of a project a project of its own, with the sessions that ran in it and the memories made in
        those. The change can be undone, as for a merge; without one, a merge is the way back."""
        return await self._carry_out(await self.plan_split(ref, alias=alias, name=name), author)

    async def rename(self, ref: str, name: str) -> tuple[Project, Project]:
        """Give a project another name; the project before and after. Raises as ``find``, and InputError."""
        project = await self.find(ref)
        return project, await self._backend.projects.rename(project.id, _admitted(name))

    async def _card(
        self, project: Project, projects: Mapping[ProjectId, Project], aliases: Sequence[Alias]
    ) -> ProjectCard:
        viewer = _person_in(project)
        counts = [
            await self._backend.memories.count(Selection(viewer=viewer, now=self._clock.now(), visibility=visibility))
            for visibility in (Visibility.PROJECT, Visibility.SESSION)
        ]
        found = candidates(project.id, aliases)
        return ProjectCard(
            project=project,
            aliases=tuple(alias for alias in aliases if alias.project == project.id),
            memories=sum(counts),
            sessions=len(await self._backend.conversations.sessions(limit=_ALL, project=project.id)),
            candidates=tuple((item, projects[item.project]) for item in found if item.project in projects),
        )

    async def _merge_plan(self, source: Project, into: Project) -> Plan:
        if source.id == into.id:
            raise InputError(f"{source.name!r} cannot be merged into itself", field="into")
        memories = await self._memories(source)
        sessions = await self._backend.conversations.sessions(limit=_ALL, project=source.id)
        aliases = await self._backend.projects.aliases()
        now = self._clock.now()
        return Plan(
            source=source,
            target=into,
            aliases=tuple(alias for alias in aliases if alias.project == source.id),
            memories=memories,
            sessions=tuple(session.id for session in sessions),
            doubles=_doubles(memories, await self._memories(into), now),
            namesakes=(),
            is_merge=True,
        )

    async def _memories(self, project: Project) -> tuple[Memory, ...]:
        """Everything that was stored in a project, global and forgotten memories too."""
        selection = Selection(viewer=_person_in(project), now=self._clock.now(), states=EVERY_STATE)
        found = await self._backend.memories.select(selection, limit=_ALL)
        return tuple(memory for memory in found if memory.project == project.id)

    async def _namesakes(self, project: Project) -> tuple[Project, ...]:
        cards = await self.cards()
        return tuple(card.project for card in cards if card.project.name == project.name)

    async def _carry_out(self, plan: Plan, author: Author) -> tuple[Plan, Change | None]:
        now = self._clock.now()
        replaced = {moved.id: kept for moved, kept in plan.doubles}
        edits = []
        for memory in plan.memories:
            after = replace(memory, project=plan.target.id)
            if (kept := replaced.get(memory.id)) is not None:
                after = supersede(after, by=kept.id, now=now)
            edits.append(Edit(before=memory, after=after))
        how = "merged into" if plan.is_merge else "split into"
        change = Change(
            id=ChangeId(self._ids.new_id()),
            at=now,
            author=author,
            action=Action.UPDATE,
            edits=tuple(edits),
            reason=f"project {_on_one_line(plan.source.name)} {how} {_on_one_line(plan.target.name)}",
        )
        move = ProjectMove(
            source=plan.source.id,
            target=plan.target,
            aliases=tuple(alias.name for alias in plan.aliases),
            sessions=None if plan.is_merge else plan.sessions,
            change=change if edits else None,
        )
        return plan, await self._backend.projects.move(move, now=now)


def _person_in(project: Project) -> Viewer:
    return Viewer(project=project.id, audience=Audience.PERSON)


def _admitted(name: str) -> str:
    return admit_label(_on_one_line(name), field="name", max_chars=NAME_MAX_CHARS)


def _on_one_line(name: str) -> str:
    return " ".join(name.split())


def _folder(alias: Alias) -> str:
    """The folder that people mean by a git directory or a folder."""
    path = alias.path or ""
    return (path.removesuffix("/.git") or "/") if alias.kind == GIT else path


def _of_one_folder(own: Sequence[Alias], ref: str, project: Project) -> tuple[Alias, ...]:
    """The aliases of the folder that one of them names."""
    places = [alias for alias in own if alias.kind in (GIT, FOLDER)]
    meant = next((alias for alias in own if ref in (alias.name, alias.path) or ref == _folder(alias)), None)
    if meant is None:
        raise NotFound(
            f"the project {project.name!r} has no alias {ref[:NAME_MAX_CHARS]!r}",
            hint=f"`backstory projects show {project.name}` lists them",
        )
    if meant not in places:
        raise InputError(
            f"{meant.name!r} is no folder; only a folder or a git directory can be split off", field="alias"
        )
    going = tuple(alias for alias in places if _folder(alias) == _folder(meant))
    if len(going) == len(places):
        raise InputError(
            f"{ref!r} is the only folder of the project {project.name!r}", field="alias", hint="rename the project"
        )
    return going


def _nearest(session: Session, folders: Iterable[str]) -> str | None:
    """The innermost of the folders that holds the one a session ran in."""
    holding = [
        folder
        for folder in folders
        if session.directory == folder or session.directory.startswith(folder.rstrip("/") + "/")
    ]
    return max(holding, key=len, default=None)


def _is_from(memory: Memory, sessions: frozenset[SessionId]) -> bool:
    return memory.provenance.session in sessions or memory.session in sessions


def _doubles(moving: Sequence[Memory], staying: Sequence[Memory], now: datetime) -> tuple[tuple[Memory, Memory], ...]:
    """Pairs of current memories, one of each project, that say the same to a project's readers."""
    kept = {_said(memory): memory for memory in staying if _is_said(memory, now)}
    return tuple((memory, kept[_said(memory)]) for memory in moving if _is_said(memory, now) and _said(memory) in kept)


def _said(memory: Memory) -> tuple[str, str]:
    return statement_form(memory.content), memory.sensitivity.value


def _is_said(memory: Memory, now: datetime) -> bool:
    return memory.visibility is Visibility.PROJECT and status_name(status_at(memory, now)) in CURRENT
