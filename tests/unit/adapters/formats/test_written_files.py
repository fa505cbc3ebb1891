"""Files written for another product: all of them or none, and none outside of their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory.adapters.formats.written_files import FolderDraft
from backstory.errors import InputError


def test_a_link_in_the_folder_leads_no_file_out_of_it(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "barn").symlink_to(outside)

    with pytest.raises(InputError, match="leads out of"):
        _write(inside, "gate.txt", "barn/door.txt")

    assert list(outside.iterdir()) == []
    assert [path.name for path in inside.iterdir()] == ["barn"]


def test_a_link_that_stands_in_the_place_of_a_whole_folder_is_replaced(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "barn").symlink_to(outside)

    with FolderDraft(tmp_path / "inside", whole=["barn"]) as draft:
        draft.put("barn/door.txt", b"green")

    assert (tmp_path / "inside" / "barn" / "door.txt").read_bytes() == b"green"
    assert not (tmp_path / "inside" / "barn").is_symlink()
    assert list(outside.iterdir()) == []


def _write(folder: Path, *paths: str) -> None:
    with FolderDraft(folder) as draft:
        for path in paths:
            draft.put(path, b"oiled")
