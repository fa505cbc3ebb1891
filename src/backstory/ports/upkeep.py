"""Keeping a store whole: what must always hold in it, finding where it does not, copies out of it and back into it.

Embedding what has no vector is in ``services/maintenance.py``, moving memories to another store in
``services/transfer.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from backstory.domain.blob import Blob
from backstory.domain.conversation import Message, Session
from backstory.domain.ids import ProjectId
from backstory.domain.memory import Memory
from backstory.domain.project import Project

Progress = Callable[[int], None]
"""Told now and then how many more things are done."""


class Invariant(StrEnum):
    """What holds in every store after every write and every crash, in the order of the page that explains it.

    ``docs/explanation/what-is-never-lost.md`` says each as a sentence; a check that fails names it.
    """

    WHOLE = "whole"
    FORMAT = "format"
    REFERENCES = "references"
    READABLE = "readable"
    HISTORY = "history"
    NUMBERS = "numbers"
    EVIDENCE = "evidence"
    WITHHELD = "withheld"
    PROJECTS = "projects"
    LOOKUPS = "lookups"
    WORDS = "words"
    PASSAGES = "passages"
    VECTORS = "vectors"
    SHOWINGS = "showings"
    DIGESTS = "digests"
    DREAMS = "dreams"
    DOUBTS = "doubts"

    @property
    def number(self) -> int:
        """Its place on the page, from 1."""
        return list(Invariant).index(self) + 1


class Severity(StrEnum):
    """How bad it is that an invariant does not hold."""

    DAMAGE = "damage"
    """Something that cannot be made anew is lost or unreadable."""
    OUT_OF_STEP = "out-of-step"
    """Something derived is wrong or missing; nothing is lost, and ``rebuild`` mends it."""
    NOTE = "note"
    """Worth knowing; nothing is lost and nothing is wrong to use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One place where an invariant does not hold. ``where`` names the rows, a file or a table; ``way_out`` says what a
    person can do."""

    invariant: Invariant
    severity: Severity
    what: str
    where: str
    way_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What ``rebuild`` looked at (memories, passages), and how many things it had to put right."""

    memories: int = 0
    passages: int = 0
    corrected: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What ``restore`` brought back, and where the store it replaced is now; None when there was none.

    ``unshared`` are those of the memories that a store which travels has kept from its ref: private and local-only
    ones, and other projects'.
    """

    memories: int
    messages: int
    kept: Path | None
    unshared: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvage:
    """What can still be read of a damaged store. ``blobs`` are the contents that parts of the messages refer to; of a
    message's session nothing may be known.
    ``lost`` says in words what could not be read."""

    memories: Sequence[Memory] = ()
    projects: Mapping[ProjectId, Project] = field(default_factory=dict)
    sessions: Sequence[Session] = ()
    messages: Sequence[Message] = ()
    blobs: Sequence[Blob] = ()
    lost: Sequence[str] = ()


class StoreUpkeep(Protocol):
    """Verifying, rebuilding, copying and bringing back one store.

    Errors besides those named: StoreUnavailable and StoreBusy as in every port.
    """

    async def exists(self) -> bool:
        """Whether there is a store, or something in its place, whole or not. Makes none."""
        ...

    async def try_writing(self) -> None:
        """Find out whether a write could begin now, of a store that exists. Nothing is written.

        Raises StoreUnavailable where this process may only read, StoreBusy while others keep it.
        """
        ...

    async def verify(self, *, full: bool = False) -> list[Finding]:
        """Where an invariant does not hold, in the order of ``Invariant``; an empty list for a store that is whole.

        Changes nothing, not even an older format. Damage is a finding, never an error; StoreUnavailable says that there
        is no store or that it cannot be reached. Without ``full``, the rows of a large store are sampled: the newest,
        and some of all ages. Cost with ``full``: about 10 s for 10,000 memories.
        """
        ...

    async def rebuild(self, *, progress: Progress | None = None) -> Rebuilt:
        """Make everything derived anew from memories and messages, except vectors, of which only those are dropped that
        belong to nothing or have a wrong length. Safe to stop at any moment and to run while others write; what was
        not reached stays as it was. Raises StoreDamaged for a row that cannot be read."""
        ...

    async def backup(self, to: Path, *, overwrite: bool = False) -> int:
        """Copy the store as of one moment into one file, readable by its owner only; returns its size in bytes.

        The copy is complete, on the disk and checked before it gets its name, so ``to`` holds the old file or the whole
        new one. Others may write meanwhile. Raises InputError when there is a file and not ``overwrite``, or when
        ``to`` is the store itself or another one in use; StoreDamaged when the store cannot be copied whole.
        """
        ...

    async def restore(self, source: Path) -> Restored:
        """Replace the store by what ``backup`` wrote, all or nothing; the replaced store is kept beside it.

        ``source`` is checked first and never changed: StoreDamaged and SchemaTooNew leave the store as it was. Nothing
        acknowledged falls between the kept store and the restored one, and processes that have the store open go on
        with the restored one. Numbers given since the backup are not given again.
        """
        ...

    async def salvage(self) -> Salvage:
        """Everything that can still be read, from a store however damaged; changes nothing. For a memory that cannot be
        read, its last readable state in the history."""
        ...
