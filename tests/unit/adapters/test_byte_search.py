"""Bytes are searched whole, also where a text lies across two reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory.adapters.stores import byte_search
from backstory.adapters.stores.byte_search import ByteSearch, files_in


@pytest.mark.parametrize("at", range(24, 40))
def test_a_text_across_two_reads_is_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    monkeypatch.setattr(byte_search, "_CHUNK_BYTES", 32)
    file = tmp_path / "file"
    file.write_bytes(b"." * at + b"the cellar key" + b"." * 50)
    assert ByteSearch(["the cellar key"]).count_in_file(file) == 1


def test_cases_of_letters_and_encodings_do_not_matter() -> None:
    search = ByteSearch(["Zwetschgenkorb"])
    for data in (b"a zwetschgenKORB b", "Zwetschgenkorb".encode("utf-16-le"), "Zwetschgenkorb".encode("utf-16-be")):
        assert search.count_in(data) == 1
    assert search.count_in(b"Zwetschgen-Korb") == 0


def test_a_file_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    assert ByteSearch(["anything"]).count_in_file(tmp_path / "gone") == 0
    assert ByteSearch([]).count_in(b"anything") == 0


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "inner" / "file")
    assert files_in(tmp_path) == [tmp_path / "inner" / "file"]
