"""A store in every sort of repository, with others at work in it: nothing is lost, nothing of theirs is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from backstory.adapters.project_folder import see_project
from backstory.domain.history import Action, Edit
from backstory.domain.ids import ProjectId
from backstory.errors import StoreUnavailable
from backstory.ports.backend import Backend
from backstory.testing.fakes import START
from tests.integration.git_repositories import IDS, REF, Repository, add, commit, contents, everything, run
from tests.integration.git_repositories import opened as opened
from tests.integration.git_repositories import repository as repository


def register(backend: Backend, folder: Path) -> ProjectId:
    return run(backend.projects.identify, see_project(folder), now=START, new_id=ProjectId(IDS.new_id())).id


def test_writers_in_many_processes_lose_nothing(
    repository: Repository, opened: Callable[..., Backend], tmp_path: Path
) -> None:
    worktree = tmp_path / "beside"
    repository.git("commit", "-q", "--allow-empty", "-m", "start")
    repository.git("worktree", "add", "-q", str(worktree))
    code = textwrap.dedent("""
        import sys
        from pathlib import Path
        import anyio
        from backstory.adapters.clock import UlidSource
        from backstory.adapters.stores.gitbranch.store import open_git
        from backstory.domain.history import Action, Author, Change, Edit
        from backstory.testing.fakes import START, sample_memory
        folder, index, who = sys.argv[1:]
        async def main():
            backend = open_git(Path(folder), index=Path(index))
            ids = UlidSource()
            for n in range(8):
                memory = sample_memory(f"{who} says {n}")
                edits = (Edit(before=None, after=memory),)
                await backend.memories.commit(
                    Change(id=ids.new_id(), at=START, author=Author.USER, action=Action.ADD, edits=edits))
            await backend.memories.close()
        anyio.run(main)
    """)
    # two share a local store, two have one of their own: only the ref is between them
    places = [
        (repository.folder, "local.db"), (worktree, "local.db"), (repository.folder, "b.db"), (worktree, "c.db"),
    ]  # fmt: skip
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(folder), str(tmp_path / index), f"writer {n}"])
        for n, (folder, index) in enumerate(places)
    ]
    assert [writer.wait(240) for writer in writers] == [0, 0, 0, 0]
    assert len(repository.lines()) == 32
    backend = opened(repository.folder)
    assert len(everything(backend)) == 32
    assert len({memory.n for memory in everything(backend)}) == 32
    repository.git("fsck", "--strict")


def test_staged_changes_a_merge_under_way_and_the_stash_stay_as_they_are(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    file = repository.folder / "file.txt"
    file.write_text("base\n")
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "base")
    repository.git("checkout", "-q", "-b", "other")
    file.write_text("theirs\n")
    repository.git("commit", "-q", "-am", "theirs")
    repository.git("checkout", "-q", "main")
    file.write_text("stashed\n")
    repository.git("stash", "-q")
    file.write_text("ours\n")
    repository.git("commit", "-q", "-am", "ours")
    subprocess.run(["git", "merge", "-q", "other"], cwd=repository.folder, capture_output=True)
    (repository.folder / "staged.txt").write_text("staged\n")
    repository.git("add", "staged.txt")
    (repository.folder / "staged.txt").write_text("and more\n")

    def state() -> tuple[object, ...]:
        git = repository.folder / ".git"
        return (
            (git / "index").read_bytes(),
            (git / "HEAD").read_bytes(),
            (git / "config").read_bytes(),
            (git / "MERGE_HEAD").read_bytes(),
            repository.git("status", "--porcelain=v2", "--ignored"),
            repository.git("stash", "list"),
            repository.git("for-each-ref", "refs/heads", "refs/stash"),
        )

    before = state()
    backend = opened(repository.folder)
    for number in range(5):
        add(backend, f"memory {number}")
    assert everything(backend)
    assert state() == before
    assert not list((repository.folder / ".git").glob("fast_import_crash*"))


@pytest.mark.parametrize("place", ["subfolder", "worktree", "bare", "unborn", "detached", "shallow", "sha256"])
def test_it_works_in_every_sort_of_repository(
    place: str, repository: Repository, opened: Callable[..., Backend], tmp_path: Path
) -> None:
    folder = repository.folder
    if place not in ("unborn", "sha256"):
        (folder / "deep" / "down").mkdir(parents=True)
        (folder / "deep" / "file").write_text("x")
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", "start")
    if place == "subfolder":
        folder = folder / "deep" / "down"
    elif place == "worktree":
        repository.git("worktree", "add", "-q", str(tmp_path / "tree"))
        folder = tmp_path / "tree"
    elif place == "bare":
        folder = Repository(tmp_path / "bare.git", bare=True).folder
    elif place == "detached":
        repository.git("checkout", "-q", "--detach")
    elif place == "shallow":
        repository.git("clone", "-q", "--depth=1", f"file://{repository.folder}", str(tmp_path / "clone"))
        folder = tmp_path / "clone"
    elif place == "sha256":
        folder = tmp_path / "modern"
        folder.mkdir()
        repository.git("init", "-q", "--object-format=sha256", cwd=folder)
    backend = opened(folder)
    memory = add(backend, f"remembered in {place}")
    commit(backend, Edit(before=memory, after=replace(memory, pinned=True)), action=Action.PIN)
    assert contents(opened(folder, index="again.db")) == [f"remembered in {place}"]
    if place != "bare":
        assert repository.git("status", "--porcelain", cwd=folder) == ""


def test_worktrees_of_one_repository_share_their_memories(
    repository: Repository, opened: Callable[..., Backend], tmp_path: Path
) -> None:
    repository.git("commit", "-q", "--allow-empty", "-m", "start")
    repository.git("worktree", "add", "-q", str(tmp_path / "tree"))
    backend = opened(repository.folder)
    project = register(backend, repository.folder)
    add(backend, "shared", project=project)
    other = opened(tmp_path / "tree", index="tree.db")
    assert register(other, tmp_path / "tree") == project
    assert contents(other) == ["shared"]


def test_variables_of_a_surrounding_hook_lead_nowhere(
    repository: Repository, opened: Callable[..., Backend], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repository(tmp_path / "other")
    other.git("commit", "-q", "--allow-empty", "-m", "start")
    before = other.git("for-each-ref")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.folder))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.folder / ".git" / "index"))
    add(opened(repository.folder), "in the right place")
    assert len(repository.lines()) == 1
    assert other.git("for-each-ref") == before


def test_it_writes_without_an_identity_and_without_signing(
    repository: Repository, opened: Callable[..., Backend], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for setting in ("user.useConfigOnly", "commit.gpgSign", "core.autocrlf"):
        repository.git("config", setting, "true")
    hook = repository.folder / ".git" / "hooks" / "reference-transaction"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    add(opened(repository.folder), "nobody wrote this\r\nfor certain")
    assert repository.git("log", "-1", "--format=%an <%ae>", REF) == "Backstory <backstory@localhost>"
    assert r"this\r\nfor" in repository.lines()[0]


def test_it_writes_as_whoever_works_here(repository: Repository, opened: Callable[..., Backend]) -> None:
    repository.git("config", "user.name", "Grace Ünal")
    repository.git("config", "user.email", "grace@example.invalid")
    add(opened(repository.folder), "by somebody")
    assert repository.git("log", "-1", "--format=%an <%ae>", REF) == "Grace Ünal <grace@example.invalid>"


def test_outside_a_repository_nothing_is_said_to_be_stored(opened: Callable[..., Backend], tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    backend = opened(tmp_path / "plain")
    with pytest.raises(StoreUnavailable, match="not in a git repository"):
        add(backend, "nowhere")
    with pytest.raises(StoreUnavailable, match="does not exist"):
        add(opened(tmp_path / "missing", index="m.db"), "nowhere")


def test_a_repository_of_another_user_is_refused_with_the_command_that_helps(
    repository: Repository, opened: Callable[..., Backend], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(StoreUnavailable, match=r"git config --global --add safe\.directory"):
        add(opened(repository.folder), "not mine")
    assert not (tmp_path / ".gitconfig").exists()


def test_without_git_it_says_so(
    repository: Repository, opened: Callable[..., Backend], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreUnavailable, match="git is not installed"):
        add(opened(repository.folder), "x")


def test_the_first_commit_never_becomes_the_identity_of_the_repository(
    repository: Repository, opened: Callable[..., Backend]
) -> None:
    repository.git("commit", "-q", "--allow-empty", "-m", "start")
    root = repository.git("rev-parse", "HEAD")
    add(opened(repository.folder), "an orphan")
    roots = repository.git("rev-list", "--max-parents=0", "--all").splitlines()
    assert len(roots) == 2
    assert roots[0] == root
    assert min(roots) == root
    assert max(roots).startswith("ffffffa7")


def test_every_process_of_git_ends_with_the_store(repository: Repository, opened: Callable[..., Backend]) -> None:
    def running() -> set[str]:
        """Every git that this process has started, whichever test did."""
        return set(
            subprocess.run(["pgrep", "-P", str(os.getpid()), "git"], capture_output=True, text=True).stdout.split()
        )

    if not shutil.which("pgrep"):
        pytest.skip("there is no pgrep to ask")
    before = running()
    backend = opened(repository.folder)
    add(backend, "x")
    assert running() - before
    run(backend.memories.close)
    assert running() <= before
