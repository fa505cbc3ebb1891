"""Backups of git stores brought back: as a new commit that other clones follow, with nothing of it shown to others."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.stores.gitbranch.reference import DEFAULT_REF
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.history import Action, Edit
from backstory.domain.ids import ProjectId
from backstory.domain.memory import Sensitivity, Visibility
from backstory.domain.project import ProjectSighting
from backstory.errors import StoreDamaged
from backstory.ports.backend import Backend
from backstory.ports.upkeep import Restored
from backstory.testing.fakes import START, add_memories, sample_change, sample_memory
from tests.integration.git_keeping import Clone, contents, fill
from tests.integration.git_keeping import clone as clone
from tests.integration.upkeeping import EVERYTHING, everywhere, faults, run, upkeep_of, verify


def test_a_restore_is_a_new_commit_on_the_ref_that_other_clones_follow(clone: Clone, tmp_path: Path) -> None:
    run(clone.open(), fill)
    before = run(clone.open(), contents)
    files = clone.files()
    run(clone.open(), lambda backend: upkeep_of(backend).backup(tmp_path / "copy.db"))
    run(clone.open(), lambda backend: add_memories(backend.memories, everywhere("later"), first_change=70))
    other = Clone(folder=tmp_path / "other")
    subprocess.run(["git", "init", "-q", str(other.folder)], check=True)
    other.git("fetch", "-q", str(clone.folder), f"{DEFAULT_REF}:{DEFAULT_REF}")
    assert "later" in run(other.open(), contents)
    tip = clone.tip()
    run(clone.open(), lambda backend: upkeep_of(backend).restore(tmp_path / "copy.db"))
    assert clone.git("rev-parse", f"{DEFAULT_REF}^") == tip
    assert clone.files() == files
    assert run(clone.open(), contents) == before
    assert verify(clone.open()) == []
    other.git("fetch", "-q", str(clone.folder), f"{DEFAULT_REF}:{DEFAULT_REF}")
    assert run(other.open(), contents) == [content for content in before if "keys" not in content]
    assert verify(other.open()) == []


def test_a_restore_into_a_repository_that_has_lost_its_ref_writes_everything_down_again(
    clone: Clone, tmp_path: Path
) -> None:
    run(clone.open(), fill)
    run(clone.open(), lambda backend: upkeep_of(backend).backup(tmp_path / "copy.db"))

    async def look(backend: Backend) -> Any:  # Any: memories and changes
        return await backend.memories.select(EVERYTHING, limit=100), await backend.memories.history(limit=100)

    before = run(clone.open(), look)
    fresh = Clone(folder=tmp_path / "fresh")
    subprocess.run(["git", "init", "-q", str(fresh.folder)], check=True)
    restored: Restored = run(fresh.open(), lambda backend: upkeep_of(backend).restore(tmp_path / "copy.db"))
    assert (restored.memories, restored.kept) == (4, None)
    assert fresh.files() == clone.files()
    assert run(fresh.open(), look) == before
    assert verify(fresh.open()) == []
    assert (
        "drawer"
        not in subprocess.run(
            ["git", "log", "-p", DEFAULT_REF], cwd=fresh.folder, capture_output=True, text=True, check=True
        ).stdout
    )


def test_a_backup_of_an_sqlite_store_moves_to_git_and_back(clone: Clone, tmp_path: Path) -> None:
    run(open_sqlite(tmp_path / "memory.db"), fill)
    run(open_sqlite(tmp_path / "memory.db"), lambda backend: upkeep_of(backend).backup(tmp_path / "copy.db"))
    before = run(open_sqlite(tmp_path / "memory.db"), contents)
    run(clone.open(), lambda backend: add_memories(backend.memories, everywhere("there before"), first_change=70))
    run(clone.open(), lambda backend: upkeep_of(backend).restore(tmp_path / "copy.db"))
    assert run(clone.open(), contents) == before
    assert verify(clone.open()) == []
    run(clone.open(), lambda backend: upkeep_of(backend).backup(tmp_path / "back.db"))
    run(open_sqlite(tmp_path / "other.db"), lambda backend: upkeep_of(backend).restore(tmp_path / "back.db"))
    assert run(open_sqlite(tmp_path / "other.db"), contents) == before


def test_what_was_added_while_a_store_was_no_git_store_comes_back_with_it(clone: Clone, tmp_path: Path) -> None:
    run(clone.open(), fill)
    run(clone.open(), lambda backend: upkeep_of(backend).backup(tmp_path / "out.db"))
    run(open_sqlite(tmp_path / "away.db"), lambda backend: upkeep_of(backend).restore(tmp_path / "out.db"))
    run(
        open_sqlite(tmp_path / "away.db"),
        lambda backend: add_memories(backend.memories, everywhere("added meanwhile"), first_change=70),
    )
    run(open_sqlite(tmp_path / "away.db"), lambda backend: upkeep_of(backend).backup(tmp_path / "back.db"))
    run(clone.open(), lambda backend: upkeep_of(backend).restore(tmp_path / "back.db"))
    assert "added meanwhile" in run(clone.open(), contents)
    assert "added meanwhile" in clone.git("show", f"{DEFAULT_REF}:{clone.day_file()}")
    assert verify(clone.open()) == []


def _past_of(clone: Clone) -> str:
    return clone.git("log", "-p", "--format=%B", DEFAULT_REF)


def test_a_restore_shows_nobody_the_memories_of_other_projects(clone: Clone, tmp_path: Path) -> None:
    here, elsewhere = ProjectId("01J0000000000000000000000A"), ProjectId("01J0000000000000000000000B")
    sighting = ProjectSighting(aliases=(f"git:{clone.folder.resolve() / '.git'}",), name="here", root=str(clone.folder))

    async def work(backend: Backend) -> None:
        await backend.projects.identify(sighting, now=START, new_id=here)
        await add_memories(
            backend.memories,
            sample_memory("Herons nest in this repository", project=here),
            sample_memory("Otters live in the other one", project=elsewhere),
            sample_memory("Otters are liked by me", project=elsewhere, visibility=Visibility.GLOBAL),
        )

    run(open_sqlite(tmp_path / "memory.db"), work)
    run(open_sqlite(tmp_path / "memory.db"), lambda backend: upkeep_of(backend).backup(tmp_path / "copy.db"))
    restored: Restored = run(clone.open(), lambda backend: upkeep_of(backend).restore(tmp_path / "copy.db"))
    assert (restored.memories, restored.unshared) == (3, 2)
    assert len(run(clone.open(), contents)) == 3
    assert "Herons" in _past_of(clone)
    assert "Otters" not in _past_of(clone)
    assert faults(clone.open()) == []
    rebuilt = run(clone.open(), lambda backend: upkeep_of(backend).rebuild())
    assert (rebuilt.memories, rebuilt.corrected) == (3, 0)
    assert "Otters" not in _past_of(clone)


def test_what_a_memory_said_while_it_was_private_never_comes_on_the_ref(clone: Clone) -> None:
    async def work(backend: Backend) -> list[Any]:  # Any: changes
        [memory] = await add_memories(
            backend.memories, everywhere("My salary is a secret", sensitivity=Sensitivity.PRIVATE)
        )
        steps: list[dict[str, Any]] = [  # Any: fields of a memory
            {"content": "Coffee is in the kitchen"}, {"sensitivity": Sensitivity.NORMAL},
            {"content": "Coffee is in the hall"}, {"content": "My bonus too", "sensitivity": Sensitivity.PRIVATE},
        ]  # fmt: skip
        for number, values in enumerate(steps, start=30):
            change = await backend.memories.commit(
                sample_change(number, Edit(before=memory, after=replace(memory, **values)), action=Action.UPDATE)
            )
            memory = change.edits[0].after
        return list(await backend.memories.history(limit=100))

    history = run(clone.open(), work)
    assert "Coffee" in _past_of(clone)
    assert "salary" not in _past_of(clone)
    assert "bonus" not in _past_of(clone)
    assert verify(clone.open()) == []
    assert run(clone.open(), lambda backend: upkeep_of(backend).rebuild()).corrected == 0
    assert list(run(clone.open(), lambda backend: backend.memories.history(limit=100))) == history
    assert verify(clone.open()) == []


def test_a_ref_is_a_store_also_where_nothing_was_read_of_it_yet(clone: Clone, tmp_path: Path) -> None:
    run(clone.open(), fill)
    clone.file.unlink()
    assert "Cut releases on Fridays" in run(clone.open(create=False), contents)
    clone.file.unlink()
    run(clone.open(create=False), lambda backend: upkeep_of(backend).backup(tmp_path / "copy.db"))
    assert "Cut releases on Fridays" in run(open_sqlite(tmp_path / "copy.db"), contents)


def test_a_damaged_backup_leaves_ref_and_file_as_they_were(clone: Clone, tmp_path: Path) -> None:
    run(clone.open(), fill)
    run(clone.open(), lambda backend: upkeep_of(backend).backup(tmp_path / "copy.db"))
    content = (tmp_path / "copy.db").read_bytes()
    (tmp_path / "copy.db").write_bytes(content[: len(content) // 2])
    tip, before = clone.tip(), run(clone.open(), contents)
    with pytest.raises(StoreDamaged):
        run(clone.open(), lambda backend: upkeep_of(backend).restore(tmp_path / "copy.db"))
    assert (clone.tip(), run(clone.open(), contents)) == (tip, before)
