"""Reading objects while git's own process dies under the reader, as it does where a pack is removed in the midst."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from backstory.adapters.stores.gitbranch.git import Git, GitFailed
from backstory.adapters.stores.gitbranch.reader import Reader
from backstory.adapters.stores.gitbranch.reference import Reference
from backstory.errors import StoreDamaged

CONTENT = b"rebase before you merge\n" * 40


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "notes.txt").write_bytes(CONTENT)
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.invalid"]
    for arguments in (["add", "."], ["commit", "-q", "-m", "notes"]):
        subprocess.run(["git", *who, *arguments], cwd=folder, check=True)
    return folder


@pytest.fixture
def reader(repository: Path) -> Iterator[Reader]:
    reader = Reader(Git(repository))
    yield reader
    reader.close()


def _die_while_reading(folder: Path, monkeypatch: pytest.MonkeyPatch, *, times: int) -> None:
    """A git on the PATH whose first ``times`` readers end with the beginning of their first object."""
    real = shutil.which("git")
    folder.mkdir()
    script = f"""#!/bin/sh
    case "$*" in
    *cat-file*)
        echo started >> "{folder}/started"
        if [ $(wc -l < "{folder}/started") -le {times} ]; then head -n 1 | "{real}" "$@" | head -c 100; exit 128; fi ;;
    esac
    exec "{real}" "$@"
    """
    (folder / "git").write_text(script)
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def _fail_once(folder: Path, monkeypatch: pytest.MonkeyPatch, *, command: str, instead: str) -> None:
    """A git on the PATH that does something else the first time it is given a command."""
    real = shutil.which("git")
    folder.mkdir()
    script = f"""#!/bin/sh
    case "$*" in
    *{command}*) if [ ! -e "{folder}/failed" ]; then touch "{folder}/failed"; {instead}; fi ;;
    esac
    exec "{real}" "$@"
    """
    (folder / "git").write_text(script)
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_object_is_read_again_where_git_ended_in_the_midst_of_it(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    _die_while_reading(tmp_path / "bin", monkeypatch, times=times)
    found = reader.read("HEAD:notes.txt")
    assert found is not None
    assert found.data == CONTENT


def test_an_object_that_git_never_reads_to_its_end_is_damage(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _die_while_reading(tmp_path / "bin", monkeypatch, times=100)
    with pytest.raises(StoreDamaged, match=r"HEAD:notes\.txt.*git fsck"):
        reader.read("HEAD:notes.txt")


def test_an_object_that_is_not_there_is_answered_at_once(reader: Reader) -> None:
    assert reader.read_all(["HEAD:nowhere.txt", "refs/memory/none"]) == [None, None]


def test_an_object_that_git_missed_is_looked_for_once_more(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead = 'while read -r name; do echo "$name missing"; done; exit 0'
    _fail_once(tmp_path / "bin", monkeypatch, command="cat-file", instead=instead)
    found = reader.read("HEAD:notes.txt")
    assert found is not None
    assert found.data == CONTENT


def test_a_list_that_git_could_not_read_is_asked_for_again(
    reader: Reader, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead = 'echo "fatal: unable to read tree" >&2; exit 128'
    _fail_once(tmp_path / "bin", monkeypatch, command="ls-tree", instead=instead)
    reference = Reference(Git(repository), reader, "refs/memory/agent")
    assert [file.path for file in reference.files_between(None, "HEAD")] == ["notes.txt"]
    with pytest.raises(GitFailed):
        reference.files_between(None, "refs/memory/nowhere")


def test_refs_that_are_packed_again_within_a_second_are_read_anew(reader: Reader, repository: Path) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.invalid"]
        done = subprocess.run(["git", *who, *arguments], cwd=repository, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    first = git("rev-parse", "HEAD")
    second = git("commit-tree", "HEAD^{tree}", "-m", "another")
    git("update-ref", "refs/memory/agent", first)
    git("pack-refs", "--all", "--prune")
    packed = repository / ".git" / "packed-refs"
    for commit in (first, second) * 3:
        text = packed.read_text().replace(f"{first} refs/memory", f"{commit} refs/memory")
        packed.write_text(text.replace(f"{second} refs/memory", f"{commit} refs/memory"))  # as long, in the same second
        found = reader.read("refs/memory/agent^{commit}")
        assert found is not None
        assert found.name == commit
