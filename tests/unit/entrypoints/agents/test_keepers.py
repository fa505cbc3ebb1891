"""How many processes keep what was said at a time."""

from __future__ import annotations

import os
import signal
import stat
import time
from pathlib import Path

from backstory.entrypoints.agents.deadline import Deadline
from backstory.entrypoints.agents.keepers import FILE, MOST, keeper


def took_a_place(data_dir: Path) -> tuple[int, bool]:
    """A process that takes a place and stays; whether it got one."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with keeper(data_dir) as may_keep:
            os.write(writing, b"y" if may_keep else b"n")
            signal.pause()
    os.close(writing)
    got = os.read(reading, 1) == b"y"
    os.close(reading)
    return child, got


def end(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_places_are_few_and_one_whose_holder_dies_is_free_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    children: list[int] = []
    try:
        for number in range(MOST + 1):
            child, got = took_a_place(data)
            children.append(child)
            assert got is (number < MOST)
        end(children.pop(0))
        with keeper(data) as may_keep:
            assert may_keep
    finally:
        for child in children:
            end(child)
    assert stat.S_IMODE((data / FILE).stat().st_mode) == 0o600


def test_without_a_data_folder_there_is_no_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with keeper(tmp_path / "file") as may_keep:
        assert may_keep
    (tmp_path / FILE).symlink_to(tmp_path / "file")
    with keeper(tmp_path) as may_keep:
        assert may_keep


def test_a_deadline_can_be_brought_forward() -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        deadline = Deadline(within_s=600, neutral=b"late", late=lambda: None, stdout=writing, stderr=writing)
        deadline.start()
        deadline.within(0.05)
        time.sleep(60)  # goes on after a signal, which may ring while the watching thread is writing
        os._exit(1)
    os.close(writing)
    assert os.read(reading, 4) == b"late"
    assert os.waitpid(child, 0)[1] == 0
    os.close(reading)
