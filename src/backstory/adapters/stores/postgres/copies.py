"""A tenant's store as one file, out and back in. The file is an SQLite store: any Backstory restores it into any store,
and checks it as its own."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from backstory.adapters.stores.postgres.driver_errors import in_our_words
from backstory.adapters.stores.postgres.filling import fill, is_empty
from backstory.adapters.stores.postgres.looking import LONG, Raw, looking, rows_of
from backstory.adapters.stores.postgres.opening import Address
from backstory.adapters.stores.postgres.passages import lock_evidence
from backstory.adapters.stores.postgres.tables import TABLES
from backstory.adapters.stores.postgres.tenancy import TENANT, lock_tenant
from backstory.adapters.stores.postgres.verification import check_present
from backstory.adapters.stores.sqlite.copies import (
    check_copy,
    check_target,
    placing,
    sync,
    sync_folder,
    temporary_beside,
)
from backstory.adapters.stores.sqlite.driver_errors import in_our_words as in_our_words_of_files
from backstory.adapters.stores.sqlite.opening import open_file, open_to_look
from backstory.adapters.stores.sqlite.restoring import free_name, take_over
from backstory.adapters.stores.sqlite.store import _prepare
from backstory.adapters.stores.sqlite.words import reindex_if_stale
from backstory.domain.evidence_passages import PassageLimits
from backstory.errors import BackstoryError
from backstory.ports.upkeep import Restored


def back_up(address: Address, to: Path, *, overwrite: bool, timeout: timedelta) -> int:
    """What ``StoreUpkeep.backup`` promises."""
    target = Path(os.path.realpath(to))
    check_target(None, target, overwrite=overwrite)
    with in_our_words(), looking(address, timeout=timeout) as raw:
        check_present(raw, address)
        _write(raw, target, location=address.location, overwrite=overwrite)
    return target.stat().st_size


@contextlib.contextmanager
def checked_backup(source: Path, *, limits: PassageLimits) -> Iterator[Path]:
    """A copy of a backup that was found whole, brought to this version's format; beside it while it is needed."""
    with in_our_words_of_files(source), temporary_beside(Path(os.path.realpath(source))) as copy:
        take_over(source, copy, limits=limits, prepare=_prepare)
        yield copy


def replacing(copy: Path, source: Path, *, stamp: str, location: str) -> Callable[[Raw], Restored]:
    """What to do in one write transaction, to have a tenant's rows be those of ``copy``. It may run again.

    The rows that it replaces are written beside ``source`` first, all that this transaction sees of them. What others
    write meanwhile stays: memories and evidence wait for the tenant's locks, the rest is not seen, so not removed.
    """
    kept = free_name(source, stamp)

    def work(raw: Raw) -> Restored:
        raw.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        raw.execute(LONG)
        lock_tenant(raw)
        lock_evidence(raw)
        is_new = is_empty(raw)
        try:
            if not is_new:
                _write(raw, kept, location=location, overwrite=True)
            with closing(open_to_look(copy)) as file:
                memories, messages = fill(raw, file)
        except BackstoryError:
            kept.unlink(missing_ok=True)
            raise
        return Restored(memories=memories, messages=messages, kept=None if is_new else kept)

    return work


def _write(raw: Raw, target: Path, *, location: str, overwrite: bool) -> None:
    """Write what a transaction sees of its tenant to a file, which has its name when all is on the disk and whole."""
    with in_our_words_of_files(target), placing(target), temporary_beside(target) as partial:
        with closing(open_file(partial, create=False).raw) as file:
            file.execute("PRAGMA synchronous = OFF")  # nobody needs half of it
            file.execute("PRAGMA foreign_keys = OFF")  # what is wrong on the server is not hidden by the copy
            file.execute("BEGIN")
            _copy_all(raw, file)
            file.execute("COMMIT")
            file.execute("PRAGMA journal_mode = DELETE")
        sync(partial)
        check_copy(partial, of=location)
        check_target(None, target, overwrite=overwrite)
        partial.replace(target)
        sync_folder(target.parent)


def _copy_all(raw: Raw, file: sqlite3.Connection) -> None:
    for table in TABLES:
        statement = f"SELECT {table.read} FROM {table.name} WHERE tenant = {TENANT} ORDER BY {table.key}"
        _copy(raw, file, f"{table.name} ({table.names})", statement, at_once=table.at_once)
    _copy_passages(raw, file)
    reindex_if_stale(file)
    given = raw.execute(f"SELECT last_n FROM tenants WHERE tenant = {TENANT}").fetchone() or (0,)
    file.execute("DELETE FROM sqlite_sequence WHERE name = 'memories'")
    file.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('memories', ?)", given)


def _copy(raw: Raw, file: sqlite3.Connection, into: str, statement: str, *, at_once: int = 500) -> None:
    for rows in rows_of(raw, statement, at_once=at_once):
        marks = ", ".join("?" * len(rows[0]))
        file.executemany(f"INSERT INTO {into} VALUES ({marks})", rows)


def _copy_passages(raw: Raw, file: sqlite3.Connection) -> None:
    """Passages with their words and vectors, so that nothing has to be embedded again."""
    columns = "n, part, position, message, session, created_us, text"
    place = f"WHERE tenant = {TENANT} ORDER BY n"
    _copy(raw, file, f"passages ({columns})", f"SELECT {columns} FROM passages {place}")
    _copy(raw, file, "passage_words (rowid, tokens)", f"SELECT n, tokens FROM passages {place}")
    vectors = "n, model, dimension, vector"
    _copy(raw, file, f"passage_vectors ({vectors})", f"SELECT {vectors} FROM passage_vectors {place}")
    words = f"SELECT n, model, words FROM passage_vectors WHERE tenant = {TENANT} AND words IS NOT NULL ORDER BY n"
    _copy(raw, file, "passage_word_vectors (n, model, words)", words)
    statement = f"SELECT documents, tokens, analyser FROM passage_statistics WHERE tenant = {TENANT}"
    sums: Sequence[Any] | None = raw.execute(statement).fetchone()
    if sums is not None:
        file.execute("UPDATE passage_statistics SET documents = ?, tokens = ?, analyser = ?", tuple(sums))
