"""The Eraser of SQLite. Its rows, its bytes and its receipts are in the files that it names."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from backstory.adapters.blocking import run_blocking
from backstory.adapters.stores.sqlite.connection import Connection
from backstory.domain.evidence_passages import PassageLimits

if TYPE_CHECKING:
    from backstory.domain.erasure import Rewrite
    from backstory.ports.erasing import Cleaned, Erasure, Found, Progress, Receipt, Trace


class SqliteEraser:
    """The Eraser over one file."""

    def __init__(self, connection: Connection, limits: PassageLimits, *, patience: timedelta) -> None:
        """``patience`` is how long ``clean`` waits for other processes."""
        self._connection = connection
        self._limits = limits
        self._patience = patience

    async def look(self, rewrite: Rewrite, told: Callable[[Found], None], *, progress: Progress | None = None) -> None:
        from backstory.adapters.stores.sqlite.erased_rows import look_at

        def work(raw: sqlite3.Connection) -> None:
            for found in look_at(raw, rewrite, progress or _unheard):
                told(found)

        await self._connection.read(work)

    async def erase(self, erasure: Erasure, *, progress: Progress | None = None) -> Mapping[str, int]:
        from backstory.adapters.stores.sqlite.erased_rows import erase

        def work(raw: sqlite3.Connection) -> dict[str, int]:
            return erase(raw, erasure, self._limits, progress or _unheard)

        return await self._connection.look_then_write(work)

    async def clean(self, *, copies: bool) -> Cleaned:
        from backstory.adapters.stores.sqlite.erased_bytes import clean_file

        await self._connection.close()  # nothing of ours may read an old state of the file
        return await run_blocking(lambda: clean_file(self._connection.path, copies=copies, patience=self._patience))

    async def scan(self, texts: Sequence[str]) -> list[Trace]:
        from backstory.adapters.stores.byte_search import ByteSearch
        from backstory.adapters.stores.sqlite.erased_bytes import scan_file

        await self._connection.close()  # the file is read, and closing it drops this process's locks on it
        return await run_blocking(lambda: scan_file(self._connection.path, ByteSearch(texts)))

    async def receipts(self, *, limit: int) -> list[Receipt]:
        from backstory.adapters.stores.sqlite.receipts import receipts

        return await self._connection.read(lambda raw: receipts(raw, limit))

    async def note(self, receipt: Receipt) -> None:
        from backstory.adapters.stores.sqlite.receipts import put_receipt

        await self._connection.write(lambda raw: put_receipt(raw, receipt))


def _unheard(count: int) -> None:
    """Nobody wants to know how far it is."""
