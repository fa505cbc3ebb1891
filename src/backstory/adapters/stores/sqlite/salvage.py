"""Reading what can still be read of a damaged file. Nothing is written, and nothing stops the rest."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from backstory.adapters.stores.sqlite.blobs import blob_from_row, refs_of_message
from backstory.adapters.stores.sqlite.conversation import SESSION, session_from_row
from backstory.adapters.stores.sqlite.driver_errors import in_our_words
from backstory.adapters.stores.sqlite.opening import check_identity, open_to_look
from backstory.adapters.stores.sqlite.rows import COLUMNS, from_us, from_us_or_none, memory_from_image, memory_from_row
from backstory.adapters.stores.sqlite.verified_evidence import blob_trouble
from backstory.domain.blob import Blob
from backstory.domain.conversation import BlobRef, Message, Part, Role, Session
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.domain.memory import Memory
from backstory.domain.project import Project
from backstory.errors import StoreDamaged
from backstory.ports.upkeep import Salvage

_HEADER_BYTES = 100
_FIRST_WITH_BLOBS = 8  # of the format's versions
_FARTHEST = 1 << 40  # rows beyond an unreadable one are looked for in steps that double, up to this number

_Row = tuple[Any, ...]  # Any: a damaged file may hold any value in any column


def salvage(path: Path) -> Salvage:
    """What ``StoreUpkeep.salvage`` promises. No connection of this process may have the file open: a copy is made."""
    with in_our_words(path), tempfile.TemporaryDirectory(prefix="backstory-") as folder:
        copy = _copy(path, Path(folder))
        try:
            with closing(open_to_look(copy)) as raw:
                check_identity(raw, path)
                return _read(raw)
        except (sqlite3.DatabaseError, StoreDamaged) as error:
            return Salvage(lost=[f"all of {path}: {error}"])
        except UnicodeDecodeError:  # of SQLite's own words: it names what stands in a damaged page
            return Salvage(lost=[f"all of {path}: the names of its tables are not text any more"])


def _copy(path: Path, folder: Path) -> Path:
    """The file and its log, as long as its first page says it was: SQLite reads nothing of one that was cut off."""
    copy = folder / "memory.db"
    shutil.copyfile(path, copy)
    log = path.with_name(f"{path.name}-wal")
    if log.exists():
        shutil.copyfile(log, copy.with_name(f"{copy.name}-wal"))
    with copy.open("r+b") as file:
        header = file.read(_HEADER_BYTES)
        page_bytes = int.from_bytes(header[16:18], "big")
        length = (65536 if page_bytes == 1 else page_bytes) * int.from_bytes(header[28:32], "big")
        if header.startswith(b"SQLite format 3\0") and copy.stat().st_size < length < 1 << 40:
            file.truncate(length)
    return copy


def _read(raw: sqlite3.Connection) -> Salvage:
    lost: list[str] = []
    memories = list(_memories(raw, lost))
    projects = {
        ProjectId(str(row[1])): Project(id=ProjectId(str(row[1])), name=str(row[2]), root=str(row[3]))
        for row in _rows(raw, "rowid, id, name, root", "projects", "rowid", lost)
    }
    return Salvage(
        memories=memories,
        projects=projects,
        sessions=list(_sessions(raw, lost)),
        messages=list(_messages(raw, lost)),
        blobs=list(_blobs(raw, lost)),
        lost=lost,
    )


def _rows(raw: sqlite3.Connection, columns: str, table: str, key: str, lost: list[str]) -> Iterator[_Row]:
    """The rows of a table in the order of ``key``, its first column; what cannot be read is stepped over."""
    last, step, told = 0, 1, False
    while last < _FARTHEST:
        try:
            cursor = raw.execute(f"SELECT {columns} FROM {table} WHERE {key} > ? ORDER BY {key}", (last,))
            for row in cursor:
                last, step = int(row[0]), 1
                yield row
        except (sqlite3.DatabaseError, ValueError) as error:
            if not told:
                lost.append(f"rows of {table.partition(' ')[0]} after {last}: {error}")
            told = True
            last, step = last + step, 2 * step
        else:
            return


def _memories(raw: sqlite3.Connection, lost: list[str]) -> Iterator[Memory]:
    seen: set[int] = set()
    for row in _rows(raw, COLUMNS, "memories m", "m.n", lost):
        seen.add(row[0])
        try:
            yield memory_from_row(row, _tags(raw, row[0]))
        except StoreDamaged as error:
            yield from _from_history(raw, row[0], lost, str(error))
    for n in sorted(_numbers_in_history(raw) - seen):
        yield from _from_history(raw, n, lost, f"memory #{n} is gone from its table")


def _tags(raw: sqlite3.Connection, n: int) -> tuple[str, ...]:
    try:
        rows = raw.execute("SELECT tag FROM memory_tags WHERE n = ? ORDER BY position", (n,)).fetchall()
    except sqlite3.DatabaseError:
        return ()
    return tuple(str(tag) for (tag,) in rows)


def _numbers_in_history(raw: sqlite3.Connection) -> set[int]:
    numbers: set[int] = set()
    with contextlib.suppress(sqlite3.DatabaseError):  # as far as it goes
        for (n,) in raw.execute("SELECT DISTINCT n FROM change_edits"):
            numbers.add(int(n))
    return numbers


def _from_history(raw: sqlite3.Connection, n: int, lost: list[str], why: str) -> Iterator[Memory]:
    """The last state of a memory that its history still tells."""
    states: list[Memory] = []
    with contextlib.suppress(sqlite3.DatabaseError):
        for (after,) in raw.execute("SELECT after FROM change_edits WHERE n = ?", (n,)):
            with contextlib.suppress(StoreDamaged):
                states.append(memory_from_image(after))
    if not states:
        lost.append(f"memory #{n}: {why}")
        return
    last = max(states, key=lambda memory: memory.revision)
    lost.append(f"memory #{n}: {why}; taken from its history, as it was at revision {last.revision}")
    yield last


def _sessions(raw: sqlite3.Connection, lost: list[str]) -> Iterator[Session]:
    for row in _rows(raw, f"rowid, {SESSION}", "sessions", "rowid", lost):
        try:
            yield session_from_row(row[1:])
        except (ValueError, TypeError, OverflowError) as error:
            lost.append(f"session {row[1]}: {error}")


def _messages(raw: sqlite3.Connection, lost: list[str]) -> Iterator[Message]:
    columns = "rowid, id, session, role, agent, model, created_us, completed_us, removed_us"
    for row in _rows(raw, columns, "messages", "rowid", lost):
        try:
            yield _message(row, _parts(raw, row[1]))
        except (ValueError, TypeError, OverflowError, sqlite3.DatabaseError) as error:
            lost.append(f"message {row[1]}: {error}")


def _message(row: _Row, parts: tuple[Part, ...]) -> Message:
    _, message, session, role, agent, model, created, completed, removed = row
    return Message(
        id=MessageId(message),
        session=SessionId(session),
        role=Role(role),
        agent=agent,
        model=model,
        created_at=from_us(created),
        completed_at=from_us_or_none(completed),
        removed_at=from_us_or_none(removed),
        parts=parts,
    )


def _parts(raw: sqlite3.Connection, message: str) -> tuple[Part, ...]:
    columns = "id, kind, text, tool, synthetic, detail"
    rows = raw.execute(f"SELECT {columns} FROM parts WHERE message = ? ORDER BY id", (message,)).fetchall()
    refs: dict[str, tuple[BlobRef, ...]] = {}
    with contextlib.suppress(sqlite3.DatabaseError):  # a text without its blob is worth having
        refs |= refs_of_message(raw, message)
    return tuple(
        Part(
            id=PartId(part), kind=kind, text=text, tool=tool, synthetic=bool(synthetic), detail=detail,
            blobs=refs.get(part, ()),
        )
        for part, kind, text, tool, synthetic, detail in rows
    )  # fmt: skip


def _blobs(raw: sqlite3.Connection, lost: list[str]) -> Iterator[Blob]:
    with contextlib.suppress(sqlite3.DatabaseError):
        if raw.execute("PRAGMA user_version").fetchone()[0] < _FIRST_WITH_BLOBS:
            return
    for row in _rows(raw, "rowid, hash, size, packing, packed", "blobs", "rowid", lost):
        if (trouble := blob_trouble(row[1:])) is None:
            yield blob_from_row(row[1:])
        else:
            lost.append(trouble)
