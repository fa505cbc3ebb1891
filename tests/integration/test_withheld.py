"""Format 3: stores of older formats stop showing what was closed or forgotten, and know quickly what is not offered."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

from backstory.adapters.stores.sqlite import migrations
from backstory.adapters.stores.sqlite.filters import where
from backstory.adapters.stores.sqlite.opening import APPLICATION_ID
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.history import WITHHELD
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.scope import Viewer
from backstory.domain.selection import Selection
from backstory.entrypoints.drive import drive
from backstory.testing.fakes import ORCHARD, START, ulid

NAMES = ("open", "deleted", "private", "local-only")


def store_of_format_2(path: Path) -> Path:
    """A store with one memory of each kind, and a block and a snapshot that show it."""
    raw = sqlite3.connect(path)
    for version, script in migrations.scripts():
        if version <= 2:
            raw.executescript(script.read_text(encoding="utf-8"))
    raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    raw.execute("PRAGMA user_version = 2")
    for n, name in enumerate(NAMES, start=1):
        state = "deleted" if name == "deleted" else "active"
        status = {"state": state} | ({"since": START.isoformat()} if state == "deleted" else {})
        sensitivity = name if name in ("private", "local-only") else "normal"
        raw.execute(
            "INSERT INTO memories (id, revision, content, content_key, kind, visibility, tier, pinned, sensitivity,"
            " state, status, origin, source, confidence, weight, namespace, provenance, learned_us, updated_us,"
            " confirmed_us) VALUES (?, 1, ?, ?, 'fact', 'global', 'core', 0, ?, ?, ?, 'user', 'explicit', 1, 1,"
            " 'agent', '{}', 1, 1, 1)",
            (ulid(n), name, name, sensitivity, state, json.dumps(status)),
        )
        shown = json.dumps([{"memory": ulid(n), "n": n, "score": 0.5, "reason": "words"}])
        raw.execute("INSERT INTO recall_blocks VALUES (?, 's', 'text', ?, NULL, 1)", (name, shown))
        raw.execute("INSERT INTO snapshots VALUES (?, 'text', ?, 1)", (name, json.dumps([ulid(n)])))
    raw.commit()
    raw.close()
    return path


def test_frozen_texts_of_an_older_store_no_longer_show_what_was_withheld(tmp_path: Path) -> None:
    backend = open_sqlite(store_of_format_2(tmp_path / "memory.db"))
    blocks = drive(backend.conversations.blocks([MessageId(name) for name in NAMES]))
    told = [(block.text, block.silent_because, len(block.shown)) for block in blocks.values()]
    assert told == [("text", None, 1)] + [("", WITHHELD, 1)] * 3
    snapshots = [drive(backend.conversations.snapshot(SessionId(name))) for name in NAMES]
    assert [snapshot is not None for snapshot in snapshots] == [True, False, False, False]
    drive(backend.memories.close())


def test_whether_anything_is_never_offered_is_looked_up_and_not_searched_for(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    backend = open_sqlite(path)
    selection = Selection(viewer=Viewer(project=ORCHARD), now=START)
    drive(backend.memories.count(selection))
    drive(backend.memories.close())
    clause = where(replace(selection, offerable=False))
    raw = sqlite3.connect(path)
    statement = f"SELECT m.n FROM memories m WHERE {clause.sql} ORDER BY m.learned_us DESC, m.n DESC LIMIT 1"
    plan = raw.execute(f"EXPLAIN QUERY PLAN {statement}", clause.parameters).fetchall()
    raw.close()
    assert "memories_never_offered" in str(plan)
