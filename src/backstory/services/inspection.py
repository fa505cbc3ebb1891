"""Show what is known and why: one memory's whole story, what was offered and what was kept silent, counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from backstory.domain.conversation import FrozenBlock, FrozenSnapshot, Message, Session
from backstory.domain.doubt import Doubt
from backstory.domain.history import Change, in_sight, touched, without_forgotten
from backstory.domain.ids import MemoryId, MessageId, ProjectId
from backstory.domain.memory import Conflicted, Deleted, Memory, Status, Superseded, status_at
from backstory.domain.overview import Overview, overview
from backstory.domain.project import Project
from backstory.domain.scope import Audience, Viewer, may_read, visible
from backstory.domain.selection import CURRENT, EVERY_STATE, Selection
from backstory.domain.worth import Worth, parts
from backstory.ports.backend import Backend
from backstory.ports.system import Clock
from backstory.services.reference import Reference
from backstory.services.source import source_of

_CHANGES = 50
_SHOWINGS = 50
_RELATED = 20
_PAGE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """One time a memory was put in front of a model; ``parts`` is what made up the score, where that was kept."""

    block: FrozenBlock
    reason: str
    score: float
    parts: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Everything about one memory: where it came from, what happened to it, when it was shown and why.

    ``replaced`` are those it took the place of, ``successors`` what took its place, one after the other. ``against``
    are the other sides of a conflict, ``sources`` what it was made from, ``doubt`` why it should be checked.
    """

    memory: Memory
    status: Status
    project: Project | None
    session: Session | None
    messages: tuple[Message, ...]
    changes: tuple[Change, ...]
    showings: tuple[Showing, ...]
    replaced: tuple[Memory, ...]
    successors: tuple[Memory, ...]
    against: tuple[Memory, ...]
    sources: tuple[Memory, ...]
    doubt: Doubt | None
    worth: Worth


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
        source = await source_of(memory, self._backend.conversations, viewer)
        projects = await self._backend.projects.projects()
        everything = Selection(viewer=viewer, now=now, states=EVERY_STATE)
        replaced = await self._backend.memories.select(replace(everything, superseded_by=memory.id), limit=_RELATED)
        return Story(
            memory=memory,
            status=status_at(memory, now),
            project=projects.get(memory.project) if memory.project else None,
            session=source.session,
            messages=source.messages,
            changes=await self._changes(memory, viewer),
            showings=await self._showings(memory, viewer),
            replaced=tuple(replaced),
            successors=await self._successors(memory, viewer),
            against=await self._against(memory, everything),
            sources=await self._seen(memory.provenance.derived_from[:_RELATED], viewer),
            doubt=(await self._backend.doubts.doubts([memory.id])).get(memory.id),
            worth=parts(memory, now),
        )

    async def history(self, viewer: Viewer, *, ref: str | None = None, limit: int = 20) -> list[Change]:
        """Changes the viewer may see, newest first; of one memory or of all.

        Seen is what is in sight at each stage and still is: a memory made local-only takes its past with it. A model
        reads no words of what is forgotten.
        """
        memory = None if ref is None else (await self._reference.find(ref, viewer, deleted=True)).id
        changes = await self._backend.memories.history(memory=memory, viewer=viewer, limit=limit)
        if viewer.audience is Audience.PERSON:
            return changes
        current = await self._backend.memories.get(list({name for change in changes for name in touched(change)}))
        return [without_forgotten(change, current) for change in changes]

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

    async def overview(self, viewer: Viewer) -> Overview:
        """The current memories in sight, in numbers. Cost: reads all of them."""
        selection = Selection(viewer=viewer, now=self._clock.now())
        memories: list[Memory] = []
        while len(page := await self._backend.memories.select(selection, limit=_PAGE, offset=len(memories))) == _PAGE:
            memories += page
        return overview([*memories, *page])

    async def recent_blocks(self, viewer: Viewer, *, limit: int = 20) -> list[FrozenBlock]:
        """What was put beside prompts lately, and where nothing was and why: in the viewer's session, or without one
        in its project."""
        if viewer.session is None and viewer.project is None:
            return []
        project = viewer.project if viewer.session is None else None
        return await self._backend.conversations.recent_blocks(session=viewer.session, project=project, limit=limit)

    async def block(self, viewer: Viewer, *, message: MessageId | None = None) -> FrozenBlock | None:
        """What was put beside a message, or beside the latest; None where nothing is known or it is not the viewer's to
        see. A model sees its own session's and its project's, a person all."""
        if message is None:
            return next(iter(await self.recent_blocks(viewer, limit=1)), None)
        block = (await self._backend.conversations.blocks([message])).get(message)
        if block is None or viewer.audience is Audience.PERSON or block.session == viewer.session:
            return block
        session = await self._backend.conversations.session(block.session)
        return block if session is not None and may_read(session, viewer) else None

    async def snapshot(self, viewer: Viewer) -> FrozenSnapshot | None:
        """What stands at the end of the system prompt of the viewer's session."""
        return None if viewer.session is None else await self._backend.conversations.snapshot(viewer.session)

    async def prompts(self, blocks: Sequence[FrozenBlock]) -> Mapping[MessageId, Message]:
        """The messages that blocks stand beside, where they are kept."""
        messages = await self._backend.conversations.find_messages([block.message for block in blocks])
        return {message.id: message for message in messages}

    async def in_sight(self, ids: Sequence[MemoryId], viewer: Viewer) -> Mapping[MemoryId, Memory]:
        """The memories with these ids that the viewer may read; a person also those that are forgotten."""
        is_person = viewer.audience is Audience.PERSON
        seen = await self._seen(ids, viewer)
        return {memory.id: memory for memory in seen if is_person or not isinstance(memory.status, Deleted)}

    async def projects(self) -> Mapping[ProjectId, Project]:
        """All projects, to name those that memories belong to."""
        return await self._backend.projects.projects()

    async def _successors(self, memory: Memory, viewer: Viewer) -> tuple[Memory, ...]:
        chain: dict[MemoryId, Memory] = {}
        while isinstance(memory.status, Superseded) and memory.status.by not in chain and len(chain) < _RELATED:
            following = await self._seen([memory.status.by], viewer)
            if not following:
                break
            memory = chain[following[0].id] = following[0]
        return tuple(chain.values())

    async def _against(self, memory: Memory, everything: Selection) -> tuple[Memory, ...]:
        """The other sides of its conflict, whichever of the two was flagged."""
        others = await self._backend.memories.select(replace(everything, against=memory.id), limit=_RELATED)
        named = memory.status.against if isinstance(memory.status, Conflicted) else None
        found = await self._seen([] if named is None else [named], everything.viewer)
        return tuple({other.id: other for other in (*found, *others)}.values())

    async def _seen(self, ids: Sequence[MemoryId], viewer: Viewer) -> tuple[Memory, ...]:
        """The memories with these ids that the viewer may read, in this order, forgotten ones included."""
        memories = await self._backend.memories.get(ids) if ids else {}
        return tuple(memories[item] for item in ids if item in memories and visible(memories[item], viewer))

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
            Showing(block=block, reason=item.reason, score=item.score, parts=item.parts)
            for block in blocks
            for item in block.shown
            if item.memory == memory.id
        )


def _moves_into(change: Change, project: ProjectId) -> bool:
    return change.undoes is None and any(
        edit.before is not None and edit.before.project not in (None, project) and edit.after.project == project
        for edit in change.edits
    )
