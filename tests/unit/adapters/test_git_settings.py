"""The main remote, read from settings as git writes them and as people do."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory.adapters.git_settings import main_remote


@pytest.mark.parametrize(
    ("text", "remote"),
    [
        ('[remote "origin"]\n\turl = https://forge.example/crew/ketch.git\n', "forge.example/crew/ketch"),
        ('[remote "up"]\nurl=https://a.example/x\n[remote "origin"]\nurl=https://b.example/y\n', "b.example/y"),
        ('[remote "up"]\nurl=https://a.example/x\n[remote "fork"]\nurl=https://b.example/y\n', "a.example/x"),
        ('[remote "origin"]\nurl = https://a.example/x\nurl = https://b.example/y\n', "a.example/x"),
        ('[remote "origin"] url = "https://a.example/x" ; said\n', "a.example/x"),
        ('[REMOTE "origin"]\nURL = https://a.example/x # said\n', "a.example/x"),
        ('[remote "origin"]\nurl = https://a.exa\\\nmple/x\n', "a.example/x"),
        ('\ufeff[remote "origin"]\r\nurl = git@a.example:x.git\r\n', "a.example/x"),
        ('[remote "Origin"]\nurl = https://a.example/x\n', "a.example/x"),
        ('[branch "origin"]\nurl = https://a.example/x\n', None),
        ('[remote "origin"]\nfetch = +refs/heads/*\n; url = https://a.example/x\n', None),
        ('[remote "origin"]\nurl = ../relative\n', None),
        ("url = https://a.example/x\n[[[\n]\n\x00", None),
        ("", None),
    ],
)
def test_the_main_remote_is_read(tmp_path: Path, text: str, remote: str | None) -> None:
    (tmp_path / "config").write_text(text, encoding="utf-8")
    assert main_remote(tmp_path) == remote


def test_settings_that_cannot_be_read_name_nothing(tmp_path: Path) -> None:
    assert main_remote(tmp_path) is None
    (tmp_path / "config").mkdir()
    assert main_remote(tmp_path) is None


def test_bytes_that_are_no_text_do_not_stop_the_rest(tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes(b'[user]\nname = \xff\xfe\n[remote "origin"]\nurl = https://a.example/x\n')
    assert main_remote(tmp_path) == "a.example/x"
