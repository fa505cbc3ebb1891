"""Reasons to check a memory before it is believed: what it names in the repository is gone, or is not what it was."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from backstory.domain.ids import MemoryId


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Why a memory should be checked. Derived from the repository, never a decision: it goes when the reason goes.

    ``anchor`` is what the memory names, as it names it (``src/cart.py``); ``reason`` a short sentence about it, for
    people and models (``src/cart.py is gone since 2026-03-02``).
    """

    memory: MemoryId
    anchor: str
    reason: str
    since: datetime
