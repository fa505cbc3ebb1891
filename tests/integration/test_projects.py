"""A project keeps its memory, and its own alone, whatever happens to its folder; the git here is the real one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from backstory.entrypoints.drive import drive
from tests.integration.project_folders import REMOTE, Desk, git
from tests.integration.project_folders import desk as desk


@pytest.mark.parametrize("remote", [None, REMOTE])
def test_a_renamed_or_moved_repository_stays_its_project(desk: Desk, remote: str | None) -> None:
    ferry = desk.repository("ferry", remote=remote)
    known = desk.see(ferry)
    moved = desk.folder("harbour") / "ferry-2"
    ferry.rename(moved)
    assert desk.see(moved) == known
    again = moved.rename(desk.home / "ferry-3")
    assert desk.see(again / ".") == known
    assert len(drive(desk.backend.projects.projects())) == 1


def test_a_moved_repository_without_a_commit_stays_its_project(desk: Desk) -> None:
    empty = desk.repository("empty", commit=False)
    known = desk.see(empty)
    assert desk.see(empty.rename(desk.home / "still-empty")) == known


def test_a_repository_that_was_copied_to_another_disk_and_removed_here_stays_its_project(desk: Desk) -> None:
    ferry = desk.repository("ferry")
    known = desk.see(ferry)
    shutil.copytree(ferry, desk.home / "disk" / "ferry")
    shutil.rmtree(ferry)
    assert desk.see(desk.home / "disk" / "ferry") == known


def test_worktrees_are_one_project_also_beside_a_bare_repository_and_nested(desk: Desk) -> None:
    ferry = desk.repository("ferry")
    git(ferry, "worktree", "add", "-q", "-b", "hotfix", str(desk.home / "ferry-hotfix"))
    git(ferry, "worktree", "add", "-q", "-b", "nested", str(ferry / "trees" / "nested"))
    found = {desk.see(path) for path in (ferry, desk.home / "ferry-hotfix", ferry / "trees" / "nested")}
    assert len(found) == 1
    quay = desk.folder("quay")
    git(quay, "clone", "-q", "--bare", str(ferry), str(quay / ".bare"))
    for branch in ("main", "hotfix"):
        git(quay / ".bare", "worktree", "add", "-q", str(quay / branch), branch)
    bare = {desk.see(path) for path in (quay / "main", quay / "hotfix", quay / ".bare")}
    assert len(bare) == 1
    assert desk.look(quay / "main").name == "quay"
    assert not bare & found


@pytest.mark.parametrize(
    "written",
    [
        "git@code.example:team/ferry.git",
        "ssh://git@CODE.example:22/team/ferry",
        "https://somebody:secret@code.example/team/ferry/",
    ],
)
def test_a_second_clone_of_the_same_remote_is_the_same_project(desk: Desk, written: str) -> None:
    ferry = desk.repository("ferry", remote=REMOTE)
    known = desk.see(ferry)
    assert desk.see(desk.clone(ferry, "ferry-again", remote=written)) == known
    assert "secret" not in str(drive(desk.backend.projects.aliases()))


def test_a_remote_that_was_renamed_stays_known_and_the_new_one_is_learned(desk: Desk) -> None:
    ferry = desk.repository("ferry", remote=REMOTE)
    known = desk.see(ferry)
    git(ferry, "remote", "set-url", "origin", "git@code.example:fleet/ferry.git")
    assert desk.see(ferry) == known
    assert desk.see(desk.clone(ferry, "by-new", remote="https://code.example/fleet/ferry")) == known
    assert desk.see(desk.clone(ferry, "by-old", remote=REMOTE)) == known


def test_a_later_git_init_and_its_first_commit_keep_the_memory(desk: Desk) -> None:
    notes = desk.folder("notes")
    known = desk.see(notes)
    git(notes, "init", "-q", "-b", "main")
    assert desk.see(notes) == known
    git(notes, "commit", "-q", "--allow-empty", "-m", "start")
    git(notes, "remote", "add", "origin", REMOTE)
    assert desk.see(notes) == known
    assert desk.see(desk.clone(notes, "notes-clone", remote=REMOTE)) == known


def test_a_repository_cloned_again_at_its_old_place_stays_its_project(desk: Desk) -> None:
    ferry = desk.repository("ferry", remote=REMOTE)
    known = desk.see(ferry)
    aside = desk.clone(ferry, "aside", remote=REMOTE)
    shutil.rmtree(ferry)
    shutil.copytree(aside, ferry)
    assert desk.see(ferry) == known


def test_a_project_inside_a_parent_that_becomes_a_repository_keeps_its_memory(desk: Desk) -> None:
    parent, child = desk.folder("parent"), desk.folder("parent/child")
    of_child, of_parent = desk.see(child), desk.see(parent)
    assert of_child != of_parent
    git(parent, "init", "-q", "-b", "main")
    git(parent, "commit", "-q", "--allow-empty", "-m", "start")
    assert desk.see(child) == of_child
    assert desk.see(desk.folder("parent/child/deep")) == of_child
    assert desk.look(child).root == str(child)
    assert desk.see(parent) == of_parent
    assert desk.see(desk.folder("parent/other")) == of_parent
    assert [found.project for found in desk.candidates(of_child)] == [of_parent]


def test_a_parent_that_nobody_saw_before_it_became_a_repository_is_a_project_of_its_own(desk: Desk) -> None:
    parent, child = desk.folder("parent"), desk.folder("parent/child")
    known = desk.see(child)
    git(parent, "init", "-q")
    assert desk.see(parent) != known
    assert desk.see(child) == known


def test_subfolders_share_a_project_and_nested_repositories_and_submodules_do_not(desk: Desk) -> None:
    ferry = desk.repository("ferry")
    nested = desk.repository("ferry/vendor/nested")
    library = desk.repository("library")
    git(ferry, "submodule", "--quiet", "add", str(library), "library")
    root = desk.see(ferry)
    assert desk.see(desk.folder("ferry/packages/a")) == root
    apart = [desk.see(nested), desk.see(ferry / "library"), desk.see(library)]
    assert len({root, *apart}) == 4
    assert desk.see(ferry / "library") == apart[1]


def test_a_folder_without_git_is_a_project_and_a_folder_below_it_is_another(desk: Desk) -> None:
    home = desk.home
    of_home = desk.see(home)
    below = desk.see(desk.folder("notes"))
    assert of_home != below
    assert desk.see(home) == of_home
    assert desk.look(Path("/")).name == "/"
    assert desk.see(Path("/")) not in (of_home, below)
    git(home, "init", "-q")
    assert desk.see(home) == of_home
    assert desk.see(home / "notes") == below


def test_a_moved_folder_without_git_is_offered_and_not_joined(desk: Desk) -> None:
    notes = desk.folder("notes")
    known = desk.see(notes)
    moved = desk.see(notes.rename(desk.home / "papers"))
    assert moved != known
    assert [(found.project, "moved" in found.reason) for found in desk.candidates(moved)] == [(known, True)]
