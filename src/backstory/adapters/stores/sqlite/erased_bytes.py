"""The bytes of what was erased: making them leave the file, its log and its copies, and searching for them."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from backstory.adapters.stores.byte_search import ByteSearch, files_in
from backstory.adapters.stores.sqlite.blobs import blob_from_row
from backstory.adapters.stores.sqlite.driver_errors import in_our_words
from backstory.adapters.stores.sqlite.opening import open_to_look
from backstory.domain.blob import content_of
from backstory.ports.erasing import Cleaned, Trace

_BESIDE = ("-wal", "-shm", "-journal")
_PAUSE_S = 0.02

_IN_USE = (
    "another process has the store open and reads what it was: old bytes may still lie in the file and in its log; end "
    "that process and run `backstory erase` once more, without naming anything"
)
BENEATH = (
    "what lies under the file system: snapshots of the disk, copies that a backup program made, and blocks that a "
    "solid-state drive has not yet reused"
)


def clean_file(path: Path, *, copies: bool, patience: timedelta) -> Cleaned:
    """Write the file anew, row by row, empty its log, and see to its copies. No connection of this process may have it
    open."""
    real = Path(os.path.realpath(path))
    until = time.monotonic() + patience.total_seconds()
    with in_our_words(real):
        is_clean = _write_anew(real, until)
        known = copies_of(real)
        if copies:
            for copy in known:
                copy.unlink(missing_ok=True)
            known = []
    remains = (BENEATH,) if is_clean else (_IN_USE, BENEATH)
    return Cleaned(finished=is_clean, remains=remains, copies=tuple(map(str, known)))


def _write_anew(real: Path, until: float) -> bool:
    """Whether nothing but what is kept is left in the file and its log."""
    with closing(sqlite3.connect(real, timeout=0, isolation_level=None)) as raw:
        raw.execute("PRAGMA secure_delete = ON")
        return _insist(lambda: _vacuum(raw), until) and _insist(lambda: _empty_log(raw), until)


def _insist(step: Callable[[], bool], until: float) -> bool:
    while not step():
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE_S)
    return True


def _vacuum(raw: sqlite3.Connection) -> bool:
    try:
        raw.execute("VACUUM")
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            return False
        raise
    return True


def _empty_log(raw: sqlite3.Connection) -> bool:
    """Fold the log into the file and cut it off; False while a reader still needs what is in it."""
    is_busy = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    return not is_busy


def copies_of(store: Path) -> list[Path]:
    """The files beside a store that were made of it: kept by a restore or when a ref went away, or left by a process
    that was killed while it copied; with their logs."""
    own = {store.name, *(store.name + end for end in _BESIDE)}
    named = (
        file
        for file in store.parent.iterdir()
        if file.name.startswith((f"{store.name}.", f".{store.name}.")) and file.name not in own
    )
    return sorted(file for file in named if file.is_file() and not file.is_symlink())


def scan_file(path: Path, search: ByteSearch) -> list[Trace]:
    """Search every file of the store's folder, and what is packed in the store. No connection of this process may have
    it open."""
    real = Path(os.path.realpath(path))
    with in_our_words(real):
        own = {real, *(real.with_name(real.name + end) for end in _BESIDE)}
        counts = ((file, search.count_in_file(file)) for file in files_in(real.parent))
        traces = [Trace(where=str(file), count=count, beside=file not in own) for file, count in counts if count]
        packed = sum(map(search.count_in, _packed(real)))
    return [*traces, *([Trace(where=f"packed attachments in {real}", count=packed)] if packed else [])]


def _packed(real: Path) -> Iterator[bytes]:
    if not real.exists():
        return
    with closing(open_to_look(real)) as raw:
        for row in raw.execute("SELECT hash, size, packing, packed FROM blobs WHERE packing <> 'plain'"):
            try:
                yield content_of(blob_from_row(row))
            except ValueError:
                continue  # nobody can unpack it
