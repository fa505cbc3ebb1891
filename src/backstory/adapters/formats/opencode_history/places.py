"""Where OpenCode keeps its history on this machine, and what of it stands at a path."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from backstory.adapters.formats.outside_files import entries, is_folder, is_plain, read_start

SQLITE = b"SQLite format 3\0"
STORAGE = "storage"
_DATABASE = "opencode.db"
_TABLES = frozenset({"session", "message", "part"})


def home(environ: Mapping[str, str] | None = None) -> Path:
    """OpenCode's data folder of the person who runs this: below ``XDG_DATA_HOME``, else ``~/.local/share`` (on every
    system)."""
    environ = os.environ if environ is None else environ
    data = environ.get("XDG_DATA_HOME") or ""
    return (Path(data) if Path(data).is_absolute() else Path.home() / ".local" / "share") / "opencode"


def at_home(environ: Mapping[str, str] | None = None) -> list[Path]:
    """The stores in the data folder, and the database that ``OPENCODE_DB`` names instead."""
    environ = os.environ if environ is None else environ
    named = environ.get("OPENCODE_DB") or ""
    if named and named != ":memory:":
        database = home(environ) / named  # an absolute one stands for itself
        return [database] if is_plain(database) else []
    return stores_in(home(environ))


def is_at_home(store: Path, environ: Mapping[str, str] | None = None) -> bool:
    """Whether a store is the running person's own history."""
    try:
        return store.resolve() in {path.resolve() for path in at_home(environ)}
    except OSError:
        return False


def stores_at(path: Path) -> list[Path]:
    """The databases, or else the folder of files, that a path names: itself, a data folder, or a home with one."""
    if is_plain(path):
        return [path] if is_database(path) else []
    folders = (path, path / "opencode", path / ".local" / "share" / "opencode")
    return next((found for folder in folders if is_folder(folder) and (found := stores_in(folder))), [])


def stores_in(folder: Path) -> list[Path]:
    """The databases in a data folder, one for each channel that was used; the files of before only where there is none,
    since OpenCode took them into its database."""
    files = entries(folder, ends=".db")
    databases = [path for path in files if path.name == _DATABASE or path.name.startswith("opencode-")]
    if found := [path for path in databases if is_plain(path) and read_start(path, size=16) == SQLITE]:
        return found
    candidates = (folder / STORAGE, folder)
    return [storage for storage in candidates if _is_storage(storage)][:1]


def is_database(path: Path) -> bool:
    """Whether a file is a database with OpenCode's tables. Reads its schema only, and leaves nothing beside it."""
    if read_start(path, size=16) != SQLITE:
        return False
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    except (sqlite3.Error, OSError, ValueError):
        return False
    try:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except (sqlite3.Error, UnicodeError):
        return path.name == _DATABASE  # its schema may stand in the log beside it
    finally:
        connection.close()
    return tables >= _TABLES or (path.name == _DATABASE and not tables)


def _is_storage(folder: Path) -> bool:
    return is_folder(folder / "session") and is_folder(folder / "message")
