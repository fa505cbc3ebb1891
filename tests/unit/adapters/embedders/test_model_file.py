"""A model file is hashed once and remembered; any other file is refused."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from backstory.adapters.embedders.model_file import check_model_file
from backstory.errors import ModelUnavailable

GOOD = b"weights" * 1000
SHA256 = hashlib.sha256(GOOD).hexdigest()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(GOOD)
    return path


def spoil_unseen(path: Path) -> None:
    """Change the content but neither size nor time, so that only hashing would notice."""
    stat = path.stat()
    path.write_bytes(b"x" * len(GOOD))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_the_right_file_passes_and_is_not_hashed_again(model: Path, tmp_path: Path) -> None:
    check_model_file(model, sha256=SHA256, cache_dir=tmp_path / "cache" / "deep")
    spoil_unseen(model)
    check_model_file(model, sha256=SHA256, cache_dir=tmp_path / "cache" / "deep")


def test_without_a_cache_every_load_hashes(model: Path) -> None:
    check_model_file(model, sha256=SHA256, cache_dir=None)
    spoil_unseen(model)
    with pytest.raises(ModelUnavailable, match="damaged or another model"):
        check_model_file(model, sha256=SHA256, cache_dir=None)


def test_a_changed_file_is_hashed_again_and_refused_every_time(model: Path, tmp_path: Path) -> None:
    check_model_file(model, sha256=SHA256, cache_dir=tmp_path)
    model.write_bytes(GOOD + b"!")
    for _ in range(2):
        with pytest.raises(ModelUnavailable, match="damaged or another model"):
            check_model_file(model, sha256=SHA256, cache_dir=tmp_path)


def test_a_note_for_another_digest_does_not_count(model: Path, tmp_path: Path) -> None:
    check_model_file(model, sha256=SHA256, cache_dir=tmp_path)
    with pytest.raises(ModelUnavailable):
        check_model_file(model, sha256="0" * 64, cache_dir=tmp_path)


def test_a_broken_note_is_replaced(model: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    check_model_file(model, sha256=SHA256, cache_dir=cache)
    (note,) = cache.iterdir()
    right = note.read_bytes()
    note.write_bytes(b"\xff\x00 junk")
    check_model_file(model, sha256=SHA256, cache_dir=cache)
    assert [path.read_bytes() for path in cache.iterdir()] == [right]


def test_a_cache_that_cannot_be_written_costs_only_time(model: Path, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    check_model_file(model, sha256=SHA256, cache_dir=in_the_way)


def test_a_missing_file_says_which(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"gone\.onnx"):
        check_model_file(tmp_path / "gone.onnx", sha256=SHA256, cache_dir=tmp_path)
