"""What an import did, or would do: counts by kind, and sentences about every record that did not simply come in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from backstory.domain.ids import ChangeId
from backstory.domain.project import Project

MOST_TOLD = 1000
"""Sentences of one sort that are kept; the others are counted. A hostile file may hold millions of bad records."""


@dataclass(slots=True)
class Sentences:
    """The first ``MOST_TOLD`` of what is to be told, and how many there are in all."""

    told: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, sentence: str) -> None:
        """Tell one more."""
        self.count += 1
        if len(self.told) < MOST_TOLD:
            self.told.append(sentence)

    def extend(self, other: Sentences) -> None:
        """Tell what another part of the import told."""
        self.told += other.told[: MOST_TOLD - len(self.told)]
        self.count += other.count

    def __iter__(self) -> Iterator[str]:
        return iter(self.told)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> str:
        return self.told[index]


@dataclass(slots=True)
class Counts:
    """How many records of each kind. ``nodes`` are those of summary trees, ``observations`` the logs of sessions, one a
    session; ``history`` counts changes that memories went through elsewhere."""

    memories: int = 0
    sessions: int = 0
    messages: int = 0
    nodes: int = 0
    observations: int = 0
    keepsakes: int = 0
    history: int = 0

    def add(self, other: Counts) -> None:
        """Add each kind."""
        for kind in Counts.__slots__:
            setattr(self, kind, getattr(self, kind) + getattr(other, kind))

    @property
    def records(self) -> int:
        """What people count: memories, sessions, nodes and observation logs. Messages belong to their session."""
        return self.memories + self.sessions + self.nodes + self.observations


@dataclass(slots=True)
class ImportReport:
    """What an import did, or would do.

    ``new`` came in, ``updated`` was older here, ``known`` was here already. ``conflicts`` tells what was left alone
    although the source says something else: it was changed here later, is the user's own word, or a host's own session.
    ``refused`` tells what cannot come in at all, ``remarks`` what people should know although nothing is lost.
    ``forgotten`` counts the known ones that are forgotten here, and not in the source; ``elsewhere`` those that stay in
    another project than the one they were to come into.
    ``changes`` are for ``undo``; ``projects`` those that records were left in and nobody knew here before.
    """

    new: Counts = field(default_factory=Counts)
    updated: Counts = field(default_factory=Counts)
    known: Counts = field(default_factory=Counts)
    conflicts: Sentences = field(default_factory=Sentences)
    refused: Sentences = field(default_factory=Sentences)
    remarks: Sentences = field(default_factory=Sentences)
    forgotten: int = 0
    elsewhere: int = 0
    changes: list[ChangeId] = field(default_factory=list)
    projects: list[Project] = field(default_factory=list)

    @property
    def imported(self) -> int:
        """How many records are new here."""
        return self.new.records

    @property
    def skipped(self) -> int:
        """How many records were here already, as they are in the source or newer."""
        return self.known.records

    def add(self, other: ImportReport) -> None:
        """Add what a part of the import did."""
        self.new.add(other.new)
        self.updated.add(other.updated)
        self.known.add(other.known)
        self.conflicts.extend(other.conflicts)
        self.refused.extend(other.refused)
        self.remarks.extend(other.remarks)
        self.forgotten += other.forgotten
        self.elsewhere += other.elsewhere
        self.changes += other.changes
        known = {(project.name, project.root) for project in self.projects}  # a dry run gives one several ids
        self.projects += [project for project in other.projects if (project.name, project.root) not in known]
