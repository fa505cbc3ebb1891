"""Repositories that only look like one that is known, and what surrounds one: neither leads into another's memory."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from backstory.adapters import project_evidence
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.project import Project
from backstory.entrypoints.drive import drive
from backstory.errors import StoreUnavailable
from tests.integration.project_folders import REMOTE, Desk, git
from tests.integration.project_folders import desk as desk
from tests.integration.sqlite_files import as_ordinary_user


@pytest.mark.parametrize("newcomer_first", [True, False])
@pytest.mark.parametrize("remote", [None, REMOTE])
def test_another_repository_at_the_old_place_sees_nothing_of_the_moved_one(
    desk: Desk, newcomer_first: bool, remote: str | None
) -> None:
    ferry = desk.repository("ferry", remote=remote)
    known = desk.see(ferry)
    moved = ferry.rename(desk.home / "moved")
    newcomer = desk.repository("ferry-new").rename(ferry)
    order = [newcomer, moved] if newcomer_first else [moved, newcomer]
    seen = {path: desk.see(path) for path in order}
    assert (seen[moved], seen[newcomer] == known) == (known, False)
    assert (desk.see(moved), desk.see(newcomer)) == (known, seen[newcomer])


def test_a_repository_at_the_place_of_a_moved_folder_sees_nothing_of_it(desk: Desk) -> None:
    notes = desk.folder("notes")
    known = desk.see(notes)
    notes.rename(desk.home / "papers")
    newcomer = desk.see(desk.repository("notes"))
    assert newcomer != known
    assert desk.see(notes) == newcomer
    moved = desk.see(desk.home / "papers")
    assert known in [found.project for found in desk.candidates(moved)]


def test_a_fork_and_two_projects_made_from_one_template_are_candidates(desk: Desk) -> None:
    template = desk.repository("template", remote="https://code.example/team/template")
    known = desk.see(template)
    one = desk.see(desk.clone(template, "one", remote="https://code.example/me/one"))
    two = desk.see(desk.clone(template, "two", remote="https://code.example/me/two"))
    assert len({known, one, two}) == 3
    assert {found.project for found in desk.candidates(one)} == {known, two}
    assert all("another remote" in found.reason for found in desk.candidates(one))


def test_a_second_remote_that_names_the_template_does_not_join_what_was_made_from_it(desk: Desk) -> None:
    template = desk.repository("template")
    made = [desk.clone(template, name, remote=f"https://code.example/me/{name}") for name in ("one", "two")]
    for path in made:
        git(path, "remote", "add", "upstream", "https://code.example/team/template")
    assert desk.see(made[0]) != desk.see(made[1])


def test_a_copied_repository_is_a_candidate(desk: Desk) -> None:
    ferry = desk.repository("ferry")
    known = desk.see(ferry)
    subprocess.run(["cp", "-a", str(ferry), str(desk.home / "copy")], check=True)
    copied = desk.see(desk.home / "copy")
    assert copied != known
    assert [found.project for found in desk.candidates(copied)] == [known]
    assert desk.see(ferry) == known


def test_a_shallow_clone_and_an_empty_one_are_candidates_and_not_joined_by_false_roots(desk: Desk) -> None:
    ferry = desk.repository("ferry", remote=REMOTE)
    git(ferry, "commit", "-q", "--allow-empty", "-m", "more")
    known = desk.see(ferry)
    shallow = desk.see(desk.clone(ferry, "shallow", remote=REMOTE, shallow=True))
    empty = desk.see(desk.repository("empty", remote=REMOTE, commit=False))
    assert len({known, shallow, empty}) == 3
    for project in (shallow, empty):
        assert known in [found.project for found in desk.candidates(project)]
    aliases = drive(desk.backend.projects.aliases())
    assert not any(trait.startswith("root:") for alias in aliases if alias.project == shallow for trait in alias.traits)


@pytest.mark.parametrize("how", ["file", "worktree file", "link", "linked parts", "common directory"])
def test_an_unpacked_archive_cannot_claim_another_repository(desk: Desk, how: str) -> None:
    ferry = desk.repository("ferry", remote=REMOTE)
    known = desk.see(ferry)
    archive = desk.folder("archive")
    match how:
        case "file":
            (archive / ".git").write_text(f"gitdir: {ferry}/.git\n")
        case "worktree file":
            (archive / ".git").write_text("gitdir: fake\n")
            (archive / "fake").mkdir()
            (archive / "fake" / "gitdir").write_text("../.git\n")
            (archive / "fake" / "commondir").write_text(f"{ferry}/.git\n")
        case "link":
            (archive / ".git").symlink_to(ferry / ".git")
        case "linked parts":
            (archive / ".git").mkdir()
            for part in ("HEAD", "objects", "refs", "config"):
                (archive / ".git" / part).symlink_to(ferry / ".git" / part)
        case _:
            (archive / ".git").mkdir()
            (archive / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
            (archive / ".git" / "commondir").write_text(f"{ferry}/.git\n")
    assert desk.see(archive) != known
    assert desk.see(archive) != known
    assert desk.see(ferry) == known


def test_nothing_that_a_repository_names_is_run(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ferry = desk.repository("ferry", remote=REMOTE)
    trap = desk.home / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {desk.home}/sprung\n")
    trap.chmod(0o755)
    for setting in ("core.fsmonitor", "core.pager", "core.sshCommand", "uploadpack.packObjectsHook"):
        git(ferry, "config", setting, str(trap))
    for name, value in {
        "extensions.partialClone": "origin", "remote.origin.promisor": "true", "protocol.ext.allow": "always",
        "remote.origin.url": f"ext::{trap}",
    }.items():  # fmt: skip
        git(ferry, "config", name, value)
    head = git(ferry, "rev-parse", "HEAD")
    (ferry / ".git" / "objects" / head[:2] / head[2:]).unlink()
    desk.see(ferry)
    assert not (desk.home / "sprung").exists()


def test_variables_of_a_surrounding_git_do_not_lead_elsewhere(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ferry = desk.repository("ferry", remote=REMOTE)
    other = desk.repository("other")
    for name, value in {"GIT_DIR": other / ".git", "GIT_WORK_TREE": other, "GIT_INDEX_FILE": other / "i"}.items():
        monkeypatch.setenv(name, str(value))
    desk.see(ferry)
    roots = [trait for alias in drive(desk.backend.projects.aliases()) for trait in alias.traits]
    monkeypatch.undo()
    assert f"root:{git(ferry, 'rev-parse', 'HEAD')}" in roots


def test_other_refs_do_not_change_the_project(desk: Desk) -> None:
    ferry = desk.repository("ferry", remote=REMOTE)
    known = desk.see(ferry)
    orphan = git(ferry, "commit-tree", "-m", "memories", git(ferry, "mktree"))
    git(ferry, "update-ref", "refs/memory/agent", orphan)
    git(ferry, "update-ref", "refs/heads/gh-pages", orphan)
    assert desk.see(ferry) == known
    assert desk.see(desk.clone(ferry, "again", remote=REMOTE)) == known


def test_without_git_installed_known_places_stay_known(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ferry, later = desk.repository("ferry", remote=REMOTE), desk.repository("later", remote=REMOTE + "2")
    known = desk.see(ferry)
    monkeypatch.setenv("PATH", str(desk.home))
    assert desk.see(ferry) == known
    new = desk.see(later)
    assert desk.see(later) == new != known


def test_a_slow_git_gives_way_to_what_the_host_found_before(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ferry = desk.repository("ferry", remote=REMOTE)
    (ferry / ".git" / "opencode").write_text("a" * 40)
    slow = desk.folder("bin") / "git"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:/usr/bin:/bin")
    monkeypatch.setattr(project_evidence, "DEADLINE_S", 0.1)
    assert project_evidence.root_commits(ferry / ".git") == ["a" * 40]
    (ferry / ".git" / "opencode").write_text("not a commit")
    assert project_evidence.root_commits(ferry / ".git") == []


def test_git_is_asked_at_the_first_sight_of_a_place_and_not_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ferry = desk.repository("ferry", remote=REMOTE)
    known = desk.see(ferry)
    monkeypatch.setenv("PATH", str(desk.home))

    def refuse(git_dir: Path) -> list[str]:
        raise AssertionError(f"git was asked about {git_dir}")

    monkeypatch.setattr(project_evidence, "root_commits", refuse)
    assert {desk.see(ferry), desk.see(desk.folder("ferry/src"))} == {known}
    (ferry / ".git" / "config").write_text((ferry / ".git" / "config").read_text() + "[branch]\n")
    assert desk.see(ferry) == known


def test_looking_keeps_nothing_and_finds_what_is_known(desk: Desk) -> None:
    ferry = desk.repository("ferry", remote=REMOTE)
    stranger = desk.look(ferry, register=False)
    assert stranger.name == "ferry"
    assert drive(desk.backend.projects.projects()) == {}
    known = desk.see(ferry)
    moved = ferry.rename(desk.home / "moved")
    before = drive(desk.backend.projects.aliases())
    assert desk.look(moved, register=False).id == known
    assert drive(desk.backend.projects.aliases()) == before


def test_a_path_that_is_no_text_is_a_project_all_the_same(desk: Desk) -> None:
    odd = Path(str(desk.home) + "/caf\udce9")
    odd.mkdir()
    known = desk.see(odd)
    assert desk.see(odd) == known


def test_a_read_only_store_answers_and_says_that_nothing_can_be_moved(tmp_path: Path) -> None:
    path = tmp_path / "store" / "memory.db"
    desk = Desk(home=tmp_path, backend=open_sqlite(path))
    known = desk.see(desk.folder("notes"))
    drive(desk.backend.projects.rename(known, "papers"))
    drive(desk.backend.memories.close())
    path.chmod(0o444)
    path.parent.chmod(0o555)

    def asked() -> str:
        reading = Desk(home=tmp_path, backend=open_sqlite(path))
        assert reading.look(tmp_path / "notes") == Project(id=known, name="papers", root=str(tmp_path / "notes"))
        with pytest.raises(StoreUnavailable) as caught:
            drive(reading.backend.projects.rename(known, "letters"))
        return str(caught.value)

    try:
        assert as_ordinary_user(tmp_path, asked) == f"the store {path} is read-only; nothing was written"
    finally:
        path.parent.chmod(0o755)
