"""Show what is known and why: one memory's whole story, what was offered and what was kept silent, counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from backstory.domain.conversation import FrozenBlock, Message, Session
from backstory.domain.history import Change, in_sight
from backstory.domain.ids import ProjectId
from backstory.domain.memory import Memory, Status, status_at
from backstory.domain.project import Project
from backstory.domain.scope import Audience, Viewer, may_read
from backstory.domain.selection import CURRENT, EVERY_STATE, Selection
from backstory.ports.backend import Backend
from backstory.ports.system import Clock
from backstory.services.reference import Reference

_CHANGES = 50
_SHOWINGS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """One time a memory was put in front of a model."""

    block: FrozenBlock
    reason: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Everything about one memory: where it came from, what happened to it, when it was shown and why."""

    memory: Memory
    status: Status
    project: Project | None
    session: Session | None
    messages: tuple[Message, ...]
    changes: tuple[Change, ...]
    showings: tuple[Showing, ...]
    replaced: tuple[Memory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Counts of a store, as far as the viewer sees; ``vectors`` by model name, of the whole store."""

    current: int
    by_state: Mapping[str, int]
    vectors: Mapping[str, int]
    messages: int
    projects: int


class Inspection:
    """Answers "what do you know" and "why"."""

    def __init__(self, backend: Backend, reference: Reference, *, clock: Clock) -> None:
        self._backend = backend
        self._reference = reference
        self._clock = clock

    async def why(self, ref: str, viewer: Viewer) -> Story:
        """The story of one memory, forgotten ones included. Raises as ``Reference.find``."""
        memory = await self._reference.find(ref, viewer, deleted=True)
        now = self._clock.now()
        session, messages = await self._source(memory, viewer)
        projects = await self._backend.projects.projects()
        replaced = await self._backend.memories.select(
            Selection(viewer=viewer, now=now, states=EVERY_STATE, superseded_by=memory.id), limit=20
        )
        return Story(
            memory=memory,
            status=status_at(memory, now),
            project=projects.get(memory.project) if memory.project else None,
            session=session,
            messages=messages,
            changes=await self._changes(memory, viewer),
            showings=await self._showings(memory, viewer),
            replaced=tuple(replaced),
        )

    async def history(self, viewer: Viewer, *, ref: str | None = None, limit: int = 20) -> list[Change]:
        """Changes the viewer may see, newest first; of one memory or of all.

        Seen is what is in sight at each stage and still is: a memory made local-only takes its past with it.
        """
        memory = None if ref is None else (await self._reference.find(ref, viewer, deleted=True)).id
        return await self._backend.memories.history(memory=memory, viewer=viewer, limit=limit)

    async def moved_here(self, viewer: Viewer, *, limit: int = 20) -> list[Change]:
        """The changes that brought memories of other projects into the viewer's and were not taken back since, newest
        first, among the newest ``limit`` of all. ``history`` has none of them, as each memory was out of sight before.
        """
        if viewer.project is None or viewer.audience is not Audience.PERSON:
            return []
        everywhere = replace(viewer, all_projects=True)
        changes = await self._backend.memories.history(viewer=everywhere, limit=limit)
        undone = {change.undoes for change in changes}
        return [change for change in changes if change.id not in undone and _moves_into(change, viewer.project)]

    async def statistics(self, viewer: Viewer) -> Statistics:
        """Counts for ``status``."""
        selection = Selection(viewer=viewer, now=self._clock.now(), states=CURRENT)
        by_state = {
            state: await self._backend.memories.count(
                Selection(viewer=viewer, now=selection.now, states=frozenset({state}))
            )
            for state in sorted(EVERY_STATE)
        }
        return Statistics(
            current=by_state["active"] + by_state["conflicted"],
            by_state=by_state,
            vectors=await self._backend.vectors.vector_counts(),
            messages=await self._backend.conversations.count_messages(),
            projects=len(await self._backend.projects.projects()),
        )

    async def recent_blocks(self, viewer: Viewer, *, limit: int = 20) -> list[FrozenBlock]:
        """What was put beside prompts lately, and where nothing was and why: in the viewer's session, or without one
        in its project."""
        if viewer.session is None and viewer.project is None:
            return []
        project = viewer.project if viewer.session is None else None
        return await self._backend.conversations.recent_blocks(session=viewer.session, project=project, limit=limit)

    async def projects(self) -> Mapping[ProjectId, Project]:
        """All projects, to name those that memories belong to."""
        return await self._backend.projects.projects()

    async def _source(self, memory: Memory, viewer: Viewer) -> tuple[Session | None, tuple[Message, ...]]:
        """The session in which a memory was learned, and the messages.

        A model hears nothing of other projects' sessions, however far a memory holds.
        """
        source = memory.provenance.session
        if source is None:
            return None, ()
        session = await self._backend.conversations.session(source)
        is_open = viewer.audience is Audience.PERSON or source == viewer.session
        if not is_open and (session is None or not may_read(session, viewer)):
            return None, ()
        messages = await self._backend.conversations.find_messages(memory.provenance.messages)
        return session, tuple(message for message in messages if message.session == source)

    async def _changes(self, memory: Memory, viewer: Viewer) -> tuple[Change, ...]:
        """What happened to it; other memories in the same changes are left out, since they may be out of sight."""
        changes = await self._backend.memories.history(memory=memory.id, limit=_CHANGES)
        its_own = (
            replace(change, edits=tuple(edit for edit in change.edits if edit.after.id == memory.id))
            for change in changes
        )
        return tuple(change for change in its_own if in_sight(change, {memory.id: memory}, viewer))

    async def _showings(self, memory: Memory, viewer: Viewer) -> tuple[Showing, ...]:
        """When it was shown; to a model only what happened in sessions of its project."""
        is_person = viewer.audience is Audience.PERSON
        if not is_person and viewer.project is None:
            return ()
        project = None if is_person else viewer.project
        blocks = await self._backend.conversations.recent_blocks(showing=memory.id, project=project, limit=_SHOWINGS)
        return tuple(
            Showing(block=block, reason=item.reason, score=item.score)
            for block in blocks
            for item in block.shown
            if item.memory == memory.id
        )


def _moves_into(change: Change, project: ProjectId) -> bool:
    return change.undoes is None and any(
        edit.before is not None and edit.before.project not in (None, project) and edit.after.project == project
        for edit in change.edits
    )
