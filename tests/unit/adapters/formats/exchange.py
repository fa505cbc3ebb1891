"""Stores of other products brought in and taken out again, through the services that people's commands use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backstory.adapters.project_evidence import FolderEvidence
from backstory.adapters.stores.memory import open_memory_store
from backstory.bootstrap.exchange import reader, writer
from backstory.domain.ids import ProjectId, SessionId
from backstory.domain.interchange import ForeignRecord
from backstory.domain.memory import Memory
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.entrypoints.drive import drive
from backstory.ports.backend import Backend
from backstory.ports.formats import FoundStore, ReadLimits, Written
from backstory.services.exporting import Exporting, ExportPolicy
from backstory.services.import_report import ImportReport
from backstory.services.imported_memories import ImportPolicy
from backstory.services.importing import Importing
from backstory.services.project_identity import ProjectIdentity
from backstory.testing.fakes import FakeClock, SequentialIds, ulid

SEED_STORES = Path(__file__).resolve().parents[5] / "shared" / "seed-stores"
PERSON = Viewer(project=ProjectId(ulid(7, series=3)), session=SessionId("ses-here"), audience=Audience.PERSON)


def sample(name: str) -> Path:
    """The older product's sample store."""
    if not (SEED_STORES / name).exists():
        pytest.skip(f"the older product's sample {name} is not here")
    return SEED_STORES / name


class Exchange:
    """A store of ours, and the ways into it and out of it for one format."""

    def __init__(self, format_name: str, backend: Backend | None = None) -> None:
        self.format = format_name
        self.backend = backend or open_memory_store()
        self.clock = FakeClock(datetime.now(UTC) + timedelta(hours=1))
        self._ids = SequentialIds()

    def found(self, place: Path) -> list[FoundStore]:
        return list(reader(self.format).find(str(place)))

    def records(self, place: Path, *, limits: ReadLimits | None = None) -> list[ForeignRecord]:
        """What the reader says of all stores at a place."""
        read = reader(self.format).read
        return [record for store in self.found(place) for record in read(store, limits=limits or ReadLimits())]

    def bring_in(self, place: Path, *, trusted: bool = False) -> ImportReport:
        """Import what is at a place; ``trusted`` as a person who vouches for it."""
        identity = ProjectIdentity(self.backend.projects, FolderEvidence(), clock=self.clock, ids=self._ids)
        importing = Importing(self.backend, identity, clock=self.clock, ids=self._ids, max_chars=4000)
        whole = ImportReport()
        for store in self.found(place):
            records = reader(self.format).read(store, limits=ReadLimits())
            whole.add(drive(importing.bring_in(records, PERSON, ImportPolicy(trusted=trusted), label=store.label)))
        return whole

    def take_out(self, target: Path) -> list[Written]:
        """Export to a place, each store below it."""
        exporting = Exporting(self.backend, clock=self.clock)
        policy = ExportPolicy(whole_stores=True)
        stores = drive(exporting.stores(self.format, PERSON, policy, run=drive))
        return [writer(self.format).write(store, target / store.label if store.label else target) for store in stores]

    def memories(self) -> Sequence[Memory]:
        """All that are kept."""
        selection = Selection(viewer=replace(PERSON, all_projects=True), now=self.clock.now(), states=EVERY_STATE)
        return drive(self.backend.memories.select(selection, limit=1000))


def contents(folder: Path) -> dict[str, bytes]:
    """The files below a folder, by path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
