"""Which memories a model is shown when it distils a session, and which of them it repeats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from backstory.domain.context_block import quote
from backstory.domain.memory import (
    Deleted,
    Memory,
    Sensitivity,
    Source,
    Superseded,
    Visibility,
    is_offerable,
    status_name,
)
from backstory.domain.provenance import Origin, is_injectable
from backstory.domain.said_words import said_words
from backstory.domain.selection import CURRENT
from backstory.domain.text import analyse_query
from backstory.domain.truncation import truncate_chars

MAX_SHOWN = 60
MAX_SHOWN_CHARS = 8_000
_ENTRY_CHARS = 300
Words = tuple[str, ...]


def most_fitting(memories: Sequence[Memory], text: str, *, max_chars: int = MAX_SHOWN_CHARS) -> list[Memory]:
    """The memories that a model is shown beside ``text``: those with most words in common first, then the newest.

    Never one that may not reach a model unasked: from outside, private, local-only or forgotten; nor one that was
    replaced. At most ``MAX_SHOWN``, and as many as ``max_chars`` of their lines hold. Linear in all the texts.
    """
    said = words(text)
    offerable = [memory for memory in memories if is_offerable(memory) and status_name(memory.status) in CURRENT]
    by_date = sorted(offerable, key=lambda memory: (memory.times.confirmed, memory.n), reverse=True)
    fitting = sorted(by_date, key=lambda memory: share(memory.content, said), reverse=True)
    kept: list[Memory] = []
    for memory in fitting[:MAX_SHOWN]:
        max_chars -= len(known_line(memory)) + 1
        if max_chars < 0:
            break
        kept.append(memory)
    return kept


def keyed(memories: Iterable[Memory]) -> Mapping[str, Memory]:
    """Memories by the names under which a model is shown them: ``m12`` for ``#12``."""
    return {f"m{memory.n}": memory for memory in memories}


def known_line(memory: Memory) -> str:
    """A memory as one line: its name, what it is, who it is from, and its text, which cannot end the line."""
    who = "stated by the user" if memory.origin is Origin.USER else "kept by the agent"
    label = [memory.kind.value, "everywhere" if memory.visibility is Visibility.GLOBAL else "this project"]
    label.append("distilled" if memory.source is Source.DREAMED else who)
    text = quote(memory.content)
    cut = text if len(text) <= _ENTRY_CHARS else truncate_chars(text, _ENTRY_CHARS) + "…"
    return f"- m{memory.n} ({', '.join(label)}): {cut}"


def words(text: str) -> frozenset[str]:
    """The telling words of a text, as a search has them."""
    return frozenset(term.token for term in analyse_query(text))


def share(text: str, said: frozenset[str]) -> float:
    """Which share of a text's telling words is among those said, from 0 to 1; 0 for a text without any."""
    own = words(text)
    return len(own & said) / len(own) if own else 0.0


class Known:
    """All memories of a place, whatever their state and whoever may read them, by what they say."""

    def __init__(self, memories: Iterable[Memory]) -> None:
        self._by_words: dict[Words, list[Memory]] = {}
        for memory in memories:
            if found := said_words(memory.content):
                self._by_words.setdefault(found, []).append(memory)

    def repeated(self, text: str, *, said_at: datetime, origin: Origin) -> Memory | None:
        """The memory that says the same already; or said it, and was forgotten or replaced after this was said.

        What outside text said first, and nobody is offered, is no reason to leave out what the user or the agent say.
        """
        same = [one for one in self._by_words.get(said_words(text), []) if not _waits_beside(one, origin)]
        current = (memory for memory in same if not isinstance(memory.status, Deleted | Superseded))
        gone = (memory for memory in same if _went_after(memory, said_at))
        return next(current, None) or next(gone, None)


def _waits_beside(memory: Memory, origin: Origin) -> bool:
    """Whether a memory only waits for review, and says nothing against a statement of this origin."""
    is_outside = memory.sensitivity is Sensitivity.NORMAL and not is_injectable(memory.origin)
    return is_outside and is_injectable(origin) and not isinstance(memory.status, Deleted)


def _went_after(memory: Memory, moment: datetime) -> bool:
    return isinstance(memory.status, Deleted | Superseded) and memory.status.since >= moment
