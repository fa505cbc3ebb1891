"""The note that tells where a server runs: believed only while that server holds it."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

import pytest

from backstory.entrypoints.http.announcement import FILE, Announcement, announced, running_server

HERE = Announcement(url="http://127.0.0.1:4747", socket=None, pid=os.getpid(), version="1")


def test_a_running_server_is_found_and_one_that_ended_is_not(tmp_path: Path) -> None:
    assert running_server(tmp_path) is None
    data = tmp_path / "data"
    with announced(data, HERE) as path:
        assert running_server(data) == HERE
        assert running_server(data) == HERE  # looking changes nothing
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert running_server(data) is None
    assert list(data.iterdir()) == []


def test_the_note_of_a_server_that_was_killed_is_stale(tmp_path: Path) -> None:
    with announced(tmp_path, HERE) as path:
        left = path.read_bytes()
    path.write_bytes(left)
    path.chmod(0o600)
    assert running_server(tmp_path) is None


def test_the_latest_of_two_servers_is_told_and_the_first_takes_nothing_away(tmp_path: Path) -> None:
    later = Announcement(url="http://localhost", socket=tmp_path / "sock", pid=2, version="1")
    first = announced(tmp_path, HERE)
    first.__enter__()
    with announced(tmp_path, later):
        assert running_server(tmp_path) == later
        first.__exit__(None, None, None)
        assert running_server(tmp_path) == later
    assert running_server(tmp_path) is None


@pytest.mark.parametrize(
    "data", [b"", b"null", b"[]", b"{", b'{"url": 1}', b'{"url":"x","socket":null,"pid":"y","version":""}']
)
def test_a_note_that_makes_no_sense_is_none(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / FILE
    path.write_bytes(data)
    path.chmod(0o600)
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert running_server(tmp_path) is None


def test_a_note_that_others_could_have_written_is_not_believed(tmp_path: Path) -> None:
    with announced(tmp_path, HERE) as path:
        path.chmod(0o660)
        assert running_server(tmp_path) is None
        path.chmod(0o600)
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
        assert running_server(tmp_path) is None
