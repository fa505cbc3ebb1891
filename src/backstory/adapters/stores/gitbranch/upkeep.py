"""The StoreUpkeep of the git store: the ref and the file beside it as one. Verifying and restoring the ref are in the
files it names; the file is verified, copied and salvaged as any SQLite store."""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backstory.adapters.blocking import run_blocking
from backstory.adapters.stores.gitbranch import index
from backstory.adapters.stores.gitbranch.connection import GitConnection
from backstory.adapters.stores.gitbranch.git import Git
from backstory.adapters.stores.gitbranch.reader import Reader
from backstory.adapters.stores.gitbranch.reference import Reference
from backstory.domain.evidence_passages import PassageLimits
from backstory.errors import StoreDamaged, StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.upkeep import Finding, Progress, Rebuilt, Restored, Salvage

log = logging.getLogger(__name__)


class GitUpkeep:
    """The StoreUpkeep over a ref and its file.

    A backup is the file: it holds every memory of the ref and its history too, but not the ref's older commits.
    """

    def __init__(
        self, connection: GitConnection, beside: Backend, limits: PassageLimits, *, patience: timedelta
    ) -> None:
        assert beside.upkeep is not None  # an SQLite store has one
        self._connection = connection
        self._beside = beside.upkeep
        self._limits = limits
        self._patience = patience

    async def exists(self) -> bool:
        return await self._beside.exists() or await run_blocking(self._has_ref)

    def _has_ref(self) -> bool:
        git = Git(self._connection.git.folder)
        return bool(git.run("for-each-ref", "--format=%(objectname)", self._connection.reference.name))

    async def try_writing(self) -> None:
        """The file as any; of the repository, whether its folders may be written."""
        folder = self._connection.git.common_dir
        for place in (folder, folder / "objects", folder / "refs"):
            if not os.access(place, os.W_OK):
                raise StoreUnavailable(f"{place} is read-only: memories are recalled, but none can be added")
        await self._beside.try_writing()

    async def verify(self, *, full: bool = False) -> list[Finding]:
        from backstory.adapters.stores.gitbranch.verification import verify_git

        connection = self._connection
        return await run_blocking(
            lambda: verify_git(
                connection.git.folder, connection.reference.name, connection.path, full=full, limits=self._limits
            )
        )

    async def rebuild(self, *, progress: Progress | None = None) -> Rebuilt:
        """As the port says; all that stands on the ref is read from it anew."""
        reread = await self._connection.write(self._read_anew)
        rebuilt = await self._beside.rebuild(progress=progress)
        return Rebuilt(memories=rebuilt.memories, passages=rebuilt.passages, corrected=rebuilt.corrected + reread)

    def _read_anew(self, raw: sqlite3.Connection) -> int:
        """Read the ref as if it never was; how many memories and changes were otherwise."""
        before = _decisions(raw)
        for reference in self._connection.references:
            index.set_tip(raw, reference.name, None)
        self._connection.catch_up(raw)
        return len(before ^ _decisions(raw))

    async def backup(self, to: Path, *, overwrite: bool = False) -> int:
        """As the port says. The ref is read first; where that cannot be, the backup is of what was read before."""
        try:
            if await self.exists():
                await self._connection.read(lambda raw: None)
        except (StoreUnavailable, StoreDamaged) as error:
            log.warning("event=ref_not_read reason=%r", str(error))
        return await self._beside.backup(to, overwrite=overwrite)

    async def restore(self, source: Path) -> Restored:
        """As the port says. The memories come back as one new commit on the ref, which every clone follows; memories
        that were added since are gone from the store, not from the ref's past."""
        from backstory.adapters.stores.gitbranch.restoring import adapting
        from backstory.adapters.stores.sqlite.opening import open_to_look
        from backstory.adapters.stores.sqlite.restoring import restore
        from backstory.adapters.stores.sqlite.store import _prepare

        connection = self._connection
        await connection.close()

        def work() -> Restored:
            git = Git(connection.git.folder)
            with closing(Reader(git)) as reader:
                restored = restore(
                    connection.path,
                    source,
                    stamp=datetime.now(UTC).strftime("%Y-%m-%d-%H%M%S"),
                    limits=self._limits,
                    prepare=_prepare,
                    patience=self._patience,
                    adapt=adapting(Reference(git, reader, connection.reference.name), connection.alias),
                )
            with closing(open_to_look(connection.path)) as raw:
                return replace(restored, unshared=index.count_unshared(raw))

        return await run_blocking(work)

    async def salvage(self) -> Salvage:
        await self._connection.close()
        return await self._beside.salvage()


def _decisions(raw: sqlite3.Connection) -> set[tuple[object, ...]]:
    """What a reading of the ref can alter, so that two states can be compared."""
    memories = "SELECT id, n, content, status, origin, sensitivity, area, issue, kind FROM memories"
    changes = "SELECT e.change, e.n, e.after FROM change_edits e"
    return {*raw.execute(memories), *raw.execute(changes)}
