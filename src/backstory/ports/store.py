"""Where memories live. Backends are written from this page and pass ``backstory.testing.contracts``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from backstory.domain.history import Change
from backstory.domain.ids import ChangeId, MemoryId, ProjectId, SessionId
from backstory.domain.memory import Memory
from backstory.domain.outline import Outline
from backstory.domain.project import Alias, Project, ProjectSighting
from backstory.domain.scope import Viewer
from backstory.domain.selection import Selection


class Order(StrEnum):
    """By what a selection is sorted: by learned date, and by number in the same direction where dates are equal."""

    NEWEST = "newest"
    OLDEST = "oldest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend can do beyond the contract, and how it is named to people."""

    name: str
    location: str
    durable: bool
    shared_between_processes: bool
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Memories that reached a reader: recalled on request, or surfaced in a block. Never counts as confirmation."""

    memories: tuple[MemoryId, ...]
    at: datetime
    session: SessionId | None
    surfaced: bool


class MemoryStore(Protocol):
    """Memories, their history and their use counters.

    Every write is atomic and durable when the call returns: a process killed afterwards has lost nothing. Many
    processes may use one store; writers wait for each other. Errors: StoreUnavailable (locked too long, full,
    read-only), StoreDamaged, SchemaTooNew.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What this backend can do."""
        ...

    async def get(self, ids: Sequence[MemoryId]) -> dict[MemoryId, Memory]:
        """The memories with these ids, whatever their status or project; unknown ids are left out."""
        ...

    async def by_number(self, n: int) -> Memory | None:
        """The memory people call ``#n``, whatever its status or project; None for any number never given."""
        ...

    async def select(
        self, selection: Selection, *, limit: int, offset: int = 0, order: Order = Order.NEWEST
    ) -> list[Memory]:
        """The memories meant by ``selection``, sorted by learned date, at most ``limit``."""
        ...

    async def outlines(self, selection: Selection) -> list[Outline]:
        """All memories meant, at a glance: those with the oldest words first, then by number. Reading 10,000 takes less
        than a tenth of what ``select`` needs for them."""
        ...

    async def count(self, selection: Selection) -> int:
        """How many memories are meant."""
        ...

    async def commit(self, change: Change, *, absent: Selection | None = None) -> Change:
        """Write all edits of a change and the change itself, or nothing.

        Returns the change as stored: added memories have their number (never given before), each written memory its
        next revision, 1 for the first. An added memory brings its counters. Afterwards ``helpful`` and ``irrelevant``
        are written as ``after`` says, since they are decisions; how often a memory was surfaced and recalled, in how
        many sessions, and the surfaced and used times only ``record_use`` moves, whatever ``after`` says. When
        ``change.key`` was committed before, nothing is written and that earlier change is returned.

        What a change withholds (``withheld``: forgotten, private or local-only from now on) no frozen text shows any
        more, from the same moment: blocks that show it become empty, with ``WITHHELD`` as the reason, and keep what
        they had shown; snapshots that show it are let go.

        With the same commit goes every summary with a source that says something else now, is superseded or withheld,
        or has other readers (``sources_lost``); and every doubt about a memory that says something else now or is
        forgotten (``doubts_settled``).

        Raises Conflict when a memory's stored revision is not the one in ``before`` (so also for a memory that stands
        twice in a change), when an added id or the change's id exists already, and when any memory is selected by
        ``absent`` at the moment of writing. The last lets a caller add what nobody else has added since it looked.
        Raises InputError for a change without edits and, at its will, for texts with half a character in them (a lone
        surrogate).
        """
        ...

    async def history(
        self, *, memory: MemoryId | None = None, viewer: Viewer | None = None, limit: int = 50
    ) -> list[Change]:
        """Changes, newest first by their time, then by id; of one memory, or of all.

        With a ``viewer``, only those that are ``in_sight`` of it: the limit counts none that are not.
        """
        ...

    async def change(self, change_id: ChangeId) -> Change | None:
        """One change by its id."""
        ...

    async def record_use(self, use: Use) -> None:
        """Add to the counters of memories; unknown ids are ignored.

        ``recalled`` or ``surfaced`` grow by one each time; ``sessions`` by one for each session, once.
        """
        ...

    async def tag_counts(self, selection: Selection, *, limit: int) -> list[tuple[str, int]]:
        """Tags of the memories meant, with how many carry them: most used first, then by name."""
        ...

    async def close(self) -> None:
        """Release the store. Calling twice is fine."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectMove:
    """Aliases, sessions and memories that pass from one project to another, as one decision. How far a session is
    distilled passes with it, one revision further, also where the archive does not know the session.

    ``sessions`` None means all of the source's, and that no memory may be left there afterwards (a merge). ``change``
    moves the memories: each of its edits has the source's project before and the target's after.
    """

    source: ProjectId
    target: Project
    aliases: tuple[str, ...]
    sessions: tuple[SessionId, ...] | None
    change: Change | None


class ProjectRegistry(Protocol):
    """Which folders are one project. Which evidence counts is decided by the caller (``domain/project_identity``)."""

    async def identify(self, sighting: ProjectSighting, *, now: datetime, new_id: ProjectId) -> Project:
        """The project that knows one of the sighting's aliases, or a new one with ``new_id``.

        The strongest known alias decides; aliases not known yet are added to that project, known ones stay where they
        are. The name stays as first seen, the root follows. Safe when two processes see a new project at once: both get
        the same. A read-only store answers the same and keeps nothing.

        A project in ``joins`` that exists comes before all aliases. An alias in ``taken`` counts as known only where
        its stored stamp is the sighting's; otherwise it passes to this project, and its former owner keeps the row,
        with stamp and traits, under the name ``past`` gives. Stamps and last-seen times of the project's own aliases
        follow the sighting (the time at least once a day); traits, unless None, replace those of the git directory's
        alias if it is this project's, together with ``looked``.
        """
        ...

    async def find(self, sighting: ProjectSighting) -> Project | None:
        """The project that ``identify`` would answer with, or None where it would make one. Keeps nothing."""
        ...

    async def projects(self) -> Mapping[ProjectId, Project]:
        """All projects, also those that were merged into others: their memories may come back by an undo."""
        ...

    async def aliases(self, names: Sequence[str] | None = None) -> list[Alias]:
        """The aliases of these names, unknown ones left out; without names all. By first-seen time, then by name."""
        ...

    async def rename(self, project: ProjectId, name: str) -> Project:
        """Give a project another name. Raises NotFound."""
        ...

    async def move(self, move: ProjectMove, *, now: datetime) -> Change | None:
        """Do all of a move, or nothing; a target that does not exist is made. Returns the change as stored.

        A later commit of a change that undoes ``move.change`` takes the aliases and sessions of the move back with it,
        those that are still the target's; and so does one that undoes the undoing. Raises NotFound (no such source),
        Conflict as ``commit`` does, and also where an alias is no longer the source's, or where a merge would leave
        memories behind.
        """
        ...
