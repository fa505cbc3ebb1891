"""Taking texts out of a store for good, and proving that they are gone. Backends are written from this page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from backstory.domain.erasure import Rewrite
from backstory.domain.ids import ChangeId, MemoryId

Progress = Callable[[int], None]
"""Told now and then how many more texts were looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One text that would be rewritten, and how: in which place (``memories``, ``history``, ``messages``, ...), and in
    which row. ``where`` is the id of the row, or of what it belongs to."""

    place: str
    where: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What is to go. Of ``memories`` nothing is left but ids, numbers and times; every other text that is kept becomes
    what ``rewrite`` makes of it. ``id`` names the change in the history that tells of it, and the receipt.

    ``reason`` is what the history says. It holds nothing of what goes.
    """

    id: ChangeId
    at: datetime
    memories: tuple[MemoryId, ...]
    rewrite: Rewrite
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Bytes of a text that were found after all: in which file, object or table, and how often."""

    where: str
    count: int
    beside: bool = False
    """Whether it is not the store itself: a copy of it, another file in its folder, or somebody's own git object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """That something was erased, without a word of it. ``places`` counts what was rewritten. ``remains`` says in
    sentences where it may still be. ``traces`` is what a search of the raw bytes found, None where there was none:
    after a crash nobody knows any more what to search for. ``forms`` says in words in which forms of the text that was.

    ``finished`` is False while old bytes may still lie about in the store's own files.
    """

    id: ChangeId
    at: datetime
    reason: str
    memories: tuple[MemoryId, ...]
    places: Mapping[str, int]
    remains: tuple[str, ...] = ()
    traces: tuple[Trace, ...] | None = None
    forms: tuple[str, ...] = ()
    finished: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """What became of the bytes of what was erased. ``finished`` tells that none are left in the store's own files."""

    finished: bool
    remains: tuple[str, ...] = ()
    copies: tuple[str, ...] = field(default=())
    """Copies of the store that are known and still there; they hold what was erased."""


class Eraser(Protocol):
    """Erasing in one store. Killed at any moment, everything of an erasure is still there or all of it is gone from
    every row; ``clean`` can then be called again. Errors: StoreUnavailable and StoreBusy as in every port."""

    async def look(self, rewrite: Rewrite, told: Callable[[Found], None], *, progress: Progress | None = None) -> None:
        """Tell every text that ``rewrite`` would change, wherever it is kept. Changes nothing.

        Reads everything that is kept: about 10 s for 100 MB where ``rewrite`` costs nothing.
        """
        ...

    async def erase(self, erasure: Erasure, *, progress: Progress | None = None) -> Mapping[str, int]:
        """Take it out of rows, indexes, vectors, derived texts and history in one transaction; how many of each place
        were rewritten, empty where nothing was.

        A receipt that is not finished is kept in the same transaction. The history has one more change, which masks
        every memory that was rewritten, so that whoever still holds an earlier state of it cannot write that back.
        Frozen texts that showed one are withdrawn. Vectors and passages of what was rewritten go.
        """
        ...

    async def clean(self, *, copies: bool) -> Cleaned:
        """Make the old bytes leave the store's files, whichever erasure they are of; with ``copies`` remove the copies
        of the store that are known, too. May be called again at any time. Waits for others a bounded time, and says
        then what is left to do."""
        ...

    async def scan(self, texts: Sequence[str]) -> list[Trace]:
        """Search all bytes of the store for texts: its files as they lie on the disk, its objects unpacked, its rows as
        they are read. Nothing is decided by words or rules here: what is not found is not there, in the forms of
        ``domain.erasure``. Empty where nothing is found."""
        ...

    async def receipts(self, *, limit: int) -> list[Receipt]:
        """What was erased, newest first."""
        ...

    async def note(self, receipt: Receipt) -> None:
        """Keep a receipt in place of the one with its id."""
        ...
