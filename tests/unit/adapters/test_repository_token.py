"""A repository keeps its local file when it is moved, and a copy of it gets one of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

from backstory.adapters.stores.gitbranch.token import FILE, repository_token


def git_dir(folder: Path) -> Path:
    made = folder / ".git"
    made.mkdir(parents=True)
    return made


def test_a_token_is_made_once_and_only_on_request(tmp_path: Path) -> None:
    here = git_dir(tmp_path / "one")
    assert repository_token(here, create=False) is None
    assert list(here.iterdir()) == []
    token = repository_token(here, create=True)
    assert token is not None
    assert repository_token(here, create=True) == repository_token(here, create=False) == token
    assert [path.name for path in here.iterdir()] == [FILE]


def test_a_repository_that_is_moved_keeps_its_token(tmp_path: Path) -> None:
    token = repository_token(git_dir(tmp_path / "one"), create=True)
    (tmp_path / "one").rename(tmp_path / "two")
    assert repository_token(tmp_path / "two" / ".git", create=False) == token
    assert repository_token(git_dir(tmp_path / "one"), create=True) != token
    assert repository_token(tmp_path / "two" / ".git", create=True) == token


def test_a_copy_gets_a_token_of_its_own_and_the_original_keeps_its(tmp_path: Path) -> None:
    token = repository_token(git_dir(tmp_path / "one"), create=True)
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    assert repository_token(tmp_path / "copy" / ".git", create=False) is None
    copied = repository_token(tmp_path / "copy" / ".git", create=True)
    assert copied not in (None, token)
    assert repository_token(tmp_path / "one" / ".git", create=True) == token
    assert repository_token(tmp_path / "copy" / ".git", create=True) == copied


def test_a_damaged_token_is_made_anew_and_a_folder_that_is_gone_has_none(tmp_path: Path) -> None:
    here = git_dir(tmp_path / "one")
    (here / FILE).write_bytes(b"\x00\xff")
    token = repository_token(here, create=True)
    assert token is not None
    assert repository_token(here, create=False) == token
    assert repository_token(tmp_path / "nowhere", create=True) is None
