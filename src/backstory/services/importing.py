"""Bring another store in: record by record, each whole or not at all, idempotent, and told about.

What a record must be is in ``imported_texts.py``; what happens to each kind in ``imported_memories.py``,
``imported_sessions.py`` and ``imported_digests.py``; which project it belongs to in ``imported_places.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import assert_never

from backstory.domain.erasure import is_erased
from backstory.domain.interchange import (
    ForeignDigest,
    ForeignHistory,
    ForeignMemory,
    ForeignMessages,
    ForeignRecord,
    ForeignSession,
    Keepsake,
    Remark,
    Unreadable,
)
from backstory.domain.part_admission import KeepLimits
from backstory.domain.scope import Viewer
from backstory.errors import InputError
from backstory.ports.backend import Backend
from backstory.ports.system import Clock, IdSource
from backstory.services.conversation import Aside, at_once
from backstory.services.import_report import ImportReport
from backstory.services.imported_digests import DigestImport
from backstory.services.imported_history import HistoryImport
from backstory.services.imported_memories import ImportPolicy, MemoryImport
from backstory.services.imported_places import ImportedPlaces
from backstory.services.imported_sessions import SessionImport
from backstory.services.imported_texts import admit_keepsake
from backstory.services.project_identity import ProjectIdentity

KEEPSAKES = 200
"""Written together."""
_WRONG = (ValueError, TypeError, OverflowError, RecursionError)

Advance = Callable[[int], None]


class Importing:
    """Imports into one store."""

    def __init__(
        self, backend: Backend, identity: ProjectIdentity, *, clock: Clock, ids: IdSource, max_chars: int,
        keep: KeepLimits | None = None, archive: bool = True, aside: Aside = at_once,
    ) -> None:  # fmt: skip
        """``max_chars`` bounds a memory as in ``TextLimits``, where it is more than a file may bring. ``keep``,
        ``archive`` and ``aside`` are as in ``Conversations``."""
        self._backend = backend
        self._identity = identity
        self._clock = clock
        self._ids = ids
        self._max_chars = max_chars
        self._keep = keep or KeepLimits()
        self._archive = archive
        self._aside = aside

    async def bring_in(
        self, records: Iterable[ForeignRecord], viewer: Viewer, policy: ImportPolicy, *, label: str = "",
        advance: Advance | None = None,
    ) -> ImportReport:  # fmt: skip
        """Import the records of one store, whose ``label`` is as in ``FoundStore``.

        Idempotent: what is here already is counted as known. Every memory, message and digest comes in whole or not at
        all; one that cannot is reported, and stops nothing. Memories come in batches, each of which is one change that
        ``undo`` takes back. Two imports at once each find what the other wrote. ``advance`` is told how many records
        were looked at. Memory use does not grow with the store but for 100 bytes a memory. Raises what the store
        raises; then what was written stays, and the same import once more does the rest.
        """
        run = self._run(viewer, policy, label)
        for record in _until_unreadable(records, run.report):
            await run.take(record)
            if advance is not None:
                advance(len(record.messages) if isinstance(record, ForeignMessages) else 1)
        return await run.finish()

    def _run(self, viewer: Viewer, policy: ImportPolicy, label: str) -> _Run:
        report = ImportReport()
        places = ImportedPlaces(
            self._backend.projects, self._identity, clock=self._clock, ids=self._ids, here=viewer.project,
            all_here=policy.all_here, dry_run=policy.dry_run,
        )  # fmt: skip
        memories = MemoryImport(
            self._backend, places, report, viewer=viewer, policy=policy, clock=self._clock, ids=self._ids,
            max_chars=self._max_chars, label=label,
        )  # fmt: skip
        sessions = SessionImport(
            self._backend, places, report, clock=self._clock, keep=self._keep, dry_run=policy.dry_run,
            archive=self._archive, aside=self._aside,
        )  # fmt: skip
        digests = DigestImport(self._backend.digests, sessions, report, policy=policy)
        history = HistoryImport(self._backend, memories, report, policy=policy)
        return _Run(self._backend, places, report, memories, sessions, digests, history, policy)


class _Run:
    """One import."""

    def __init__(
        self, backend: Backend, places: ImportedPlaces, report: ImportReport, memories: MemoryImport,
        sessions: SessionImport, digests: DigestImport, history: HistoryImport, policy: ImportPolicy,
    ) -> None:  # fmt: skip
        self.report = report
        self._backend = backend
        self._places = places
        self._memories = memories
        self._sessions = sessions
        self._digests = digests
        self._history = history
        self._dry_run = policy.dry_run
        self._keepsakes: list[Keepsake] = []

    async def take(self, record: ForeignRecord) -> None:
        """Take one record in, or report it."""
        try:
            await self._take(record)
        except InputError as error:
            self.report.refused.add(f"{_where(record)}: {error}")
        except _WRONG as error:
            self.report.refused.add(f"{_where(record)}: it is not what it should be ({type(error).__name__})")

    async def finish(self) -> ImportReport:
        """Write what is waiting. Returns the report of all of it."""
        await self._memories.finish()
        await self._sessions.flush()
        await self._put_keepsakes()
        self.report.projects = self._places.new
        return self.report

    async def _take(self, record: ForeignRecord) -> None:
        match record:
            case ForeignMemory():
                await self._memories.take(record)
            case ForeignSession():
                await self._sessions.take_session(record)
            case ForeignMessages():
                await self._sessions.take_messages(record)
            case ForeignDigest():
                await self._sessions.flush()
                await self._digests.take(record)
            case ForeignHistory():
                await self._history.take(record)
            case Keepsake():
                self._keepsakes.append(admit_keepsake(record))
                if len(self._keepsakes) >= KEEPSAKES:
                    await self._put_keepsakes()
            case Unreadable():
                self.report.refused.add(f"{record.where}: {record.reason}")
            case Remark():
                self.report.remarks.add(f"{record.where}: {record.text}")
            case _:
                assert_never(record)

    async def _put_keepsakes(self) -> None:
        waiting, self._keepsakes = await self._not_erased(self._keepsakes), []
        if not waiting:
            return
        new = await (self._new_keepsakes(waiting) if self._dry_run else self._backend.keepsakes.put(waiting))
        self.report.new.keepsakes += new
        self.report.known.keepsakes += len(waiting) - new

    async def _not_erased(self, waiting: Sequence[Keepsake]) -> list[Keepsake]:
        """Those but for what says something of a memory that was erased here."""
        known = await self._backend.memories.get([one.memory for one in waiting if one.memory is not None])
        erased = {name for name, memory in known.items() if is_erased(memory)}
        return [one for one in waiting if one.memory not in erased]

    async def _new_keepsakes(self, waiting: Sequence[Keepsake]) -> int:
        """How many would be new, or differ from what is kept."""
        kept: set[Keepsake] = set()
        for name in {keepsake.format for keepsake in waiting}:
            kept.update(await self._backend.keepsakes.kept(name))
        return sum(keepsake not in kept for keepsake in waiting)


def _until_unreadable(records: Iterable[ForeignRecord], report: ImportReport) -> Iterator[ForeignRecord]:
    """The records, until the source can be read no further, which is reported: what came before is not lost by it."""
    try:
        yield from records
    except InputError as error:
        report.refused.add(str(error))
    except (OSError, *_WRONG) as error:
        report.refused.add(f"the rest cannot be read ({type(error).__name__})")


def _where(record: ForeignRecord) -> str:
    return f"keepsake {record.key[:100]!r}" if isinstance(record, Keepsake) else record.where
