"""Content kept once: packed where that helps, and never taken for what it is not."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import replace

import pytest

from backstory.domain.blob import Packing, content_of, hash_of, make_blob


@pytest.mark.parametrize("content", [b"", b"a", b"log line\n" * 9000, bytes(range(256)), "ünïcödé ☃".encode()])
def test_a_content_comes_back_byte_for_byte(content: bytes) -> None:
    blob = make_blob(content)
    assert content_of(blob) == content
    assert (blob.hash, blob.size) == (hash_of(content), len(content))


def test_what_does_not_get_smaller_is_kept_as_it_is() -> None:
    picture = b"".join(hashlib.sha256(bytes([n])).digest() for n in range(200))
    assert make_blob(picture).packing is Packing.PLAIN
    assert make_blob(b"log line\n" * 100).packing is Packing.ZLIB
    assert len(make_blob(b"log line\n" * 9000).packed) < 1000


def test_equal_contents_have_one_hash_and_others_another() -> None:
    assert make_blob(b"one").hash == make_blob(b"one").hash != make_blob(b"One").hash
    assert len(make_blob(b"").hash) == 64


def test_what_is_not_what_was_kept_is_refused() -> None:
    blob = make_blob(b"log line\n" * 100)
    for spoilt in (
        replace(blob, packed=blob.packed[:-9]),
        replace(blob, packed=b"no zlib"),
        replace(blob, size=5),
        replace(blob, packing=Packing.PLAIN),
        replace(blob, packed=make_blob(b"log fine\n" * 100).packed),
    ):
        with pytest.raises(ValueError, match="blob"):
            content_of(spoilt)


def test_a_content_that_claims_to_be_small_is_not_unpacked_beyond_its_size() -> None:
    bomb = replace(make_blob(b"x"), packing=Packing.ZLIB, packed=zlib.compress(bytes(50_000_000), 9))
    with pytest.raises(ValueError, match="blob"):
        content_of(bomb)
