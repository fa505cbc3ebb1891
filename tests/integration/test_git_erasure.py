"""Erasing from a git store: the ref's whole history, its objects, the file beside it, and what comes back by a sync."""

from __future__ import annotations

import subprocess
import zlib
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from backstory.adapters.stores.gitbranch.connection import GitConnection
from backstory.adapters.stores.gitbranch.store import GitMemories, open_git
from backstory.domain.erasure import eraser_of
from backstory.domain.history import Action, Author, Edit
from backstory.domain.ids import ChangeId
from backstory.entrypoints.drive import drive
from backstory.errors import Conflict
from backstory.ports.erasing import Erasure, Receipt
from backstory.ports.upkeep import Severity
from backstory.testing.fakes import add_memories, sample_change, sample_memory
from tests.erased import OTHER_TEXT, PERSON, SECRET_TEXT, WORDS, Keeper, files_with, filled, keeper

REF = "refs/memory/agent"


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Anna", "-c", "user.email=anna@example.org")
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def opened(folder: Path, *, series: int = 0, hashing: str = "sha1") -> Keeper:
    """A repository in the folder with a commit of somebody's, and its store."""
    repository = folder / "repository"
    if not repository.exists():
        folder.mkdir(exist_ok=True)
        git(folder, "init", "-q", f"--object-format={hashing}", str(repository))
        (repository / "README").write_text("An orchard.\n")
        git(repository, "add", "README")
        git(repository, "commit", "-q", "-m", "begin")
    patience = timedelta(seconds=5)
    return keeper(open_git(repository, index=folder / "store" / "local.db", busy_timeout=patience), series=series)


def erase(kept: Keeper, *refs: str, text: str | None = None) -> Receipt:
    plan = drive(kept.erasing.plan(refs, text=text, viewer=PERSON))
    receipt = drive(kept.erasing.erase(plan, viewer=PERSON, author=Author.USER))
    assert receipt is not None
    return receipt


def check_whole(kept: Keeper, repository: Path) -> None:
    assert kept.backend.upkeep is not None
    findings = drive(kept.backend.upkeep.verify(full=True))
    assert [found for found in findings if found.severity is not Severity.NOTE] == []
    assert git(repository, "fsck", "--full", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize("hashing", ["sha1", "sha256"])
def test_an_erased_memory_is_in_no_object_and_in_no_byte_beside_them(tmp_path: Path, hashing: str) -> None:
    kept = opened(tmp_path, hashing=hashing)
    filled(kept)
    kept.say("Plums are picked in August")
    repository = tmp_path / "repository"
    before = git(repository, "log", "--format=%an %ae %at %cn %ct", REF).splitlines()
    assert files_with(tmp_path, *WORDS)
    receipt = erase(kept, "#2")
    assert files_with(tmp_path, SECRET_TEXT, *WORDS) == []
    assert (receipt.finished, receipt.traces) == (True, ())
    assert receipt.places["commits"] >= 3
    after = git(repository, "log", "--format=%an %ae %at %cn %ct", REF).splitlines()
    assert after[-len(before) :] == before
    check_whole(kept, repository)
    lines = "".join(git(repository, "show", f"{REF}:{path}") for path in _paths(repository, ".opencode/memory"))
    assert OTHER_TEXT in lines
    assert "Remember what was said: [erased] (by Anna)" in lines
    drive(kept.backend.memories.close())


def _paths(repository: Path, below: str) -> list[str]:
    return git(repository, "ls-tree", "-r", "--name-only", REF, f"{below}/").splitlines()


def test_what_is_read_from_the_ref_anew_is_what_is_here(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    filled(kept)
    erase(kept, "#2")
    drive(kept.backend.memories.close())
    anew = keeper(open_git(tmp_path / "repository", index=tmp_path / "other.db"), series=1)
    for n in (1, 2, 3):
        one, other = drive(kept.backend.memories.by_number(n)), drive(anew.backend.memories.by_number(n))
        assert one is not None
        assert other is not None
        assert (one.content, one.status, one.tags) == (other.content, other.status, other.tags)
    drive(anew.backend.memories.close())
    drive(kept.backend.memories.close())


def test_packed_objects_go_too_and_nobody_elses_does(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    filled(kept)
    drive(kept.backend.memories.close())
    repository = tmp_path / "repository"
    (repository / "README").write_text("Lost and found.\n")
    git(repository, "commit", "-q", "-am", "amended away")
    lost = git(repository, "rev-parse", "HEAD")
    git(repository, "gc", "-q")
    git(repository, "commit-graph", "write", "--reachable")
    git(repository, "reset", "-q", "--hard", "HEAD~1")
    dangling = _blob(repository, "a note of mine")
    log = git(repository, "reflog", "HEAD")
    erase(kept, "#2")
    assert files_with(tmp_path, *WORDS) == []
    assert git(repository, "cat-file", "-t", lost) == "commit"
    assert git(repository, "cat-file", "-p", dangling) == "a note of mine"
    assert git(repository, "reflog", "HEAD") == log
    check_whole(kept, repository)
    drive(kept.backend.memories.close())


def _blob(repository: Path, text: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(repository), "hash-object", "-w", "--stdin"], input=text, text=True, check=True,
        capture_output=True,
    )  # fmt: skip
    return done.stdout.strip()


def test_a_log_of_the_ref_is_emptied_and_that_of_a_branch_is_not(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    repository = tmp_path / "repository"
    git(repository, "config", "core.logAllRefUpdates", "always")
    filled(kept)
    assert git(repository, "reflog", "show", REF)
    erase(kept, "#2")
    assert files_with(tmp_path, *WORDS) == []
    assert git(repository, "reflog", "show", "HEAD")
    drive(kept.backend.memories.close())


def test_old_commits_in_the_log_of_a_checkout_are_told_and_go_when_that_is_emptied(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    filled(kept)
    repository = tmp_path / "repository"
    git(repository, "checkout", "-q", REF)
    git(repository, "checkout", "-q", "-")
    receipt = erase(kept, "#2")
    assert not receipt.finished
    assert any("git reflog expire" in line for line in receipt.remains)
    git(repository, "reflog", "expire", "--expire-unreachable=now", "HEAD")
    (finished,) = drive(kept.erasing.finish(viewer=PERSON))
    assert finished.finished
    assert not any("git reflog expire" in line for line in finished.remains)
    assert files_with(tmp_path, SECRET_TEXT, *WORDS) == []
    check_whole(kept, repository)
    drive(kept.backend.memories.close())


def test_what_a_killed_git_left_of_an_object_is_found(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    filled(kept)
    left = tmp_path / "repository" / ".git" / "objects" / "0a" / "tmp_obj_f00d"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(zlib.compress(f"blob 99\0{SECRET_TEXT} and more".encode())[:-4])
    receipt = erase(kept, "#2")
    assert [trace.where for trace in receipt.traces or ()] == [f"{left}, left by a git that was killed"]
    drive(kept.backend.memories.close())


def test_a_text_in_the_users_own_commits_is_told_and_left_alone(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    repository = tmp_path / "repository"
    (repository / "NOTES").write_text("In the Zwetschgenkorb.\n")
    git(repository, "add", "NOTES")
    git(repository, "commit", "-q", "-m", "notes")
    kept.say("The key lies in the Zwetschgenkorb")
    receipt = erase(kept, text="Zwetschgenkorb")
    assert [trace.beside for trace in receipt.traces or ()] == [True]
    assert git(repository, "show", "HEAD:NOTES") == "In the Zwetschgenkorb."
    drive(kept.backend.memories.close())


def test_lines_of_another_tool_go_with_the_memory_that_they_are(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    kept.say(OTHER_TEXT)
    drive(kept.backend.memories.close())
    repository = tmp_path / "repository"
    line = (
        'ts=2026-03-01T10:00:00.000Z type=decision scope=cold content="the Zwetschgenkorb is locked" tags=quince-keys\n'
    )
    blob = _blob(repository, line)
    git(repository, "read-tree", "--empty")
    git(repository, "read-tree", REF)
    git(repository, "update-index", "--add", "--cacheinfo", f"100644,{blob},.opencode/memory/2026-03-01.logfmt")
    tree = git(repository, "write-tree")
    commit = git(repository, "commit-tree", tree, "-p", REF, "-m", "memory: add decision/cold")
    git(repository, "update-ref", REF, commit)
    git(repository, "read-tree", "HEAD")
    adopted = drive(kept.backend.memories.by_number(2))
    assert adopted is not None
    assert adopted.tags == ("quince-keys",)
    viewer = replace(PERSON, project=adopted.project)
    plan = drive(kept.erasing.plan(["#2"], text=None, viewer=viewer))
    drive(kept.erasing.erase(plan, viewer=viewer, author=Author.USER))
    assert files_with(tmp_path, "Zwetschgenkorb", "is locked", "quince-keys") == []
    check_whole(kept, repository)
    drive(kept.backend.memories.close())


def test_a_crash_before_the_ref_moves_is_made_good_by_whoever_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = opened(tmp_path)
    filled(kept)
    plan = drive(kept.erasing.plan(["#2"], text=None, viewer=PERSON))

    class Killed(BaseException):
        """As a kill, for what runs in this process."""

    async def die(self: object, fn: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(GitConnection, "write", die)
        assert kept.backend.eraser is not None
        erasure = Erasure(
            id=ChangeId(kept.ids.new_id()), at=kept.clock.now(), memories=tuple(memory.id for memory in plan.memories),
            rewrite=eraser_of(plan.texts), reason="erased for good",
        )  # fmt: skip
        with pytest.raises(Killed):
            drive(kept.backend.eraser.erase(erasure))
    repository = tmp_path / "repository"
    drive(kept.backend.memories.close())
    again = opened(tmp_path, series=1)
    gone = drive(again.backend.memories.by_number(2))
    assert gone is not None
    assert gone.content == "[erased]"
    (receipt,) = drive(again.erasing.finish(viewer=PERSON))
    assert receipt.finished
    assert files_with(tmp_path, *WORDS) == []
    check_whole(again, repository)
    drive(again.backend.memories.close())


def test_a_remote_that_still_has_it_is_named_and_a_sync_does_not_bring_it_back(tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", str(remote))
    here = opened(tmp_path / "here")
    repository = tmp_path / "here" / "repository"
    git(repository, "remote", "add", "origin", str(remote))
    filled(here)
    assert isinstance(here.backend.memories, GitMemories)
    drive(here.backend.memories.synchronise(None, dry_run=False, trusted=False))
    there = opened(tmp_path / "there", series=1)
    git(tmp_path / "there" / "repository", "remote", "add", "origin", str(remote))
    assert isinstance(there.backend.memories, GitMemories)
    drive(there.backend.memories.synchronise(None, dry_run=False, trusted=False))

    receipt = erase(here, "#2")
    command = next(line for line in receipt.remains if "force-with-lease" in line).partition("git ")[2].split()
    assert files_with(tmp_path / "here", *WORDS) == []
    with pytest.raises(Conflict, match="force-with-lease"):
        drive(here.backend.memories.synchronise(None, dry_run=False, trusted=False))
    assert files_with(tmp_path / "here", *WORDS) == []

    git(repository, *command)
    told = drive(here.backend.memories.synchronise(None, dry_run=False, trusted=False))
    assert (told.received, told.sent) == (0, 0)

    there.say("Figs are dried in October")  # a clone that knows of nothing sends it all again
    drive(there.backend.memories.synchronise(None, dry_run=False, trusted=False))
    with pytest.raises(Conflict, match="force-with-lease"):
        drive(here.backend.memories.synchronise(None, dry_run=False, trusted=False))
    assert files_with(tmp_path / "here", *WORDS) == []
    for kept in (here, there):
        drive(kept.backend.memories.close())


def test_a_memory_that_comes_back_by_another_history_is_refused(tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", str(remote))
    here = opened(tmp_path / "here")
    repository = tmp_path / "here" / "repository"
    git(repository, "remote", "add", "origin", str(remote))
    here.say(OTHER_TEXT)
    here.say("The key lies in the Zwetschgenkorb")
    (tmp_path / "elsewhere").mkdir()
    assert here.backend.upkeep is not None
    drive(here.backend.upkeep.backup(tmp_path / "elsewhere" / "copy.db"))
    there = opened(tmp_path / "there", series=1)
    git(tmp_path / "there" / "repository", "remote", "add", "origin", str(remote))
    assert there.backend.upkeep is not None
    drive(there.backend.upkeep.restore(tmp_path / "elsewhere" / "copy.db"))
    assert isinstance(there.backend.memories, GitMemories)
    drive(there.backend.memories.synchronise(None, dry_run=False, trusted=False))
    erase(here, "#2")
    assert isinstance(here.backend.memories, GitMemories)
    with pytest.raises(Conflict, match="erased here"):
        drive(here.backend.memories.synchronise(None, dry_run=False, trusted=False))
    assert files_with(tmp_path / "here", "Zwetschgenkorb") == []
    git(repository, "fetch", "-q", "origin", f"+{REF}:{REF}")  # by hand
    with pytest.raises(Conflict, match="set it back: git update-ref"):
        drive(here.backend.memories.by_number(1))
    for kept in (here, there):
        drive(kept.backend.memories.close())


def test_secrets_in_messages_and_old_versions_are_found_and_masked(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    token = "ghp_" + "Kq7vW2nLx9" * 3 + "Zr4TbY"
    (leaky,) = drive(add_memories(kept.backend.memories, sample_memory(f"deploy with {token}")))
    edit = Edit(before=leaky, after=replace(leaky, content="deploy by hand"))
    reason = f"the token {token} was revoked"
    drive(kept.backend.memories.commit(sample_change(77, edit, action=Action.UPDATE, reason=reason)))
    found = drive(kept.sweep.look(PERSON))
    assert {finding.place for finding in found} == {"history", "commits"}
    assert all(token not in repr(finding) for finding in found)
    swept = drive(kept.sweep.fix(PERSON))
    assert (swept.left, swept.receipt is not None and swept.receipt.traces) == ((), ())
    assert files_with(tmp_path, token) == []
    check_whole(kept, tmp_path / "repository")
    drive(kept.backend.memories.close())
