"""Which folders are one project, told from git's own files; the git here is the real one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backstory.adapters.git_settings import main_remote
from backstory.adapters.project_folder import project_root, see_project


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.invalid", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "ferry"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "start")
    return folder


def test_a_subfolder_belongs_to_the_repository_around_it(repository: Path) -> None:
    below = repository / "src" / "deep"
    below.mkdir(parents=True)
    assert see_project(below) == see_project(repository)
    assert project_root(below) == repository


def test_a_worktree_shares_the_project_but_has_its_own_root(repository: Path, tmp_path: Path) -> None:
    tree = tmp_path / "ferry-hotfix"
    git(repository, "worktree", "add", "-q", "-b", "hotfix", str(tree))
    assert see_project(tree).aliases == see_project(repository).aliases
    assert see_project(tree).name == "ferry"
    assert project_root(tree) == tree


def test_another_repository_is_another_project(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    assert not set(see_project(other).aliases) & set(see_project(repository).aliases)


def test_a_submodule_is_a_project_of_its_own(repository: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    git(library, "commit", "-q", "--allow-empty", "-m", "start")
    git(repository, "submodule", "--quiet", "add", str(library), "vendor/library")
    inside = see_project(repository / "vendor" / "library")
    assert inside.aliases != see_project(repository).aliases


def test_a_folder_outside_git_is_its_own_project(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    assert see_project(folder).aliases == (f"dir:{folder}",)
    assert see_project(folder).name == "notes"


def test_a_bare_repository_is_a_project(tmp_path: Path) -> None:
    folder = tmp_path / "bare.git"
    folder.mkdir()
    git(folder, "init", "-q", "--bare")
    assert see_project(folder).aliases[0] == f"git:{folder}"


def test_a_linked_path_is_the_folder_it_leads_to(repository: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(repository)
    assert see_project(link) == see_project(repository)


@pytest.mark.parametrize("content", [b"", b"gitdir:", b"\xff\xfe", b"gitdir: /nowhere/at/all\n"])
def test_a_broken_git_file_does_not_stop_anything(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".git").write_bytes(content)
    assert see_project(tmp_path).aliases


def test_a_folder_that_does_not_exist_is_seen_all_the_same(tmp_path: Path) -> None:
    assert see_project(tmp_path / "gone").name == "gone"


def test_a_later_git_init_keeps_an_alias_of_the_folder(tmp_path: Path) -> None:
    before = see_project(tmp_path)
    git(tmp_path, "init", "-q")
    after = see_project(tmp_path)
    assert set(before.aliases) & set(after.aliases)
    assert after.aliases[0].startswith("git:")


def test_a_git_file_cannot_claim_a_repository_that_does_not_know_it(repository: Path, tmp_path: Path) -> None:
    impostor = tmp_path / "unpacked"
    impostor.mkdir()
    (impostor / ".git").write_text(f"gitdir: {repository}/.git\n")
    assert not set(see_project(impostor).aliases) & set(see_project(repository).aliases)
    tree = tmp_path / "ferry-hotfix"
    git(repository, "worktree", "add", "-q", "-b", "hotfix", str(tree))
    (impostor / ".git").write_text((tree / ".git").read_text())
    assert not set(see_project(impostor).aliases) & set(see_project(repository).aliases)


def test_a_git_file_cannot_lead_elsewhere_by_a_common_directory_of_its_own(repository: Path, tmp_path: Path) -> None:
    impostor = tmp_path / "unpacked"
    (impostor / "fake").mkdir(parents=True)
    (impostor / ".git").write_text("gitdir: fake\n")
    (impostor / "fake" / "gitdir").write_text("../.git\n")
    (impostor / "fake" / "commondir").write_text(f"{repository}/.git\n")
    assert not set(see_project(impostor).aliases) & set(see_project(repository).aliases)


def test_a_stamp_stays_when_a_folder_moves_and_differs_for_a_copy(repository: Path, tmp_path: Path) -> None:
    def stamp(folder: Path) -> str:
        seen = see_project(folder)
        assert seen.git is not None
        return seen.stamp(seen.git)

    before = stamp(repository)
    assert len(before.split(":")) == 3
    subprocess.run(["cp", "-a", str(repository), str(tmp_path / "copy")], check=True)
    assert stamp(tmp_path / "copy") != before
    assert stamp(repository.rename(tmp_path / "moved")) == before


def test_the_state_tells_of_commits_a_shallow_history_and_settings(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    states = [see_project(tmp_path).looked]
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "start")
    states.append(see_project(tmp_path).looked)
    git(tmp_path, "config", "some.thing", "1")
    states.append(see_project(tmp_path).looked)
    git(tmp_path, "pack-refs", "--all")
    assert see_project(tmp_path).looked == states[-1]
    (tmp_path / ".git" / "shallow").touch()
    states.append(see_project(tmp_path).looked)
    assert [state.partition(":")[0] for state in states] == ["empty", "commits", "commits", "shallow"]
    assert len(set(states)) == 4


def test_folders_between_here_and_the_root_are_told_nearest_first(repository: Path) -> None:
    below = repository / "src" / "deep"
    below.mkdir(parents=True)
    assert see_project(below).inner == (f"dir:{below}", f"dir:{below.parent}")
    assert see_project(repository).inner == ()


@pytest.mark.parametrize(("name", "called"), [("ferry.git", "ferry"), ("quay/.bare", "quay"), ("plain", "plain")])
def test_a_bare_repository_is_called_after_itself(tmp_path: Path, name: str, called: str) -> None:
    (tmp_path / name).mkdir(parents=True)
    git(tmp_path / name, "init", "-q", "--bare")
    assert see_project(tmp_path / name).name == called


@pytest.mark.parametrize("named", ["../ferry\0/.git", "x/" * 5000, "x" * 50_000, "link/x", ""])
def test_a_git_file_that_names_no_folder_leaves_a_folder_outside_git(tmp_path: Path, named: str) -> None:
    (tmp_path / "link").symlink_to("link")
    (tmp_path / ".git").write_text(f"gitdir: {named}\n", encoding="utf-8")
    assert see_project(tmp_path).aliases == (f"dir:{tmp_path}",)


@pytest.mark.parametrize(("file", "content"), [("gitdir", "a\0b"), ("config", "worktree = a\0b")])
def test_a_git_directory_that_names_no_checkout_leaves_a_folder_outside_git(
    tmp_path: Path, file: str, content: str
) -> None:
    (tmp_path / "made-up").mkdir()
    (tmp_path / "made-up" / file).write_text(content, encoding="utf-8")
    (tmp_path / ".git").write_text("gitdir: made-up\n", encoding="utf-8")
    assert see_project(tmp_path).aliases == (f"dir:{tmp_path}",)


@pytest.mark.parametrize("pipe", ["gitdir", "config"])
def test_a_pipe_in_place_of_a_file_of_git_is_not_waited_for(tmp_path: Path, pipe: str) -> None:
    (tmp_path / "made-up").mkdir()
    os.mkfifo(tmp_path / "made-up" / pipe)
    (tmp_path / ".git").write_text("gitdir: made-up\n", encoding="utf-8")
    program = (
        "import pathlib, sys; from backstory.adapters.project_folder import *; see_project(pathlib.Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=240)
    assert main_remote(tmp_path / "made-up") is None
