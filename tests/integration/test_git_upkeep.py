"""Git stores with real faults, in the ref, in its objects and in the file beside it; and their backups brought back."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.adapters.stores.gitbranch.reference import DEFAULT_REF
from backstory.adapters.stores.gitbranch.store import open_git
from backstory.adapters.stores.gitbranch.tree import placed
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.history import Action, Edit
from backstory.domain.ids import ProjectId
from backstory.domain.lifecycle import forget
from backstory.domain.memory import Memory, Sensitivity, Visibility
from backstory.domain.project import ProjectSighting
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.errors import StoreDamaged, StoreUnavailable
from backstory.ports.backend import Backend
from backstory.ports.upkeep import Finding, Invariant, Restored, Severity, StoreUpkeep
from backstory.testing.fakes import START, add_memories, sample_change, sample_memory

_ALL = Selection(
    viewer=Viewer(project=None, audience=Audience.PERSON, all_projects=True), now=START, states=EVERY_STATE
)


@dataclass
class Clone:
    """A repository with a store on its ref."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "local.db"

    def open(self, **options: Any) -> Backend:  # Any: options of open_git
        return open_git(self.folder, index=self.file, **options)

    def git(self, *arguments: str, data: str | None = None) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=somebody", "-c", "user.email=else@where", *arguments],
            cwd=self.folder, input=data, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.strip()

    def tip(self) -> str:
        return self.git("rev-parse", DEFAULT_REF)

    def files(self) -> list[str]:
        return self.git("ls-tree", "-r", "--name-only", DEFAULT_REF).splitlines()

    def object_file(self, name: str) -> Path:
        """Where git keeps an object by itself."""
        full = self.git("rev-parse", name)
        return self.folder / ".git" / "objects" / full[:2] / full[2:]

    def day_file(self) -> str:
        return next(path for path in self.files() if path.endswith(".logfmt") and "deletions" not in path)

    def rewrite(self, **contents: str | None) -> None:
        """Put a commit on the ref as another tool would: files with new contents; None removes one."""
        index = {"GIT_INDEX_FILE": str(self.folder / "other-index")}

        def git(*arguments: str, data: str | None = None) -> str:
            done = subprocess.run(
                ["git", "-c", "user.name=else", "-c", "user.email=else@where", *arguments], cwd=self.folder,
                input=data, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin", **index},
            )  # fmt: skip
            return done.stdout.strip()

        git("read-tree", DEFAULT_REF)
        for path, content in contents.items():
            if content is None:
                git("rm", "--cached", "-q", path)
            else:
                blob = git("hash-object", "-w", "--stdin", data=content)
                git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
        commit = git("commit-tree", git("write-tree"), "-p", DEFAULT_REF, "-m", "by another tool")
        git("update-ref", DEFAULT_REF, commit)


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    folder = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return Clone(folder=folder)


def _upkeep(backend: Backend) -> StoreUpkeep:
    assert backend.upkeep is not None
    return backend.upkeep


def run(backend: Backend, work: Callable[[Backend], Any]) -> Any:  # Any: whatever the work gives
    async def all_of_it() -> Any:
        try:
            return await work(backend)
        finally:
            await backend.memories.close()

    return anyio.run(all_of_it)


def verify(backend: Backend, *, full: bool = True) -> list[Finding]:
    found: list[Finding] = run(backend, lambda opened: _upkeep(opened).verify(full=full))
    return found


def faults(backend: Backend, *, full: bool = True) -> list[Finding]:
    return [finding for finding in verify(backend, full=full) if finding.severity is not Severity.NOTE]


def _memory(content: str, **values: Any) -> Memory:
    return sample_memory(content, visibility=Visibility.GLOBAL, project=None, **values)


async def fill(backend: Backend) -> None:
    _, second, third, _ = await add_memories(
        backend.memories,
        _memory("The cluster is called heron"),
        _memory("Cut releases on Tuesdays"),
        _memory("Invoices are kept seven years"),
        _memory("My keys are in the drawer", sensitivity=Sensitivity.PRIVATE),
    )
    after = replace(second, content="Cut releases on Fridays")
    await backend.memories.commit(sample_change(20, Edit(before=second, after=after), action=Action.UPDATE))
    gone = forget(third, now=START, reason="no longer so")
    await backend.memories.commit(sample_change(21, Edit(before=third, after=gone), action=Action.FORGET))


async def contents(backend: Backend) -> list[str]:
    return sorted(memory.content for memory in await backend.memories.select(_ALL, limit=100))


def test_a_store_that_was_only_used_is_whole(clone: Clone) -> None:
    run(clone.open(), fill)
    assert verify(clone.open()) == []
    assert verify(clone.open(), full=False) == []


def test_where_there_is_neither_ref_nor_file_there_is_no_store(clone: Clone) -> None:
    with pytest.raises(StoreUnavailable, match="no store"):
        verify(clone.open())
    assert not clone.file.exists()


@pytest.mark.parametrize("full", [False, True])
def test_an_object_that_is_gone_or_altered_is_damage(clone: Clone, full: bool) -> None:
    run(clone.open(), fill)
    victim = clone.object_file(f"{DEFAULT_REF}:{clone.day_file()}")
    content = victim.read_bytes()
    victim.chmod(0o644)
    for spoilt in (b"", content[: len(content) // 2], content[:-1] + b"?", None):
        victim.unlink() if spoilt is None else victim.write_bytes(spoilt)
        [*found] = faults(clone.open(), full=full)
        assert {(finding.invariant, finding.severity) for finding in found} == {(Invariant.WHOLE, Severity.DAMAGE)}
        assert all("fetch" in finding.way_out for finding in found)
    victim.write_bytes(content)
    assert faults(clone.open(), full=full) == []


def test_an_object_of_the_past_that_is_gone_is_found_by_a_full_check(clone: Clone) -> None:
    run(clone.open(), fill)
    clone.object_file(f"{DEFAULT_REF}~3:{clone.day_file()}").unlink()
    assert faults(clone.open(), full=False) == []
    assert {finding.invariant for finding in faults(clone.open())} == {Invariant.WHOLE}


def test_a_commit_of_the_past_that_is_gone_is_found_by_any_check(clone: Clone) -> None:
    run(clone.open(), fill)
    clone.object_file(f"{DEFAULT_REF}~3").unlink()
    assert {finding.invariant for finding in faults(clone.open(), full=False)} == {Invariant.WHOLE}


def test_a_day_file_that_another_tool_dropped_is_told_and_then_taken_over(clone: Clone) -> None:
    run(clone.open(), fill)
    clone.rewrite(**{clone.day_file(): None})
    [note] = verify(clone.open())
    assert (note.invariant, note.severity) == (Invariant.FORMAT, Severity.NOTE)
    run(clone.open(), contents)
    assert verify(clone.open()) == []


def test_a_line_that_nobody_can_read_is_a_note(clone: Clone) -> None:
    run(clone.open(), fill)
    day = clone.day_file()
    text = clone.git("cat-file", "blob", f"{DEFAULT_REF}:{day}") + '\nts=never type=decision scope=a content="b"\n'
    clone.rewrite(**{day: text})
    run(clone.open(), contents)
    assert [(finding.invariant, finding.severity) for finding in verify(clone.open())] == [
        (Invariant.READABLE, Severity.NOTE)
    ]


OUT_OF_STEP = {
    "a memory was altered": "UPDATE memories SET content = 'The cluster is called ibis' WHERE n = 1",
    "a memory is gone": (
        "DELETE FROM change_edits WHERE n = 1; DELETE FROM memory_tags WHERE n = 1; DELETE FROM memories WHERE n = 1; "
        "DELETE FROM memory_words WHERE rowid = 1"
    ),
    "a change is gone": (
        "DELETE FROM change_edits WHERE n = 1; DELETE FROM changes WHERE id NOT IN (SELECT change FROM change_edits); "
        "DELETE FROM git_changes WHERE change NOT IN (SELECT id FROM changes)"
    ),
    "a word is gone": "DELETE FROM memory_words WHERE rowid = 1",
}


@pytest.mark.parametrize("statements", OUT_OF_STEP.values(), ids=list(OUT_OF_STEP))
def test_a_file_that_says_otherwise_than_the_ref_is_found_and_read_anew(clone: Clone, statements: str) -> None:
    run(clone.open(), fill)
    before = run(clone.open(), contents)
    with closing(sqlite3.connect(clone.file)) as raw, raw:
        raw.executescript(statements)
    assert faults(clone.open())
    assert run(clone.open(), lambda backend: _upkeep(backend).rebuild()).corrected
    assert faults(clone.open()) == []
    assert run(clone.open(), contents) == before
    assert run(clone.open(), lambda backend: _upkeep(backend).rebuild()).corrected == 0


def test_a_private_memory_on_the_ref_is_found(clone: Clone) -> None:
    run(clone.open(), fill)
    day = clone.day_file()
    own = run(clone.open(), lambda backend: backend.memories.select(_ALL, limit=100))
    secret = next(memory for memory in own if memory.sensitivity is Sensitivity.PRIVATE)
    line = placed(replace(secret, sensitivity=Sensitivity.NORMAL))
    assert line is not None
    clone.rewrite(**{day: clone.git("cat-file", "blob", f"{DEFAULT_REF}:{day}") + f"\n{line.text}\n"})
    run(clone.open(), contents)
    assert Invariant.WITHHELD in {finding.invariant for finding in faults(clone.open())}


def test_a_file_that_was_cut_off_is_damage_and_a_backup_brings_it_back(clone: Clone, tmp_path: Path) -> None:
    run(clone.open(), fill)
    before = run(clone.open(), contents)
    run(clone.open(), lambda backend: _upkeep(backend).backup(tmp_path / "copy.db"))
    content = clone.file.read_bytes()
    clone.file.write_bytes(content[: len(content) // 2])
    for beside in ("-wal", "-shm"):
        clone.file.with_name(clone.file.name + beside).unlink(missing_ok=True)
    found = faults(clone.open())
    assert Invariant.WHOLE in {finding.invariant for finding in found}
    saved = run(clone.open(), lambda backend: _upkeep(backend).salvage())
    assert saved.lost
    restored: Restored = run(clone.open(), lambda backend: _upkeep(backend).restore(tmp_path / "copy.db"))
    assert restored.kept is not None
    assert run(clone.open(), contents) == before
    assert verify(clone.open()) == []


def test_a_restore_is_a_new_commit_on_the_ref_that_other_clones_follow(clone: Clone, tmp_path: Path) -> None:
    run(clone.open(), fill)
    before = run(clone.open(), contents)
    files = clone.files()
    run(clone.open(), lambda backend: _upkeep(backend).backup(tmp_path / "copy.db"))
    run(clone.open(), lambda backend: add_memories(backend.memories, _memory("later"), first_change=70))
    other = Clone(folder=tmp_path / "other")
    subprocess.run(["git", "init", "-q", str(other.folder)], check=True)
    other.git("fetch", "-q", str(clone.folder), f"{DEFAULT_REF}:{DEFAULT_REF}")
    assert "later" in run(other.open(), contents)
    tip = clone.tip()
    run(clone.open(), lambda backend: _upkeep(backend).restore(tmp_path / "copy.db"))
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
    run(clone.open(), lambda backend: _upkeep(backend).backup(tmp_path / "copy.db"))

    async def look(backend: Backend) -> Any:  # Any: memories and changes
        return await backend.memories.select(_ALL, limit=100), await backend.memories.history(limit=100)

    before = run(clone.open(), look)
    fresh = Clone(folder=tmp_path / "fresh")
    subprocess.run(["git", "init", "-q", str(fresh.folder)], check=True)
    restored: Restored = run(fresh.open(), lambda backend: _upkeep(backend).restore(tmp_path / "copy.db"))
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
    run(open_sqlite(tmp_path / "memory.db"), lambda backend: _upkeep(backend).backup(tmp_path / "copy.db"))
    before = run(open_sqlite(tmp_path / "memory.db"), contents)
    run(clone.open(), lambda backend: add_memories(backend.memories, _memory("there before"), first_change=70))
    run(clone.open(), lambda backend: _upkeep(backend).restore(tmp_path / "copy.db"))
    assert run(clone.open(), contents) == before
    assert verify(clone.open()) == []
    run(clone.open(), lambda backend: _upkeep(backend).backup(tmp_path / "back.db"))
    run(open_sqlite(tmp_path / "other.db"), lambda backend: _upkeep(backend).restore(tmp_path / "back.db"))
    assert run(open_sqlite(tmp_path / "other.db"), contents) == before


def test_what_was_added_while_a_store_was_no_git_store_comes_back_with_it(clone: Clone, tmp_path: Path) -> None:
    run(clone.open(), fill)
    run(clone.open(), lambda backend: _upkeep(backend).backup(tmp_path / "out.db"))
    run(open_sqlite(tmp_path / "away.db"), lambda backend: _upkeep(backend).restore(tmp_path / "out.db"))
    run(
        open_sqlite(tmp_path / "away.db"),
        lambda backend: add_memories(backend.memories, _memory("added meanwhile"), first_change=70),
    )
    run(open_sqlite(tmp_path / "away.db"), lambda backend: _upkeep(backend).backup(tmp_path / "back.db"))
    run(clone.open(), lambda backend: _upkeep(backend).restore(tmp_path / "back.db"))
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
    run(open_sqlite(tmp_path / "memory.db"), lambda backend: _upkeep(backend).backup(tmp_path / "copy.db"))
    restored: Restored = run(clone.open(), lambda backend: _upkeep(backend).restore(tmp_path / "copy.db"))
    assert (restored.memories, restored.unshared) == (3, 2)
    assert len(run(clone.open(), contents)) == 3
    assert "Herons" in _past_of(clone)
    assert "Otters" not in _past_of(clone)
    assert faults(clone.open()) == []
    rebuilt = run(clone.open(), lambda backend: _upkeep(backend).rebuild())
    assert (rebuilt.memories, rebuilt.corrected) == (3, 0)
    assert "Otters" not in _past_of(clone)


def test_what_a_memory_said_while_it_was_private_never_comes_on_the_ref(clone: Clone) -> None:
    async def work(backend: Backend) -> list[Any]:  # Any: changes
        [memory] = await add_memories(
            backend.memories, _memory("My salary is a secret", sensitivity=Sensitivity.PRIVATE)
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
    assert run(clone.open(), lambda backend: _upkeep(backend).rebuild()).corrected == 0
    assert list(run(clone.open(), lambda backend: backend.memories.history(limit=100))) == history
    assert verify(clone.open()) == []


def test_a_ref_is_a_store_also_where_nothing_was_read_of_it_yet(clone: Clone, tmp_path: Path) -> None:
    run(clone.open(), fill)
    clone.file.unlink()
    assert "Cut releases on Fridays" in run(clone.open(create=False), contents)
    clone.file.unlink()
    run(clone.open(create=False), lambda backend: _upkeep(backend).backup(tmp_path / "copy.db"))
    assert "Cut releases on Fridays" in run(open_sqlite(tmp_path / "copy.db"), contents)


def test_a_damaged_backup_leaves_ref_and_file_as_they_were(clone: Clone, tmp_path: Path) -> None:
    run(clone.open(), fill)
    run(clone.open(), lambda backend: _upkeep(backend).backup(tmp_path / "copy.db"))
    content = (tmp_path / "copy.db").read_bytes()
    (tmp_path / "copy.db").write_bytes(content[: len(content) // 2])
    tip, before = clone.tip(), run(clone.open(), contents)
    with pytest.raises(StoreDamaged):
        run(clone.open(), lambda backend: _upkeep(backend).restore(tmp_path / "copy.db"))
    assert (clone.tip(), run(clone.open(), contents)) == (tip, before)
