"""What memories went through in another store of our own, done again here, change by change, on a person's word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from backstory.domain.history import Change, Edit
from backstory.domain.ids import MemoryId
from backstory.domain.interchange import ForeignHistory, ForeignMemory
from backstory.domain.memory import Memory
from backstory.errors import Conflict, InputError
from backstory.ports.backend import Backend
from backstory.services.import_report import ImportReport
from backstory.services.imported_memories import ImportPolicy, MemoryImport
from backstory.services.imported_texts import admit_reason, check_aware, check_names

MOST_EDITS = 10_000
"""In one change of a file."""


class HistoryImport:
    """The changes of one import, each under its own id, date and author.

    Only a file that a person vouches for may say who decided what and when. A change comes in where every memory in it
    stands as it was left before the change; so nothing that happened here is ever changed by it.
    """

    def __init__(self, backend: Backend, memories: MemoryImport, report: ImportReport, *, policy: ImportPolicy) -> None:
        self._store = backend.memories
        self._memories = memories
        self._report = report
        self._policy = policy
        self._told = False

    async def take(self, record: ForeignHistory) -> None:
        """Do one change again. Raises InputError for one that cannot come in."""
        if not self._policy.trusted:
            if not self._told:
                self._report.remarks.add("the history of the memories comes in only if the file is vouched for")
            self._told = True
            return
        change = record.change
        if len(change.edits) > MOST_EDITS:
            raise InputError(f"the change has {len(change.edits)} edits; the limit is {MOST_EDITS}", field="edits")
        check_names((change.session, change.key, change.undoes), max_chars=1000)
        check_aware(change.at)
        change = replace(change, reason=admit_reason(change.reason, field="reason"))
        if await self._store.change(change.id) is not None:
            self._report.known.history += 1
            return
        wanted = [await self._admitted(edit, record) for edit in change.edits]
        current = await self._store.get([edit.after.id for edit in wanted])
        if not all(_follows(edit, current.get(edit.after.id)) for edit in wanted):
            if not self._policy.dry_run:
                self._report.conflicts.add(f"{record.where}: its memories stand otherwise here; left out")
                return
        elif not self._policy.dry_run:
            await self._commit(replace(change, edits=_here(wanted, current)), record.where)
            return
        self._count(wanted)

    async def _admitted(self, edit: Edit, record: ForeignHistory) -> Edit:
        before = None if edit.before is None else await self._image(edit.before, record)
        return Edit(before=before, after=await self._image(edit.after, record))

    async def _image(self, memory: Memory, record: ForeignHistory) -> Memory:
        place = None if memory.project is None else record.places.get(memory.project)
        foreign = ForeignMemory(memory=memory, place=place, where=record.where)
        return (await self._memories.admitted(foreign)).memory

    async def _commit(self, change: Change, where: str) -> None:
        try:
            await self._store.commit(change)
        except Conflict as error:
            self._report.conflicts.add(f"{where}: {error}")
            return
        self._count(change.edits)

    def _count(self, edits: Sequence[Edit]) -> None:
        self._report.new.history += 1
        added = [edit.after.id for edit in edits if edit.before is None]
        self._report.new.memories += len(added)
        self._memories.restored.update(added)


def _follows(edit: Edit, current: Memory | None) -> bool:
    """Whether a memory stands here as the change found it there."""
    if edit.before is None or current is None:
        return edit.before is None and current is None
    before = edit.before
    return (before.content, before.status, before.times.updated, before.project) == (
        current.content, current.status, current.times.updated, current.project,
    )  # fmt: skip


def _here(edits: Sequence[Edit], current: Mapping[MemoryId, Memory]) -> tuple[Edit, ...]:
    """The edits with the numbers and revisions that the memories have here."""
    found: list[Edit] = []
    for edit in edits:
        known = current.get(edit.after.id)
        n, revision = (0, 0) if known is None else (known.n, known.revision)
        found.append(Edit(before=known, after=replace(edit.after, n=n, revision=revision)))
    return tuple(found)
