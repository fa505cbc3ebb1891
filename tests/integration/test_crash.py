"""Writers are killed in the middle of their work, and the store is what they were told it is."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.entrypoints.drive import drive
from backstory.errors import StoreDamaged
from backstory.testing.fakes import add_memories, sample_memory
from bench.crash import Outcome, kill_writers
from bench.crash_writer import told_in

KILLS = 20


def test_writers_killed_at_random_moments_lose_nothing_acknowledged(tmp_path: Path) -> None:
    outcome = kill_writers("sqlite", tmp_path, kills=KILLS, writers=10, choose=random.Random(7))
    assert outcome.kills == KILLS
    assert outcome.acknowledged > 0
    assert (outcome.lost, outcome.unopenable, outcome.without_vector, outcome.findings) == ([], 0, 0, [])
    assert outcome.is_clean
    assert len(outcome.round_ms) == len(outcome.reopen_ms) == 2


@pytest.mark.parametrize("field", ["lost", "findings"])
def test_a_run_that_found_anything_is_not_clean(field: str) -> None:
    assert Outcome().is_clean
    assert not Outcome(**{field: ["something"]}).is_clean  # type: ignore[arg-type]  # the name is a parameter here


def test_a_line_that_death_cut_off_tells_nothing() -> None:
    whole, cut = '{"message": "m1"}\n', '{"message": "m2"'
    assert told_in(iter([whole, cut])) == [{"message": "m1"}]


def test_a_killed_copy_leaves_no_backup_under_the_name(tmp_path: Path) -> None:
    """A copy that ends before it is checked has no name but its temporary one."""
    store = open_sqlite(tmp_path / "memory.db")
    drive(add_memories(store.memories, sample_memory("fact")))
    drive(store.memories.close())
    (tmp_path / ".backup.db.1.part").write_bytes(b"half of one")
    assert store.upkeep is not None
    drive(store.upkeep.backup(tmp_path / "backup.db"))
    with pytest.raises(StoreDamaged):
        drive(store.upkeep.restore(tmp_path / ".backup.db.1.part"))
