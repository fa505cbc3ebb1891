"""Reading objects while git's own process dies under the reader, as it does where a pack is removed in the midst."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from backstory.adapters.stores.gitbranch.git import Git
from backstory.adapters.stores.gitbranch.reader import Reader
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
