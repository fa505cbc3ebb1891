"""A number with its noun, for people. What is counted, and whether it is worth saying, is up to who says it."""

from __future__ import annotations


def counted(count: int, one: str, many: str | None = None) -> str:
    """Such as "1 message" or "2,000 messages"; ``many`` where it is not ``one`` and an s."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def memories_counted(count: int) -> str:
    """How many memories."""
    return counted(count, "memory", "memories")
