"""Which memories a distilled fact was made from: what the agent had been shown, and went on from.

When such a memory is replaced or goes, the fact has to be looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable

from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory
from backstory.domain.provenance import Origin
from backstory.domain.said_words import BORDER, is_detail, said_words

LEAST_SHARED = 2
"""Words that a fact has in common with what it was made from, a number, path or name among them."""


def made_from(text: str, origin: Origin, shown: Iterable[Memory]) -> tuple[MemoryId, ...]:
    """The memories, of those shown to the agent, that a fact goes on from: it repeats a detail of theirs, and more.

    What the user said in their own words was made from nothing: they may well know it by themselves.
    """
    if origin is Origin.USER:
        return ()
    words = set(said_words(text)) - {BORDER}
    return tuple(memory.id for memory in shown if _goes_on_from(words, memory))


def _goes_on_from(words: set[str], memory: Memory) -> bool:
    shared = words.intersection(said_words(memory.content))
    return len(shared) >= LEAST_SHARED and any(map(is_detail, shared))
