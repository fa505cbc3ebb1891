"""The note that tells where a server runs: believed only while that server holds it."""

from __future__ import annotations

import fcntl
import json
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


LATER = Announcement(url="http://localhost", socket=None, pid=2, version="1")


def test_when_the_latest_of_two_servers_ends_the_first_is_told_again(tmp_path: Path) -> None:
    with announced(tmp_path, HERE):
        with announced(tmp_path, LATER):
            assert running_server(tmp_path) == LATER
        assert running_server(tmp_path) == HERE
        assert json.loads((tmp_path / FILE).read_text())["pid"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


def killed(folder: Path, announcement: Announcement) -> None:
    """Leave what a server leaves that was killed: its notes, which nobody holds."""
    with announced(folder, announcement) as path:
        (own,) = [note for note in folder.iterdir() if note.samefile(path) and note != path]
        text, name = path.read_bytes(), own.name
    for note in (folder / FILE, folder / name):
        note.unlink(missing_ok=True)
        note.write_bytes(text)
        note.chmod(0o600)


def test_a_server_that_still_runs_is_found_beside_the_note_of_one_that_was_killed(tmp_path: Path) -> None:
    with announced(tmp_path, HERE):
        killed(tmp_path, LATER)
        assert running_server(tmp_path) == HERE
        with announced(tmp_path, LATER):
            assert running_server(tmp_path) == LATER
        assert running_server(tmp_path) == HERE
        assert json.loads((tmp_path / FILE).read_text())["pid"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


def test_a_note_that_goes_while_it_is_looked_at_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / FILE).write_bytes(b"{}")  # of a server that was killed
    looking = os.scandir

    def last_look(folder: Path) -> list[os.DirEntry[str]]:
        with looking(folder) as entries:
            seen = list(entries)
        gone.unlink()
        return seen

    gone = tmp_path / f".{FILE}.gone"
    gone.touch()
    monkeypatch.setattr(os, "scandir", last_look)
    assert running_server(tmp_path) is None


def test_a_server_that_only_starts_keeps_its_note_while_another_one_ends(tmp_path: Path) -> None:
    starting = tmp_path / ".serve.json.abc"
    starting.touch(mode=0o600)
    with announced(tmp_path, HERE):
        pass
    assert list(tmp_path.iterdir()) == [starting]


def test_where_a_file_has_but_one_name_the_note_is_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    with announced(tmp_path, HERE):
        assert running_server(tmp_path) == HERE
    assert list(tmp_path.iterdir()) == []


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
        (own,) = [note for note in tmp_path.iterdir() if note != path]
        own.unlink()  # which would be believed
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
        assert running_server(tmp_path) is None
