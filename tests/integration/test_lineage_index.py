"""What a replacement looks up is found by an index, however many memories there are."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.stores.sqlite import migrations
from backstory.adapters.stores.sqlite.filters import where
from backstory.domain.ids import MemoryId
from backstory.domain.scope import Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.testing.fakes import ORCHARD, START, ulid


@pytest.mark.parametrize(
    ("conditions", "index"),
    [
        ({"derived_from": MemoryId(ulid(1))}, "memories_derived"),
        ({"against": MemoryId(ulid(1)), "states": EVERY_STATE}, "memories_in_conflict"),
        ({"states": frozenset({"conflicted"})}, "memories_in_conflict"),
    ],
)
def test_a_lookup_reads_its_index(tmp_path: Path, conditions: dict[str, Any], index: str) -> None:
    raw = sqlite3.connect(tmp_path / "store.db")
    migrations.apply(raw, from_version=0)
    clause = where(Selection(viewer=Viewer(project=ORCHARD), now=START, **conditions))
    ordered = f"SELECT m.n FROM memories m WHERE {clause.sql} ORDER BY m.learned_us DESC, m.n DESC LIMIT 1000"
    plan = [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {ordered}", clause.parameters)]
    assert any(index in step for step in plan)
    raw.close()
