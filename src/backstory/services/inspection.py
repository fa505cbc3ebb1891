"""Show what is known and why: one memory's whole story, what was offered and what was kept silent, counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from backstory.domain.conversation import FrozenBlock, Message, Session
from backstory.domain.history import Change
from backstory.domain.ids import MemoryId, ProjectId, SessionId
from backstory.domain.memory import Memory, Status, status_at
from backstory.domain.project import Project
from backstory.domain.scope import Viewer, visible
from backstory.domain.selection import CURRENT, EVERY_STATE, Selection
from backstory.ports.backend import Backend
from backstory.ports.system import Clock
from backstory.services.reference import Reference


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
        projects = await self._backend.projects.projects()
        replaced = await self._backend.memories.select(
            Selection(viewer=viewer, now=now, states=EVERY_STATE, superseded_by=memory.id), limit=20
        )
        return Story(
            memory=memory,
            status=status_at(memory, now),
            project=projects.get(memory.project) if memory.project else None,
            session=await self._session(memory),
            messages=await self._messages(memory),
            changes=tuple(await self._backend.memories.history(memory=memory.id, limit=50)),
            showings=await self._showings(memory.id),
            replaced=tuple(replaced),
        )

    async def history(self, viewer: Viewer, *, ref: str | None = None, limit: int = 20) -> list[Change]:
        """Changes the viewer may see, newest first; of one memory or of all.

        Seen is what is in sight at each stage and still is: a memory made local-only takes its past with it.
        """
        memory = None if ref is None else await self._reference.find(ref, viewer, deleted=True)
        if memory is not None:
            changes = await self._backend.memories.history(memory=memory.id, limit=limit)
        else:
            changes = await self._backend.memories.history(limit=limit * 5)
        current = await self._backend.memories.get([edit.after.id for change in changes for edit in change.edits])
        return [change for change in changes if _may_see(change, current, viewer)][:limit]

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

    async def recent_blocks(self, *, session: SessionId | None = None, limit: int = 20) -> list[FrozenBlock]:
        """What was put beside prompts lately, and where nothing was and why."""
        return await self._backend.conversations.recent_blocks(session=session, limit=limit)

    async def projects(self) -> Mapping[ProjectId, Project]:
        """All projects, to name those that memories belong to."""
        return await self._backend.projects.projects()

    async def _session(self, memory: Memory) -> Session | None:
        session = memory.provenance.session
        return None if session is None else await self._backend.conversations.session(session)

    async def _messages(self, memory: Memory) -> tuple[Message, ...]:
        session, wanted = memory.provenance.session, set(memory.provenance.messages)
        if session is None or not wanted:
            return ()
        messages = await self._backend.conversations.messages(session, limit=10_000)
        return tuple(message for message in messages if message.id in wanted)

    async def _showings(self, memory_id: MemoryId) -> tuple[Showing, ...]:
        blocks = await self._backend.conversations.recent_blocks(limit=500)
        return tuple(
            Showing(block=block, reason=item.reason, score=item.score)
            for block in blocks
            for item in block.shown
            if item.memory == memory_id
        )


def _may_see(change: Change, current: Mapping[MemoryId, Memory], viewer: Viewer) -> bool:
    images = [
        image
        for edit in change.edits
        for image in (edit.before, edit.after, current.get(edit.after.id))
        if image is not None
    ]
    return all(visible(image, viewer) for image in images)
