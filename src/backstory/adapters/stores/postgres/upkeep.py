"""The StoreUpkeep of Postgres. Verifying, rebuilding, copying and salvaging are in the files it names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backstory.adapters.blocking import run_blocking
from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.opening import Address, check_rights
from backstory.domain.evidence_passages import PassageLimits
from backstory.ports.upkeep import Finding, Progress, Rebuilt, Restored, Salvage


class PostgresUpkeep:
    """The StoreUpkeep over one tenant's rows. A backup is an SQLite store; other tenants' rows are never touched."""

    def __init__(
        self,
        connection: Connection,
        limits: PassageLimits,
        *,
        address: Address,
        making: Callable[[], Connection],
        timeout: timedelta,
    ) -> None:
        """``making`` gives a connection that makes the schema where there is none, so that a backup can be restored
        into an empty database."""
        self._connection = connection
        self._limits = limits
        self._address = address
        self._making = making
        self._timeout = timeout

    async def exists(self) -> bool:
        from backstory.adapters.stores.postgres.verification import is_there

        return await run_blocking(lambda: is_there(self._address, timeout=self._timeout))

    async def try_writing(self) -> None:
        await self._connection.write(check_rights)

    async def verify(self, *, full: bool = False) -> list[Finding]:
        from backstory.adapters.stores.postgres.verification import verify_store

        return await run_blocking(
            lambda: verify_store(self._address, full=full, limits=self._limits, timeout=self._timeout)
        )

    async def rebuild(self, *, progress: Progress | None = None) -> Rebuilt:
        from backstory.adapters.stores.postgres.rebuilding import rebuild

        return await rebuild(self._connection, self._limits, progress)

    async def backup(self, to: Path, *, overwrite: bool = False) -> int:
        from backstory.adapters.stores.postgres.copies import back_up

        return await run_blocking(lambda: back_up(self._address, to, overwrite=overwrite, timeout=self._timeout))

    async def restore(self, source: Path) -> Restored:
        """As the port says. The replaced rows are kept as a file beside ``source``."""
        from backstory.adapters.stores.postgres.copies import checked_backup, replacing
        from backstory.adapters.stores.postgres.importing import drop_indexes, settle

        stamp = datetime.now(UTC).strftime("%Y-%m-%d-%H%M%S")
        connection = self._making()
        opened = checked_backup(source, limits=self._limits)
        copy = await run_blocking(opened.__enter__)
        try:
            await drop_indexes(connection)
            try:
                return await connection.write(replacing(copy, source, stamp=stamp, location=self._address.location))
            finally:
                await settle(connection)
        finally:
            await run_blocking(lambda: opened.__exit__(None, None, None))
            await connection.close()

    async def salvage(self) -> Salvage:
        from backstory.adapters.stores.postgres.salvage import salvage

        return await run_blocking(lambda: salvage(self._address, timeout=self._timeout))
