"""Formats of other products: how their stores are found, read and written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from backstory.domain.conversation import Message, Session
from backstory.domain.digest import SessionDigest
from backstory.domain.interchange import ForeignRecord, Keepsake
from backstory.domain.memory import Memory
from backstory.domain.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundStore:
    """A store of another product: its format, where it is (a path, or the address of a database), and ``label``, its
    path below what was looked through (``""`` for that itself)."""

    format: str
    place: str
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """How much of a hostile or damaged store is read: sizes in bytes, counts in records.

    A file beyond ``file_bytes``, a record beyond ``record_bytes`` or a folder with more than ``files`` files is
    reported and left out, never read in part.
    """

    file_bytes: int = 512 * 1024 * 1024
    record_bytes: int = 8 * 1024 * 1024
    files: int = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A session with its messages, oldest first, and its digest where it has one."""

    session: Session
    messages: Sequence[Message]
    digest: SessionDigest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What one store of another format is to hold. ``label`` is the store it came from, as in ``FoundStore``.

    ``memories`` are oldest first, with every state that a person asked for; ``sessions`` may be read once.
    ``projects`` name those that memories belong to. ``keepsakes`` are of this format and this store. ``kept_back``
    tells in sentences what must not go into this format; it is complete when ``sessions`` are read.
    """

    label: str
    memories: Sequence[Memory]
    sessions: Iterable[Told]
    projects: dict[str, Project]
    keepsakes: Sequence[Keepsake] = ()
    kept_back: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Written:
    """What an export wrote: the files, how many records, and what the format has no place for, in sentences."""

    files: list[Path] = field(default_factory=list)
    memories: int = 0
    sessions: int = 0
    left_out: list[str] = field(default_factory=list)


class FormatReader(Protocol):
    """Reads one product's stores. It never writes, follows no link out of the store, and runs nothing in it."""

    @property
    def name(self) -> str:
        """The word that people type, such as ``ocpg``."""
        ...

    def find(self, place: str) -> Sequence[FoundStore]:
        """The stores of this format at a place and below it, in the order of their labels; none where there are none.
        Looks at names and first bytes only."""
        ...

    def read(self, store: FoundStore, *, limits: ReadLimits) -> Iterator[ForeignRecord]:
        """All of a store: a session before its messages, those before its digest. Whatever cannot be read is an
        ``Unreadable``; raises InputError only where nothing at all can be read."""
        ...


class FormatWriter(Protocol):
    """Writes stores that a product reads. What came from it and was not changed is written as it was."""

    @property
    def name(self) -> str:
        """As of the reader."""
        ...

    def write(self, exported: Exported, target: Path) -> Written:
        """Write one store into the folder or file ``target``; what was there is replaced once the new one is complete.
        Files are readable by their owner only."""
        ...
