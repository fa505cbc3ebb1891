"""The SQLite backend put together: one file, one connection, an object for each port."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import timedelta
from pathlib import Path

from backstory.adapters.stores.sqlite.connection import BUSY_TIMEOUT, Connection
from backstory.adapters.stores.sqlite.conversation import SqliteConversations
from backstory.adapters.stores.sqlite.digests import SqliteDigests
from backstory.adapters.stores.sqlite.doubts import SqliteDoubts
from backstory.adapters.stores.sqlite.dreams import SqliteDreams
from backstory.adapters.stores.sqlite.erasing import SqliteEraser
from backstory.adapters.stores.sqlite.evidence import SqliteEvidenceIndex
from backstory.adapters.stores.sqlite.keepsakes import SqliteKeepsakes
from backstory.adapters.stores.sqlite.ledger import SqliteLedger
from backstory.adapters.stores.sqlite.memories import SqliteMemories
from backstory.adapters.stores.sqlite.projects import SqliteProjects
from backstory.adapters.stores.sqlite.upkeep import SqliteUpkeep
from backstory.adapters.stores.sqlite.vectors import SqliteVectorIndex
from backstory.adapters.stores.sqlite.words import SqliteTextIndex, is_stale, reindex_if_stale
from backstory.domain.evidence_passages import PassageLimits
from backstory.domain.text import normalise
from backstory.ports.backend import Backend


def open_sqlite(
    path: Path,
    *,
    create: bool = True,
    busy_timeout: timedelta = BUSY_TIMEOUT,
    passages: PassageLimits | None = None,
) -> Backend:
    """A backend over the file at ``path``. The file is opened, and made if ``create``, at the first use.

    A write waits at most ``busy_timeout`` for other processes' writes. ``passages`` says how much of each part of a
    message can be searched.
    """
    limits = passages or PassageLimits()
    connection = Connection(path, on_open=_prepare, create=create, busy_timeout=busy_timeout)
    return Backend(
        memories=SqliteMemories(connection),
        text=SqliteTextIndex(connection),
        vectors=SqliteVectorIndex(connection),
        conversations=SqliteConversations(connection, limits),
        evidence=SqliteEvidenceIndex(connection, limits),
        projects=SqliteProjects(connection),
        ledger=SqliteLedger(connection),
        digests=SqliteDigests(connection),
        dreams=SqliteDreams(connection),
        doubts=SqliteDoubts(connection),
        keepsakes=SqliteKeepsakes(connection),
        upkeep=SqliteUpkeep(connection, limits, prepare=_prepare, patience=busy_timeout),
        eraser=SqliteEraser(connection, limits, patience=busy_timeout),
    )


def _prepare(raw: sqlite3.Connection, writable: bool) -> None:
    raw.create_function("backstory_normalise", 1, normalise, deterministic=True)
    if writable and is_stale(raw):
        raw.execute("BEGIN IMMEDIATE")
        try:
            reindex_if_stale(raw)
            raw.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                raw.execute("ROLLBACK")
            raise
