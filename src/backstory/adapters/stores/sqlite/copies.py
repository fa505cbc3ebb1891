"""A store as one file, out and back in: whole or not at all, with others at work on the store meanwhile.

Writing and bringing back take the same three steps: a copy beside its target, checked and on the disk; then its name.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from backstory.adapters.stores.sqlite.driver_errors import in_our_words
from backstory.adapters.stores.sqlite.opening import check_identity, is_emptied, open_file, open_to_look
from backstory.adapters.stores.sqlite.verification import is_damaged, verify_file
from backstory.domain.evidence_passages import PassageLimits
from backstory.errors import InputError, SchemaTooNew, StoreBusy, StoreDamaged, StoreUnavailable
from backstory.ports.upkeep import Restored, Severity

_BESIDE = ("-wal", "-shm", "-journal")
_RETRY_S = 0.01

Prepare = Callable[[sqlite3.Connection, bool], None]
Meanwhile = Callable[[], None]


def back_up(store: Path, to: Path, *, overwrite: bool) -> int:
    """What ``StoreUpkeep.backup`` promises."""
    target = Path(os.path.realpath(to))
    check_target(store, target, overwrite=overwrite)
    with in_our_words(store), placing(target), temporary_beside(target) as partial:
        with closing(open_to_look(store)) as raw:
            check_identity(raw, store)
            _copy_whole(raw, partial)
        check_copy(partial, of=store)
        check_target(store, target, overwrite=overwrite)
        partial.replace(target)
        sync_folder(target.parent)
    return target.stat().st_size


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


# --- a copy -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def placing(target: Path) -> Iterator[None]:
    """Say of a backup, not of the store, what the system does not allow."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"the backup {target} cannot be written: {error.strerror or error}") from error


@contextlib.contextmanager
def temporary_beside(target: Path) -> Iterator[Path]:
    """A name beside ``target`` for a file that only its owner may read; whatever is there at the end is removed."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    partial.unlink(missing_ok=True)
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    try:
        yield partial
    finally:
        for suffix in ("", *_BESIDE):
            partial.with_name(partial.name + suffix).unlink(missing_ok=True)


def _copy_whole(raw: sqlite3.Connection, to: Path) -> None:
    """Copy all pages as of one moment, and leave them in one file that needs no log beside it."""
    with closing(sqlite3.connect(to, isolation_level=None)) as copy:
        raw.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    sync(to)


def check_copy(copy: Path, *, of: object) -> None:
    """Raise StoreDamaged where SQLite finds a fault in a copy."""
    with closing(open_to_look(copy)) as raw:
        said = [str(row[0]) for row in raw.execute("PRAGMA integrity_check(3)")]
    if said != ["ok"]:
        raise StoreDamaged(
            f"the store {of} is damaged, so no backup was made: {'; '.join(said)}; `backstory check` says more"
        )


def check_target(store: Path | None, target: Path, *, overwrite: bool) -> None:
    """Raise InputError where a backup may not be written; ``store`` is the file that is copied, if it is one."""
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file in it", field="path")
    if any(target.name.endswith(end) and _without(target, end).exists() for end in _BESIDE):
        raise InputError(f"{target} is where SQLite keeps the log of the file beside it", field="path")
    if not target.exists():
        return
    if not target.is_file():
        raise InputError(f"{target} is no file that a backup could replace", field="path")
    if store is not None and store.exists() and target.samefile(store):
        raise InputError("a backup cannot take the place of the store itself", field="path")
    if not overwrite:
        raise InputError(f"{target} is there already", field="path", hint="name another file, or add --force")
    if target.with_name(f"{target.name}-wal").exists():
        raise InputError(f"{target} is a store in use: there is a log beside it", field="path")


def _without(file: Path, end: str) -> Path:
    return file.with_name(file.name.removesuffix(end) or file.name)


def sync(file: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


sync_folder = sync

# --- back in ----------------------------------------------------------------------------------------------------------


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
            _copy_whole(raw, copy)
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
            _copy_whole(raw, partial)
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
    for suffix in _BESIDE:
        with contextlib.suppress(FileNotFoundError):
            store.with_name(store.name + suffix).rename(kept.with_name(kept.name + suffix))
    _put_in_place(copy, store)


def _put_in_place(copy: Path, store: Path) -> None:
    sync(copy)
    copy.replace(store)
    sync_folder(store.parent)
