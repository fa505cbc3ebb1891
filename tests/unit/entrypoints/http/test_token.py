"""The token's file: made for its owner alone, refused wherever somebody else could have read or written it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from backstory.entrypoints.http.token import is_token, obtain_token, read_token, token_file
from backstory.errors import ConfigError


def test_the_token_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    assert read_token(data) is None
    token = obtain_token(data)
    assert len(token) >= 43
    assert obtain_token(data) == read_token(data) == token
    assert stat.S_IMODE(token_file(data).stat().st_mode) == 0o600
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert [path.name for path in data.iterdir()] == ["serve-token"]


def test_each_installation_has_its_own(tmp_path: Path) -> None:
    assert obtain_token(tmp_path / "a") != obtain_token(tmp_path / "b")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o602, 0o610])
def test_a_file_that_others_may_touch_is_refused_and_left_alone(tmp_path: Path, mode: int) -> None:
    token = obtain_token(tmp_path)
    token_file(tmp_path).chmod(mode)
    with pytest.raises(ConfigError, match="may be read by others"):
        obtain_token(tmp_path)
    assert token_file(tmp_path).read_text().strip() == token


def test_a_link_is_refused_wherever_it_leads(tmp_path: Path) -> None:
    real = tmp_path / "elsewhere"
    real.write_text("A" * 43)
    real.chmod(0o600)
    data = tmp_path / "data"
    data.mkdir()
    for target in (real, tmp_path / "nowhere"):
        token_file(data).unlink(missing_ok=True)
        token_file(data).symlink_to(target)
        with pytest.raises(ConfigError, match="is a link"):
            obtain_token(data)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "text", ["", "short", "with blanks " * 5, "A" * 5_000, "\x00" * 43, "ü" * 43, "A" * 43 + "\n" + "B" * 43]
)
def test_a_file_without_a_token_is_refused(tmp_path: Path, text: str) -> None:
    token_file(tmp_path).write_text(text, encoding="utf-8")
    token_file(tmp_path).chmod(0o600)
    with pytest.raises(ConfigError, match="does not hold a token"):
        obtain_token(tmp_path)


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    token_file(tmp_path).mkdir(mode=0o700)
    with pytest.raises(ConfigError, match="not a regular file"):
        obtain_token(tmp_path)


def test_a_folder_that_everybody_may_write_is_refused(tmp_path: Path) -> None:
    obtain_token(tmp_path)
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigError, match="may be written by everybody"):
        obtain_token(tmp_path)


def test_tokens_are_compared_as_bytes_of_any_kind() -> None:
    assert is_token(b"abc", "abc")
    assert not is_token(b"\xff\xfe", "abc")
    assert not is_token(b"", "abc")
