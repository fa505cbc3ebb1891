"""Identifiers, and how they are made and read. Nothing here draws randomness or reads a clock."""

from __future__ import annotations

import re
from typing import NewType

MemoryId = NewType("MemoryId", str)
ChangeId = NewType("ChangeId", str)
ProjectId = NewType("ProjectId", str)
SessionId = NewType("SessionId", str)
MessageId = NewType("MessageId", str)
PartId = NewType("PartId", str)

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_NUMBER = re.compile(r"#?([1-9][0-9]{0,17})")


def make_ulid(*, time_ms: int, randomness: bytes) -> str:
    """Encode a ULID: 48 bits of milliseconds since 1970, then 80 bits of randomness (the ULID specification).

    Ids made later sort later as text. ``randomness`` is exactly 10 bytes.
    """
    if not 0 <= time_ms < 1 << 48:
        raise ValueError(f"time_ms out of range: {time_ms}")
    if len(randomness) != 10:
        raise ValueError(f"a ULID takes 10 random bytes, got {len(randomness)}")
    value = (time_ms << 80) | int.from_bytes(randomness, "big")
    return "".join(CROCKFORD[(value >> shift) & 31] for shift in range(125, -1, -5))


def is_ulid(text: str) -> bool:
    """Whether ``text`` is a ULID in its canonical upper-case form."""
    return _ULID.fullmatch(text) is not None


def parse_number(text: str) -> int | None:
    """Read ``#12`` or ``12`` as 12; anything else is None. A number has at most 18 digits (it fits 64 bits)."""
    match = _NUMBER.fullmatch(text.strip())
    return int(match.group(1)) if match else None
