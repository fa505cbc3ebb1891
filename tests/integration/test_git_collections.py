"""Git's collection of garbage at work in the repository of a store: nothing acknowledged is lost, nothing is missed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.stores.gitbranch.git import Git
from backstory.adapters.stores.gitbranch.reader import Reader
from backstory.adapters.stores.gitbranch.reference import Commit, Reference
from backstory.errors import StoreDamaged
from backstory.ports.backend import Backend
from backstory.testing.fakes import START
from tests.integration.git_repositories import LINES, REF, Repository, add, contents, everything
from tests.integration.git_repositories import opened as opened
from tests.integration.git_repositories import repository as repository

ROUND = "git gc -q --prune=now; git repack -a -d -q; git prune --expire=now"


def test_memories_survive_a_collection_of_garbage_at_any_time(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    repository.git("commit", "-q", "--allow-empty", "-m", "start")
    backend, beside = opened(repository.folder), opened(repository.folder, index="beside.db")
    stop = repository.folder.parent / "stop"
    script = f"while [ ! -e {stop} ]; do {ROUND}; done"
    collector = subprocess.Popen(["sh", "-c", script], cwd=repository.folder, stderr=subprocess.DEVNULL)
    try:
        for number in range(12):
            add(backend, f"collected {number}")
            wanted = sorted(f"collected {n}" for n in range(number + 1))
            assert contents(backend) == wanted
            assert contents(beside) == wanted
            if number % 4 == 3:
                assert contents(opened(repository.folder, index=f"new{number}.db")) == wanted
    finally:
        stop.touch()
        collector.wait(240)
    assert len(everything(backend)) == 12
    repository.git("fsck", "--strict", "--connectivity-only")
    git = repository.folder / ".git"
    assert [*git.glob("fast_import_crash*"), *git.glob("objects/pack/*.keep"), *git.glob("objects/pack/tmp*")] == []
    copies = [path for path in repository.folder.parent.glob("*.db.*") if not path.name.endswith(("-wal", "-shm"))]
    assert copies == [], "the ref was never taken to be gone"
    repository.git("gc", "-q", "--prune=now")
    assert len(everything(opened(repository.folder, index="again.db"))) == 12


@pytest.mark.parametrize("use", ["read", "write"])
def test_what_is_pruned_just_after_it_was_written_is_written_again_at_the_next_use(
    use: str, repository: Repository, opened: Callable[..., Backend]
) -> None:
    backend = opened(repository.folder)
    add(backend, "in the midst of a prune")
    oid = repository.git("rev-parse", f"{REF}:{LINES}/2026-03-02.logfmt")
    (repository.folder / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    if use == "read":
        assert contents(backend) == ["in the midst of a prune"]
    else:
        add(backend, "a day later", at=START + timedelta(days=1))
    repository.git("fsck", "--strict")


def test_a_ref_whose_newest_objects_were_removed_is_mended_by_the_next_write(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    backend = opened(repository.folder)
    for number in range(3):
        add(backend, f"written {number}")
    tip = repository.git("rev-parse", REF)
    names = (tip, f"{tip}^{{tree}}", f"{tip}:{LINES}/2026-03-02.logfmt")
    for oid in [repository.git("rev-parse", name) for name in names]:
        (repository.folder / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    add(backend, "and one more")
    repository.git("fsck", "--strict")
    assert len(contents(opened(repository.folder, index="again.db"))) == 4


def test_a_ref_whose_commit_is_lost_for_good_is_told_and_what_is_known_of_it_stays(
    repository: Repository, opened: Callable[..., Backend], tmp_path: Path
) -> None:
    add(opened(repository.folder), "written elsewhere")
    backend = opened(repository.folder, index="reading.db")  # it was told of the commit, and cannot make it again
    assert contents(backend) == ["written elsewhere"]
    tip = repository.git("rev-parse", REF)
    commit = repository.folder / ".git" / "objects" / tip[:2] / tip[2:]
    kept = commit.rename(tmp_path / "commit")
    for use in (contents, lambda backend: add(backend, "more")):
        with pytest.raises(StoreDamaged, match=f"{REF} names a commit that is missing"):
            use(backend)
    with pytest.raises(StoreDamaged, match=f"{REF} names a commit that is missing"):
        add(opened(repository.folder, index="new.db"), "more")
    assert list(tmp_path.glob("reading.db.????????????")) == [], "the ref was never taken to be gone"
    kept.rename(commit)
    assert contents(backend) == ["written elsewhere"]


class _Interrupted(Git):
    """A collection of garbage begins after the first commit, and somebody else builds on that one."""

    then: Callable[[], object] | None = None

    def run(self, *arguments: str, **given: Any) -> bytes:  # Any: as the one above has it
        done = super().run(*arguments, **given)
        if arguments[0] == "fast-import" and self.then is not None:
            then, self.then = self.then, None
            then()
        return done


def test_a_commit_on_which_somebody_has_built_while_it_was_made_sure_of_is_no_commit_that_came_too_late(
    repository: Repository,
) -> None:
    def built_on() -> None:
        (repository.folder / ".git" / "gc.pid").touch()
        tip = repository.git("rev-parse", REF)
        repository.git("update-ref", REF, repository.git("commit-tree", f"{tip}^{{tree}}", "-p", tip, "-m", "more"))

    git = _Interrupted(repository.folder)
    git.then = built_on
    reader = Reader(git)
    reference = Reference(git, reader, REF)
    made = reference.commit(Commit(message="mine", who=git.author, files={"a.txt": b"a"})).commit
    assert repository.git("rev-parse", f"{REF}~1") == made
    assert reference.file(made, "a.txt") == b"a"
    reader.close()
