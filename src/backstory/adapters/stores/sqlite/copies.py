"""A store as one file: whole or not at all, with others at work on the store meanwhile.

Writing one and bringing it back (``restoring.py``) take the same three steps: a copy beside its target, checked and on
the disk; then its name.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from backstory.adapters.stores.sqlite.driver_errors import in_our_words
from backstory.adapters.stores.sqlite.opening import check_identity, open_to_look
from backstory.errors import InputError, StoreDamaged, StoreUnavailable

BESIDE = ("-wal", "-shm", "-journal")


def back_up(store: Path, to: Path, *, overwrite: bool) -> int:
    """What ``StoreUpkeep.backup`` promises."""
    target = Path(os.path.realpath(to))
    check_target(store, target, overwrite=overwrite)
    with in_our_words(store), placing(target), temporary_beside(target) as partial:
        with closing(open_to_look(store)) as raw:
            check_identity(raw, store)
            copy_whole(raw, partial)
        check_copy(partial, of=store)
        check_target(store, target, overwrite=overwrite)
        partial.replace(target)
        sync_folder(target.parent)
    return target.stat().st_size


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
        for suffix in ("", *BESIDE):
            partial.with_name(partial.name + suffix).unlink(missing_ok=True)


def copy_whole(raw: sqlite3.Connection, to: Path) -> None:
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
    if any(target.name.endswith(end) and _without(target, end).exists() for end in BESIDE):
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
