"""Content that is kept once, whoever refers to it: packed for the disk, and known by the hash of what it is."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from enum import StrEnum

from backstory.domain.conversation import BlobHash, BlobRef

_LEVEL = 1  # of zlib: four times as fast as the usual 6, for a third more bytes
_WORTH_IT = 0.9  # of the size; a picture is packed already


class Packing(StrEnum):
    """How the bytes of a blob are written."""

    PLAIN = "plain"
    ZLIB = "zlib"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Content as it is kept. ``size`` is that of the content in bytes, not of ``packed``."""

    hash: BlobHash
    size: int
    packing: Packing
    packed: bytes

    def ref(self, media_type: str) -> BlobRef:
        """What a part says of it."""
        return BlobRef(hash=self.hash, size=self.size, media_type=media_type)


def make_blob(content: bytes) -> Blob:
    """Pack content, where that helps. Cost: about 15 ms for a megabyte."""
    packed = zlib.compress(content, _LEVEL)
    helps = len(packed) < _WORTH_IT * len(content)
    return Blob(
        hash=hash_of(content),
        size=len(content),
        packing=Packing.ZLIB if helps else Packing.PLAIN,
        packed=packed if helps else content,
    )


def content_of(blob: Blob) -> bytes:
    """The content, byte for byte. Raises ValueError where it is not what was packed; never unpacks more than ``size``
    says."""
    try:
        content = blob.packed if blob.packing is Packing.PLAIN else _unpacked(blob)
    except zlib.error as error:
        raise ValueError(f"blob {blob.hash} cannot be unpacked: {error}") from error
    if len(content) != blob.size or hash_of(content) != blob.hash:
        raise ValueError(f"blob {blob.hash} is not what was kept")
    return content


def hash_of(content: bytes) -> BlobHash:
    """The name of a content."""
    return BlobHash(hashlib.blake2b(content, digest_size=32).hexdigest())


def _unpacked(blob: Blob) -> bytes:
    return zlib.decompressobj().decompress(blob.packed, blob.size + 1)
