"""Which memories wait for a person to vouch for them, and what becomes of one that is accepted."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from backstory.domain.memory import Memory
from backstory.domain.provenance import Origin, is_injectable
from backstory.domain.restatement import is_current


def waits(memory: Memory, now: datetime) -> bool:
    """Whether a memory waits for review: current, and from outside (below ``agent``), so that it is not offered."""
    return is_current(memory, now) and not is_injectable(memory.origin)


def accepted(memory: Memory) -> Memory:
    """A memory that a person vouches for: their own words from now on. All else stays, also how it came to be."""
    return replace(memory, origin=Origin.USER)
