"""Histories of OpenCode as it keeps them, and what is read from them.

Test modules take the fixture by its name.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.formats.opencode_history.reader import OpenCodeHistory
from backstory.domain.interchange import ForeignRecord
from backstory.ports.formats import ReadLimits

T = 1_700_000_000_000
Json = Any
TABLES = {
    "session": "id text PRIMARY KEY, parent_id text, directory text, title text, time_created integer,"
    " time_updated integer, slug text",
    "message": "id text PRIMARY KEY, session_id text, time_created integer, data text",
    "part": "id text PRIMARY KEY, message_id text, session_id text, data text",
}


def data_folder(home: Path) -> Path:
    folder = home / "opencode"
    folder.mkdir(parents=True)
    return folder


def make_database(path: Path, *, tables: dict[str, str] = TABLES) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    for name, columns in tables.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")
    return connection


def add_session(
    connection: sqlite3.Connection, number: str, *, parent: str | None = None, title: str = "Ovens"
) -> None:
    row = (number, parent, "/work/bakery", title, T, T + 9000, "brave-cake")
    connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def add_message(
    connection: sqlite3.Connection, number: str, session: str, *parts: Json, at: int = T, **info: Json
) -> None:
    told = {"role": "user", "time": {"created": at}, "agent": "build", **info}
    connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (number, session, at, json.dumps(told)))
    for position, part in enumerate(parts):
        data = part if isinstance(part, str | bytes) else json.dumps(part)
        row = (part.get("id") if isinstance(part, dict) else None) or f"{number}-p{position}"
        connection.execute("INSERT INTO part VALUES (?, ?, ?, ?)", (row, number, session, data))


def said(text: str, **more: Json) -> Json:
    return {"type": "text", "text": text, **more}


def read(place: Path | str, limits: ReadLimits | None = None) -> list[ForeignRecord]:
    """Everything that is found at a place, read."""
    reader = OpenCodeHistory()
    limits = limits or ReadLimits()
    return [record for store in reader.find(str(place)) for record in reader.read(store, limits=limits)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "own"))
    monkeypatch.delenv("OPENCODE_DB", raising=False)
    return data_folder(tmp_path / "elsewhere")
