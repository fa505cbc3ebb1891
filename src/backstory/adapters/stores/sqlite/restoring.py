"""A backup back into its place: whole or not at all, with others at work on the store meanwhile.

The copy is checked and on the disk before it takes the store's name. Making copies is ``copies.py``.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from backstory.adapters.stores.sqlite.copies import BESIDE, copy_whole, sync, sync_folder, temporary_beside
from backstory.adapters.stores.sqlite.driver_errors import in_our_words
from backstory.adapters.stores.sqlite.opening import check_identity, is_emptied, open_file, open_to_look
from backstory.adapters.stores.sqlite.verification import is_damaged, verify_file
from backstory.domain.evidence_passages import PassageLimits
from backstory.errors import InputError, SchemaTooNew, StoreBusy, StoreDamaged, StoreUnavailable
from backstory.ports.upkeep import Restored, Severity

_RETRY_S = 0.01

Prepare = Callable[[sqlite3.Connection, bool], None]
Meanwhile = Callable[[], None]


def restore(
    store: Path,
    source: Path,
    *,
    stamp: str,
    limits: PassageLimits,
    prepare: Prepare,
    patience: timedelta,
    adapt: Callable[[Path], Meanwhile] | None = None,
) -> Restored:
    """What ``StoreUpkeep.restore`` promises. ``stamp`` ends the name of the replaced store; ``prepare`` brings what is
    derived up to date; other processes' writes are waited for at most ``patience``.

    ``adapt`` may change the checked copy, and says what else has to be done while nobody else can write to the store;
    if that raises, the store stays as it was.
    """
    real = Path(os.path.realpath(store))
    if real.exists() and source.exists() and source.samefile(real):
        raise InputError("the backup is the store itself", field="path")
    with in_our_words(store):
        _check_replaceable(real)
    with in_our_words(source), temporary_beside(real) as copy:
        take_over(source, copy, limits=limits, prepare=prepare)
        with in_our_words(store):
            meanwhile = _nothing if adapt is None else adapt(copy)
            return _bring_in(copy, real, stamp=stamp, patience=patience, meanwhile=meanwhile)


def _check_replaceable(store: Path) -> None:
    """Refuse to put a backup in the place of what is another program's, or newer. A damaged store may be replaced."""
    if not store.exists() or is_emptied(store):
        return
    with contextlib.suppress(sqlite3.DatabaseError), closing(open_to_look(store)) as raw:
        try:
            check_identity(raw, store)
        except SchemaTooNew as error:
            raise SchemaTooNew(f"{error}; or move the file away before you restore") from error


def take_over(source: Path, copy: Path, *, limits: PassageLimits, prepare: Prepare) -> None:
    """Check a backup, copy it, bring the copy's format up to date and check that again. The backup stays as it is."""
    if not source.exists():
        raise StoreUnavailable(f"there is no backup at {source}")
    try:
        with closing(open_to_look(source)) as raw:
            if check_identity(raw, source) == 0:
                raise StoreDamaged(f"{source} is an empty file, not a backup; the store was left as it is")
            copy_whole(raw, copy)
        _check_backup(copy, source, limits=limits, full=False)
        opened = open_file(copy, create=False)
        with closing(opened.raw) as raw:
            prepare(raw, True)
            raw.execute("PRAGMA journal_mode = DELETE")
        _check_backup(copy, source, limits=limits, full=True)
    except sqlite3.DatabaseError as error:
        if not _is_broken(error):
            raise
        raise StoreDamaged(f"the backup {source} cannot be read: {error}; the store was left as it is") from error


def _check_backup(copy: Path, source: Path, *, limits: PassageLimits, full: bool) -> None:
    findings = [found for found in verify_file(copy, full=full, limits=limits) if found.severity is Severity.DAMAGE]
    if is_damaged(findings):
        first = findings[0]
        where = "" if first.where == str(copy) else f" ({first.where})"
        raise StoreDamaged(f"the backup {source} is damaged: {first.what}{where}; the store was left as it is")


def _nothing() -> None:
    """A store that is a file has nothing beside it."""


def _bring_in(copy: Path, store: Path, *, stamp: str, patience: timedelta, meanwhile: Meanwhile) -> Restored:
    with closing(open_to_look(copy)) as raw:
        memories = int(raw.execute("SELECT count(*) FROM memories").fetchone()[0])
        messages = int(raw.execute("SELECT count(*) FROM messages").fetchone()[0])
    kept = free_name(store, stamp) if store.exists() else None
    if kept is None:
        meanwhile()
        _put_in_place(copy, store)
    elif is_emptied(store):
        meanwhile()
        _exchange(copy, store, kept=kept)
    else:
        try:
            _overwrite(copy, store, kept=kept, patience=patience, meanwhile=meanwhile)
        except sqlite3.DatabaseError as error:
            if not _is_broken(error):
                raise
            meanwhile()
            _exchange(copy, store, kept=kept)
    return Restored(memories=memories, messages=messages, kept=kept)


def free_name(store: Path, stamp: str) -> Path:
    """A name beside a store under which it is kept when it is replaced."""
    base = f"{store.name}.before-restore-{stamp}"
    names = [base, *(f"{base}-{number}" for number in range(2, 100))]
    return next(store.with_name(name) for name in names if not store.with_name(name).exists())


def _overwrite(copy: Path, store: Path, *, kept: Path, patience: timedelta, meanwhile: Meanwhile) -> None:
    """Write the copy into the store as one transaction: other processes see it as they see any other write.

    SQLite holds the write lock from the first page on. While it does, the store as it is now is copied to ``kept``, so
    that nothing can be acknowledged between the two; a failure rolls all back.
    """
    until = time.monotonic() + patience.total_seconds()
    held = False

    def step(status: int, remaining: int, total: int) -> None:
        nonlocal held
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            if time.monotonic() >= until:
                raise StoreBusy(f"the store {store} is busy: another process has been writing for too long")
        elif not held:
            held = True
            _keep(store, kept)
            meanwhile()

    _continue_numbers(copy, store)
    with closing(sqlite3.connect(copy, isolation_level=None)) as raw, closing(_connect(store)) as target:
        raw.backup(target, pages=1, progress=step, sleep=_RETRY_S)


def _connect(store: Path) -> sqlite3.Connection:
    raw = sqlite3.connect(store, timeout=0, isolation_level=None)
    try:
        raw.execute("PRAGMA synchronous = FULL")
        raw.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        raw.close()
        raise
    return raw


def _keep(store: Path, kept: Path) -> None:
    with temporary_beside(kept) as partial:
        with closing(open_to_look(store)) as raw:
            copy_whole(raw, partial)
        partial.replace(kept)
    sync_folder(kept.parent)


def _continue_numbers(copy: Path, store: Path) -> None:
    """Let the copy count on from where the store is, so that no number is given twice; and give its vectors numbers
    that no running process has seen, so that what those keep in memory is read anew."""
    with closing(open_to_look(store)) as raw:
        given = dict(raw.execute("SELECT name, seq FROM sqlite_sequence"))
        removals = int(raw.execute("SELECT total FROM vector_removals").fetchone()[0])
        page_bytes = int(raw.execute("PRAGMA page_size").fetchone()[0])
    with closing(sqlite3.connect(copy, isolation_level=None)) as raw:
        raw.execute("BEGIN IMMEDIATE")
        own = dict(raw.execute("SELECT name, seq FROM sqlite_sequence"))
        offset = max(given.get("vectors", 0), own.get("vectors", 0))
        raw.execute("UPDATE vectors SET seq = seq + ?", (offset,))
        raw.execute("UPDATE vector_removals SET total = max(total, ?) + 1", (removals,))
        for name in ("memories", "passages", "vectors"):
            highest = 2 * offset if name == "vectors" else max(given.get(name, 0), own.get(name, 0))
            raw.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            raw.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, highest))
        raw.execute("COMMIT")
        if raw.execute("PRAGMA page_size").fetchone()[0] != page_bytes:
            raw.execute(f"PRAGMA page_size = {page_bytes}")
            raw.execute("VACUUM")


def _is_broken(error: sqlite3.DatabaseError) -> bool:
    return any(sign in str(error) for sign in ("malformed", "not a database", "no such table"))


def _exchange(copy: Path, store: Path, *, kept: Path) -> None:
    """Put the copy in the place of a file that SQLite cannot write into; that one is moved aside with its log.

    The log goes first: beside the copy it would be taken for its own. A process that has the damaged file open goes on
    with it under its new name, and finds the restored one at its next transaction.
    """
    os.link(store, kept)
    for suffix in BESIDE:
        with contextlib.suppress(FileNotFoundError):
            store.with_name(store.name + suffix).rename(kept.with_name(kept.name + suffix))
    _put_in_place(copy, store)


def _put_in_place(copy: Path, store: Path) -> None:
    sync(copy)
    copy.replace(store)
    sync_folder(store.parent)
