"""The StoreUpkeep of SQLite. Verifying, rebuilding, copying and salvaging are in the files it names."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.adapters.blocking import run_blocking
from backstory.adapters.stores.sqlite.connection import Connection
from backstory.adapters.stores.sqlite.opening import is_there
from backstory.domain.evidence_passages import PassageLimits

if TYPE_CHECKING:
    from backstory.ports.upkeep import Finding, Progress, Rebuilt, Restored, Salvage


class SqliteUpkeep:
    """The StoreUpkeep over one file. Each call but ``rebuild`` has connections of its own for as long as it takes."""

    def __init__(
        self,
        connection: Connection,
        limits: PassageLimits,
        *,
        prepare: Callable[[sqlite3.Connection, bool], None],
        patience: timedelta,
    ) -> None:
        self._connection = connection
        self._limits = limits
        self._prepare = prepare
        self._patience = patience

    async def exists(self) -> bool:
        return await run_blocking(lambda: is_there(self._connection.path))

    async def try_writing(self) -> None:
        await self._connection.write(lambda raw: None)

    async def verify(self, *, full: bool = False) -> list[Finding]:
        from backstory.adapters.stores.sqlite.verification import verify_file

        return await run_blocking(lambda: verify_file(self._connection.path, full=full, limits=self._limits))

    async def rebuild(self, *, progress: Progress | None = None) -> Rebuilt:
        from backstory.adapters.stores.sqlite.rebuilding import rebuild

        return await rebuild(self._connection, self._limits, progress)

    async def backup(self, to: Path, *, overwrite: bool = False) -> int:
        from backstory.adapters.stores.sqlite.copies import back_up

        return await run_blocking(lambda: back_up(self._connection.path, to, overwrite=overwrite))

    async def restore(self, source: Path) -> Restored:
        from backstory.adapters.stores.sqlite.restoring import restore

        return await run_blocking(
            lambda: restore(
                self._connection.path,
                source,
                stamp=datetime.now(UTC).strftime("%Y-%m-%d-%H%M%S"),
                limits=self._limits,
                prepare=self._prepare,
                patience=self._patience,
            )
        )

    async def salvage(self) -> Salvage:
        from backstory.adapters.stores.sqlite.salvage import salvage

        await self._connection.close()  # a copy is made, and closing a file drops this process's locks on it
        return await run_blocking(lambda: salvage(self._connection.path))
