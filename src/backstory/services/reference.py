"""Which memory somebody means by ``#12``, an id, or a piece of its text."""

from __future__ import annotations

from backstory.domain.ids import MemoryId, is_ulid, parse_number
from backstory.domain.memory import Deleted, Memory, Sensitivity, Visibility
from backstory.domain.scope import Audience, Viewer, may_change, visible
from backstory.domain.selection import WITH_SUPERSEDED, Selection
from backstory.errors import AmbiguousMatch, NotFound, OutOfScope
from backstory.ports.store import MemoryStore, ProjectRegistry
from backstory.ports.system import Clock

_CHANGES_SEARCHED = 50


class Reference:
    """Finds the one memory that is meant, inside the viewer's borders."""

    def __init__(self, store: MemoryStore, projects: ProjectRegistry, *, clock: Clock) -> None:
        self._store = store
        self._projects = projects
        self._clock = clock

    async def find(self, ref: str, viewer: Viewer, *, field: str = "id", deleted: bool = False) -> Memory:
        """The memory named by number, id or text.

        Text means the one memory in sight that contains it. Raises NotFound, OutOfScope (it exists, elsewhere), and
        AmbiguousMatch when the text fits several. A forgotten memory is found only when ``deleted``, by a person.
        """
        memory = await self._by_name(ref)
        if memory is None:
            memory = await self._by_text(ref, viewer, field=field)
        if not visible(memory, viewer):
            if memory.sensitivity is Sensitivity.LOCAL_ONLY and viewer.audience is not Audience.PERSON:
                raise NotFound(f"there is no memory #{memory.n}")
            raise OutOfScope(await self._elsewhere(memory))
        if isinstance(memory.status, Deleted) and not (deleted and viewer.audience is Audience.PERSON):
            raise NotFound(await self._gone(memory))
        return memory

    async def find_changeable(self, ref: str, viewer: Viewer, *, field: str = "id") -> Memory:
        """Like ``find``, for a memory that is to be changed from here. Raises OutOfScope naming its project."""
        memory = await self.find(ref, viewer, field=field)
        if not may_change(memory, viewer):
            raise OutOfScope(await self._elsewhere(memory))
        return memory

    def changeable(self, memory: Memory, viewer: Viewer) -> bool:
        """Whether the viewer may change this memory."""
        return may_change(memory, viewer)

    def check_changeable(self, memory: Memory, viewer: Viewer) -> None:
        """Raise OutOfScope if the viewer may not change this memory."""
        if not may_change(memory, viewer):
            raise OutOfScope(f"memory #{memory.n} belongs to another project; nothing was changed")

    async def _by_name(self, ref: str) -> Memory | None:
        number = parse_number(ref)
        if number is not None:
            memory = await self._store.by_number(number)
            if memory is None:
                raise NotFound(f"there is no memory #{number}")
            return memory
        name = ref.strip().upper()
        if is_ulid(name):
            return (await self._store.get([MemoryId(name)])).get(MemoryId(name))
        return None

    async def _by_text(self, text: str, viewer: Viewer, *, field: str) -> Memory:
        if not text.strip():
            raise NotFound("an empty text names no memory; give a #number, an id or a piece of the text")
        selection = Selection(viewer=viewer, now=self._clock.now(), states=WITH_SUPERSEDED, contains=text)
        matches = await self._store.select(selection, limit=10)
        if not matches:
            raise NotFound(f"no memory here contains {text[:60]!r}")
        if len(matches) > 1:
            numbers = ", ".join(f"#{memory.n}" for memory in matches)
            raise AmbiguousMatch(
                f"{text[:60]!r} fits {len(matches)} memories ({numbers}); nothing was changed",
                field=field,
                candidates=[memory.id for memory in matches],
            )
        return matches[0]

    async def _elsewhere(self, memory: Memory) -> str:
        if memory.visibility is Visibility.SESSION:
            return f"memory #{memory.n} belongs to another session; nothing was changed"
        projects = await self._projects.projects()
        owner = projects.get(memory.project) if memory.project else None
        name = f"the project {' '.join(owner.name.split())}" if owner else "another project"
        return f"memory #{memory.n} ({memory.kind.value}) belongs to {name}; it cannot be seen or changed from here"

    async def _gone(self, memory: Memory) -> str:
        """That it was forgotten, and which change to take back; one that came forgotten from elsewhere has none."""
        for change in await self._store.history(memory=memory.id, limit=_CHANGES_SEARCHED):
            edit = next(edit for edit in change.edits if edit.after.id == memory.id)
            if edit.before is not None and not isinstance(edit.before.status, Deleted):
                return f"memory #{memory.n} was forgotten; `backstory undo {change.id}` brings it back"
        return f"memory #{memory.n} was forgotten"
