"""Memories as JSON lines: out of a store, and in again from lines that are at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from backstory.codecs.jsonl import encode_lines
from backstory.codecs.jsonl_records import foreign_records
from backstory.domain.memory import Sensitivity
from backstory.domain.scope import Viewer
from backstory.domain.selection import EVERY_STATE, WITH_SUPERSEDED, Selection
from backstory.ports.backend import Backend
from backstory.ports.store import Order
from backstory.ports.system import Clock
from backstory.services.import_report import ImportReport
from backstory.services.imported_memories import ImportPolicy
from backstory.services.importing import Importing

_ALL = 1 << 31


class Transfer:
    """Memories out of a store and into one."""

    def __init__(self, backend: Backend, importing: Importing, *, clock: Clock) -> None:
        self._backend = backend
        self._importing = importing
        self._clock = clock

    async def export(
        self, viewer: Viewer, *, with_forgotten: bool = False, with_private: bool = False
    ) -> Iterator[str]:
        """The lines of an export of what the viewer sees, oldest first, all as of one moment.

        Local-only memories stay here, and so do private ones unless asked for.
        """
        states = EVERY_STATE if with_forgotten else WITH_SUPERSEDED | {"expired"}
        selection = Selection(viewer=viewer, now=self._clock.now(), states=states)
        # in one go: between two pages another process could forget a memory, and the next page would skip one
        memories = await self._backend.memories.select(selection, limit=_ALL, order=Order.OLDEST)
        portable = {Sensitivity.NORMAL, Sensitivity.PRIVATE} if with_private else {Sensitivity.NORMAL}
        projects = await self._backend.projects.projects()
        return encode_lines(
            [memory for memory in memories if memory.sensitivity in portable],
            projects=projects,
            exported_at=self._clock.now(),
        )

    async def load(
        self,
        lines: Iterable[str],
        viewer: Viewer,
        *,
        dry_run: bool = False,
        keep_projects: bool = False,
        trusted: bool = False,
    ) -> ImportReport:
        """Import an export as ``Importing.bring_in`` does. Project memories come into the viewer's project unless
        ``keep_projects``. Raises InputError where the lines are no export."""
        records = foreign_records(lines)
        first = list(islice(records, 1))  # raises here where nothing at all can be read
        policy = ImportPolicy(dry_run=dry_run, trusted=trusted, all_here=not keep_projects)
        return await self._importing.bring_in(chain(first, records), viewer, policy)
