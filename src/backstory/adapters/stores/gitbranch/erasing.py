"""The Eraser of the git store: the file beside the ref as any SQLite store, and the ref's whole history with it.

The history is in ``rewriting.py``, its files in ``erased_files.py``, the old objects in ``erased_objects.py``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from backstory.adapters.blocking import run_blocking
from backstory.adapters.stores.gitbranch.connection import GitConnection
from backstory.adapters.stores.gitbranch.git import in_our_words
from backstory.adapters.stores.sqlite.connection import Connection
from backstory.domain.evidence_passages import PassageLimits
from backstory.ports.backend import Backend

if TYPE_CHECKING:
    from backstory.domain.erasure import Rewrite
    from backstory.ports.erasing import Cleaned, Eraser, Erasure, Found, Progress, Receipt, Trace


class GitEraser:
    """The Eraser over a ref and its file.

    The file is committed first, with what becomes of each commit; whoever meets an old one as the tip of the ref, after
    a crash in between, moves the ref on.
    """

    def __init__(
        self, connection: GitConnection, beside: Backend, limits: PassageLimits, *, patience: timedelta
    ) -> None:
        """``beside`` is the file's backend, which knows nothing of the ref."""
        self._connection = connection
        self._beside = beside
        self._limits = limits
        self._patience = patience

    async def look(self, rewrite: Rewrite, told: Callable[[Found], None], *, progress: Progress | None = None) -> None:
        from backstory.adapters.stores.gitbranch.erased_history import look_at_history

        await self._connection.read(lambda raw: None)  # brings the file to where the ref is
        await self._file.look(rewrite, told, progress=progress)
        with in_our_words():
            await run_blocking(lambda: look_at_history(self._connection.reference, rewrite, told))

    async def erase(self, erasure: Erasure, *, progress: Progress | None = None) -> Mapping[str, int]:
        from backstory.adapters.stores.gitbranch.erased_history import erase_with_history

        connection = self._connection

        def work(raw: sqlite3.Connection) -> dict[str, int]:
            connection.catch_up(raw)
            project = connection.own_project(raw)
            done = progress or _unheard
            return erase_with_history(raw, connection.reference, erasure, self._limits, done, project=project)

        with in_our_words():
            counts = await Connection.write(connection, work)
        await connection.write(lambda raw: None)  # moves the ref on
        return counts

    async def clean(self, *, copies: bool) -> Cleaned:
        from dataclasses import replace

        from backstory.adapters.stores.gitbranch.erased_history import clean_history

        connection = self._connection
        with in_our_words():
            await Connection.write(connection, connection.catch_up)
            remains, is_clean = await Connection.write(connection, lambda raw: clean_history(raw, connection.reference))
        await connection.close()
        cleaned = await self._file.clean(copies=copies)
        return replace(cleaned, finished=cleaned.finished and is_clean, remains=(*remains, *cleaned.remains))

    async def scan(self, texts: Sequence[str]) -> list[Trace]:
        from backstory.adapters.stores.byte_search import ByteSearch
        from backstory.adapters.stores.gitbranch.erased_objects import search_repository

        await self._connection.close()
        traces = await self._file.scan(texts)
        reference = self._connection.reference
        with in_our_words():
            found = await run_blocking(lambda: search_repository(reference.git, ByteSearch(texts), ref=reference.name))
        return [*traces, *found]

    async def receipts(self, *, limit: int) -> list[Receipt]:
        return await self._file.receipts(limit=limit)

    async def note(self, receipt: Receipt) -> None:
        await self._file.note(receipt)

    @property
    def _file(self) -> Eraser:
        assert self._beside.eraser is not None  # an SQLite store has one
        return self._beside.eraser


def _unheard(count: int) -> None:
    """Nobody wants to know how far it is."""
