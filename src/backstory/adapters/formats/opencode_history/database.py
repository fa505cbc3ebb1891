"""OpenCode's database, read beside a running OpenCode, and so that not a byte changes in its folder."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from backstory.adapters.formats.opencode_history.source import ToldMessage
from backstory.adapters.formats.outside_files import Json, Unfit, is_id, is_plain, json_of
from backstory.domain.interchange import Unreadable
from backstory.errors import InputError
from backstory.ports.formats import ReadLimits

BUSY_S = 5.0
_VALUE_MAX_BYTES = 256 * 1024 * 1024  # no value that a query meets is larger, whatever a schema computes
_NEEDED = {"session": {"id"}, "message": {"id", "session_id", "data"}, "part": {"id", "message_id", "data"}}
_SESSION = ("id", "parent_id", "directory", "title", "time_created", "time_updated")


class Database:
    """A database of OpenCode 1.2 or later. Columns that are missing count as not told, and unknown ones as none of our
    business."""

    def __init__(self, path: Path, limits: ReadLimits) -> None:
        """Raises InputError where the file is none, or has other tables."""
        self._path = path
        self._limits = limits
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._lives_alone = not _beside(path, "-wal").exists()
        try:
            self._connection = self._open()
            self._columns = {table: self._columns_of(table) for table in _NEEDED}
        except (sqlite3.Error, OSError, UnicodeError) as error:
            self.close()
            raise InputError(f"{path} cannot be read as a database: {error}", field="path") from error
        self._order = "m.time_created, m.id" if "time_created" in self._columns["message"] else "m.id"
        if missing := [table for table, needed in _NEEDED.items() if not needed <= self._columns[table]]:
            self.close()
            raise InputError(
                f"{path} is no history of OpenCode that is known here: its {', '.join(missing)} are kept differently",
                field="path",
            )

    def sessions(self) -> Iterator[Json | Unreadable]:
        known = [name for name in _SESSION if name in self._columns["session"]]
        order = "time_created, id" if "time_created" in known else "id"
        try:
            ids = [row[0] for row in self._connection.execute(f"SELECT id FROM session ORDER BY {order}")]
        except sqlite3.Error as error:
            raise InputError(f"the sessions in {self._path} cannot be read: {error}", field="path") from error
        for session_id in ids:
            if not is_id(session_id):
                yield Unreadable(where=f"{self._path.name}: a session", reason="its id is none")
                continue
            try:
                statement = f"SELECT {', '.join(known)} FROM session WHERE id = ?"
                row = self._connection.execute(statement, (session_id,)).fetchone()
            except sqlite3.Error as error:
                yield Unreadable(where=f"session {session_id}", reason=str(error))
                continue
            if row is not None:  # else it was deleted meanwhile
                yield _session_info(dict(zip(known, row, strict=True)))

    def infos(self, session: str) -> Iterator[Json]:
        statement = f"SELECT {self._bounded('m.data')} FROM message m WHERE session_id = ? ORDER BY {self._order}"
        try:
            for (data,) in self._connection.execute(statement, (session,)):
                if isinstance(info := _json(data), dict):
                    yield info
        except sqlite3.Error:
            return  # the messages themselves say so

    def messages(self, session: str) -> Iterator[ToldMessage | Unreadable]:
        statement = (
            f"SELECT m.id, {self._bounded('m.data')}, p.id, {self._bounded('p.data')}"
            " FROM message m LEFT JOIN part p ON p.message_id = m.id"
            f" WHERE m.session_id = ? ORDER BY {self._order}, p.id"
        )
        current: str | None = None
        rows: list[tuple[Json, Json]] = []
        data: Json = None
        try:
            for message_id, message_data, part_id, part_data in self._connection.execute(statement, (session,)):
                if message_id != current and current is not None:
                    yield _told(session, current, data, rows)
                    rows = []
                current, data = message_id, message_data
                if part_id is not None:
                    rows.append((part_id, part_data))
        except sqlite3.Error as error:
            yield Unreadable(where=f"session {session}", reason=f"not read to its end: {error}")
        if current is not None:
            yield _told(session, current, data, rows)

    def remarks(self) -> Iterator[str]:
        if self._lives_alone and _beside(self._path, "-wal").exists():
            yield ("OpenCode was started while its history was read; import again, so that nothing is missing")

    def close(self) -> None:
        if connection := getattr(self, "_connection", None):
            connection.close()
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def _open(self) -> sqlite3.Connection:
        """Open as quietly as the files beside the database allow.

        Where SQLite finds its log and the log's index, it can be told not to write them. Where one is missing it would
        make it: without a log nothing waits to be written into the database, and without an index we read a copy.
        """
        log, index = _beside(self._path, "-wal"), _beside(self._path, "-shm")
        if is_plain(log) and is_plain(index):
            return self._connect(self._path, "mode=ro&readonly_shm=1")
        if not is_plain(log) or log.stat().st_size == 0:
            return self._connect(self._path, "mode=ro&immutable=1")
        return self._connect(self._copied(log), "mode=rw")

    def _copied(self, log: Path) -> Path:
        size = self._path.stat().st_size + log.stat().st_size
        if size > self._limits.file_bytes:
            raise OSError(
                f"OpenCode ended without tidying up, and {size:,} bytes are too many to copy; start and end it once"
            )
        self._copy = tempfile.TemporaryDirectory(prefix="backstory-")
        copy = Path(self._copy.name) / "opencode.db"
        shutil.copyfile(self._path, copy)
        shutil.copyfile(log, _beside(copy, "-wal"))
        return copy

    def _connect(self, path: Path, how: str) -> sqlite3.Connection:
        # Whoever reads these records may take each from another thread, one after the other.
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?{how}", uri=True, timeout=BUSY_S, check_same_thread=False, isolation_level=None
        )
        connection.text_factory = lambda content: content.decode("utf-8", "replace")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_MAX_BYTES)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _columns_of(self, table: str) -> set[str]:
        """The columns of a real table; none of a view, which could compute for ever."""
        found = self._connection.execute("SELECT type FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        if found is None or found[0] != "table":
            return set()
        return {str(row[1]) for row in self._connection.execute(f"PRAGMA table_info({table})")}

    def _bounded(self, column: str) -> str:
        """A column's text; its length instead where that is too large, so that it never comes into memory here."""
        return f"CASE WHEN length({column}) <= {self._limits.record_bytes} THEN {column} ELSE length({column}) END"


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _session_info(row: dict[str, Json]) -> Json:
    return {
        "id": row["id"],
        "parentID": row.get("parent_id"),
        "directory": row.get("directory"),
        "title": row.get("title"),
        "time": {"created": row.get("time_created"), "updated": row.get("time_updated")},
    }


def _told(session: str, message: Json, data: Json, rows: list[tuple[Json, Json]]) -> ToldMessage | Unreadable:
    where = f"session {session}, message {message if is_id(message) else 'without an id'}"
    info = _json(data)
    if not is_id(message) or not isinstance(info, dict):
        return Unreadable(where=where, reason=_why(data))
    parts: list[Json] = []
    problems: list[Unreadable] = []
    for part_id, part_data in rows:
        part = _json(part_data)
        if is_id(part_id) and isinstance(part, dict):
            parts.append(part | {"id": part_id})
        else:
            problems.append(Unreadable(where=f"{where}, a part", reason=_why(part_data)))
    return ToldMessage(info=info | {"id": message, "sessionID": session}, parts=parts, problems=tuple(problems))


def _json(data: Json) -> Json:
    """What a column says; None where that is no JSON."""
    try:
        return json_of(data) if isinstance(data, str | bytes) else None
    except Unfit:
        return None


def _why(data: Json) -> str:
    return f"too large: {data:,} characters" if isinstance(data, int) else "not what OpenCode writes"
