"""Memories of a file into the store: idempotent by id, never over a newer edit or over what was said here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from backstory.codecs.record import format_time
from backstory.domain.erasure import is_erased
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, ProjectId
from backstory.domain.interchange import ForeignMemory
from backstory.domain.memory import Deleted, Memory, Superseded, Visibility, narrower, stricter
from backstory.domain.provenance import Origin, is_injectable, lowest, trust
from backstory.domain.scope import Viewer, may_change
from backstory.errors import Conflict, InputError, OutOfScope
from backstory.ports.backend import Backend
from backstory.ports.system import Clock, IdSource
from backstory.services.import_report import ImportReport
from backstory.services.imported_places import ImportedPlaces
from backstory.services.imported_texts import admit_memory, in_the_future, not_in_the_future

BATCH = 200
"""Memories that are written as one change. All are of one project, since a change is undone from its project."""
MOST_WAITING = 2000
"""Memories of all projects that wait for their batch to be full."""
# Two imports of one file meet at every batch, and the loser of a race finds the winner's memories at its next look.
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPolicy:
    """What an import may do. ``dry_run`` writes nothing; ``trusted`` says that a person vouches for the source;
    ``all_here`` brings everything into the viewer's project instead of the source's own ones."""

    dry_run: bool = False
    trusted: bool = False
    all_here: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Arriving:
    """A memory as it may come in, and where it stood. ``is_ahead`` tells that its source dates it in the future."""

    memory: Memory
    where: str
    is_ahead: bool


class MemoryImport:
    """The memories of one import, written in batches."""

    def __init__(
        self, backend: Backend, places: ImportedPlaces, report: ImportReport, *, viewer: Viewer, policy: ImportPolicy,
        clock: Clock, ids: IdSource, max_chars: int, label: str,
    ) -> None:  # fmt: skip
        self._backend = backend
        self._places = places
        self._report = report
        self._rules = _Rules(viewer=viewer, keep_projects=not policy.all_here, trusted=policy.trusted)
        self._dry_run = policy.dry_run
        self._clock = clock
        self._ids = ids
        self._max_chars = max_chars
        self._label = label
        self._waiting: dict[ProjectId | None, list[Arriving]] = {}
        self._count = 0
        self._seen: set[int] = set()  # hashes of ids: half the size, and two in a million million million are alike
        self._successors: dict[MemoryId, str] = {}
        self.restored: set[MemoryId] = set()
        """Memories that came in with their history, and are counted with it."""

    async def take(self, record: ForeignMemory) -> None:
        """Take one in; it is written with its batch. Raises InputError for one that cannot come in."""
        if hash(record.memory.id) in self._seen:
            raise InputError(f"the id {record.memory.id} stands twice; the first one counts", field="id")
        arriving = await self.admitted(record)
        self._seen.add(hash(arriving.memory.id))
        project = None if arriving.memory.visibility is Visibility.GLOBAL else arriving.memory.project
        batch = self._waiting.setdefault(project, [])
        batch.append(arriving)
        self._count += 1
        if isinstance(arriving.memory.status, Superseded):
            self._successors.setdefault(arriving.memory.status.by, record.where)
        if len(batch) >= BATCH:
            await self._write(self._waiting.pop(project))
        elif self._count >= MOST_WAITING:
            await self.flush()

    async def flush(self) -> None:
        """Write all that is waiting."""
        waiting, self._waiting = self._waiting, {}
        for batch in waiting.values():
            await self._write(batch)

    async def _write(self, batch: Sequence[Arriving]) -> None:
        """Write what a batch changes, as one change; decided anew when others wrote in the meantime."""
        self._count -= len(batch)
        for attempt in range(1, _ATTEMPTS + 1):
            known = await self._backend.memories.get([item.memory.id for item in batch])
            outcome = ImportReport()
            edits = [edit for item in batch if (edit := self._edit(item, known.get(item.memory.id), outcome))]
            try:
                if edits and not self._dry_run:
                    outcome.changes.append(await self._commit(edits))
            except Conflict as error:
                if attempt < _ATTEMPTS:
                    continue
                outcome = ImportReport()
                for item in batch:
                    outcome.refused.add(f"{item.where}: {error}")
            self._report.add(outcome)
            return

    async def finish(self) -> None:
        """Write the rest, and tell of memories that are forgotten here, or stand replaced by one that is nowhere."""
        await self.flush()
        self._tell_what_stays()
        missing = [memory for memory in self._successors if hash(memory) not in self._seen]
        for start in range(0, len(missing), BATCH):
            page = missing[start : start + BATCH]
            known = await self._backend.memories.get(page)
            for memory in page:
                if memory not in known:
                    where = self._successors[memory]
                    self._report.remarks.add(f"{where}: what replaced it ({memory}) is not there; it stays replaced")

    def _tell_what_stays(self) -> None:
        if self._report.forgotten:
            self._report.remarks.add(
                f"{self._report.forgotten} of these memories were forgotten or taken back here, and stay so;"
                " `backstory undo CHANGE` brings them back, `backstory history` lists the changes"
            )
        if self._report.elsewhere:
            self._report.remarks.add(
                f"{self._report.elsewhere} of these memories are in another project here, and stay there;"
                " `backstory projects merge` puts projects together"
            )

    async def admitted(self, record: ForeignMemory) -> Arriving:
        """A memory as it may come in. Raises InputError for one that may not."""
        told = record.memory.origin
        too_high = trust(told) > trust(Origin.IMPORTED) and not self._rules.trusted
        origin = Origin.IMPORTED if too_high else told
        memory = admit_memory(record.memory, max_chars=self._max_chars, origin=origin, label=self._label)
        project = await self._places.project(record.place, named=memory.project)
        if memory.visibility is not Visibility.GLOBAL and project is None:
            raise InputError("a project's memory can only be imported inside a project", field="project")
        if project != memory.project:
            memory = replace(memory, project=project)
        now = self._clock.now()
        is_ahead = in_the_future(memory, now)
        if is_ahead:
            dated = f"{memory.times.updated:%Y-%m-%d}"
            self._report.remarks.add(f"{record.where}: dated {dated}, which is to come; it counts as learned today")
            memory = not_in_the_future(memory, now)
        return Arriving(memory=memory, where=record.where, is_ahead=is_ahead)

    async def _commit(self, edits: Sequence[Edit]) -> ChangeId:
        change = await self._backend.memories.commit(
            Change(
                id=ChangeId(self._ids.new_id()),
                at=self._clock.now(),
                author=Author.USER,
                action=Action.IMPORT,
                edits=tuple(edits),
                session=self._rules.viewer.session,
            )
        )
        return change.id

    def _edit(self, item: Arriving, known: Memory | None, report: ImportReport) -> Edit | None:
        """What one memory changes, and the report of it; None where nothing is to be written."""
        if known is None and self._dry_run and item.memory.id in self.restored:
            return None
        if known is None:
            report.new.memories += 1
            return Edit(before=None, after=item.memory)
        if is_erased(known):
            report.conflicts.add(f"{item.where}: #{known.n} was erased here for good; kept out")
            return None
        vouched = self._vouched(item, known)
        if vouched is not None:
            report.updated.memories += 1
            return Edit(before=known, after=vouched)
        same_words = known.content == item.memory.content
        is_older = item.is_ahead or known.times.updated >= item.memory.times.updated
        arriving = known if same_words and is_older else _in_place_of(known, item.memory)
        if arriving == known:
            report.known.memories += item.memory.id not in self.restored
            report.elsewhere += self._rules.is_elsewhere(known)
            report.forgotten += isinstance(known.status, Deleted) and not isinstance(item.memory.status, Deleted)
            return None
        if is_older:
            changed = format_time(known.times.updated)
            report.conflicts.add(f"{item.where}: #{known.n} was changed here on {changed}; kept")
            return None
        try:
            self._rules.check(known, arriving, claimed=item.memory.origin)
        except OutOfScope as error:
            report.conflicts.add(f"{item.where}: {error}")
            return None
        report.updated.memories += 1
        return Edit(before=known, after=arriving)

    def _vouched(self, item: Arriving, known: Memory) -> Memory | None:
        """The memory as a person vouches for it who imported it before without: the same text, of a better origin."""
        gains = known.origin is Origin.IMPORTED and trust(item.memory.origin) > trust(known.origin)
        if not self._rules.trusted or not gains or item.memory.content != known.content:
            return None
        return replace(known, origin=item.memory.origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """What one import may do to memories that are here."""

    viewer: Viewer
    keep_projects: bool
    trusted: bool

    def is_elsewhere(self, known: Memory) -> bool:
        """Whether a memory that was to come into the viewer's project is in another one."""
        is_bound = known.visibility is not Visibility.GLOBAL and not isinstance(known.status, Deleted)
        return is_bound and not self.keep_projects and known.project != self.viewer.project

    def check(self, known: Memory, arriving: Memory, *, claimed: Origin) -> None:
        """Raise OutOfScope where a file must not change a memory: in another project, over what the user or an agent
        said here, or in who reads it.

        Otherwise a file could put words into the user's mouth, silence them or give them away, by naming the id of a
        memory. ``claimed`` is the origin with which the file's own record was admitted.
        """
        if not self.keep_projects and not may_change(known, self.viewer):
            raise OutOfScope(f"#{known.n} belongs to another project; it can only be imported with its project kept")
        if self.trusted:
            return
        if is_injectable(known.origin) and trust(claimed) < trust(known.origin):
            by = "the user" if known.origin is Origin.USER else "an agent"
            raise OutOfScope(f"#{known.n} was said by {by} here; only a file that is vouched for may change it")
        if _opens(known, arriving):
            raise OutOfScope(
                f"#{known.n} would get another state or circle of readers; only a file that is vouched for may do that"
            )


def _opens(known: Memory, arriving: Memory) -> bool:
    """Whether a memory would reach more readers than somebody here decided, or come back after it was forgotten."""
    return (
        stricter(known.sensitivity, arriving.sensitivity) is not arriving.sensitivity
        or narrower(known.visibility, arriving.visibility) is not arriving.visibility
        or (isinstance(known.status, Deleted) and not isinstance(arriving.status, Deleted))
    )


def _in_place_of(known: Memory, memory: Memory) -> Memory:
    """A file's memory as it would stand here: new words come with their own origin, so that a file's text never gains
    the trust of the text it replaces."""
    origin = known.origin if memory.content == known.content else lowest((known.origin, memory.origin))
    times = replace(memory.times, surfaced=known.times.surfaced, used=known.times.used)
    return replace(
        memory, n=known.n, revision=known.revision, counters=known.counters, origin=origin, project=known.project,
        times=times,
    )  # fmt: skip
