"""Whether a kept statement says what a labelled one says, as far as words can tell.

A kept statement *says* a labelled one if it holds all of its numbers and names and at least half of its other telling
words (stems, without stop words); the end of a path counts for the path. It *goes back to* a labelled one if either of
them says the other, or if it was made in messages that the label names and one of them has half of the other's telling
words, numbers and names counting twice. A label that is in another language than its session can hardly be found so.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from backstory.domain.ids import MessageId
from backstory.domain.telling_words import denies
from backstory.domain.text import analyse, analyse_query

LEAST_SHARE = 0.5


class Words(NamedTuple):
    """The numbers and names of a text, its other telling words, and all its tokens."""

    names: frozenset[str]
    others: frozenset[str]
    tokens: frozenset[str]


def says(kept: str, label: str) -> bool:
    """Whether what was kept says what is labelled."""
    there, wanted = _words(kept), _words(label)
    if not all(name in there.tokens or _end_of(name) in there.tokens for name in wanted.names):
        return False
    if not wanted.others:
        return bool(wanted.names)
    return len(wanted.others & there.tokens) >= LEAST_SHARE * len(wanted.others)


def goes_back_to(kept: str, label: str, *, messages: Collection[MessageId], sources: Collection[MessageId]) -> bool:
    """Whether what was kept is what is labelled, or a part of it."""
    if says(kept, label) or says(label, kept):
        return True
    return not set(messages).isdisjoint(sources) and max(_shared(kept, label), _shared(label, kept)) >= LEAST_SHARE


def falls_for(kept: str, label: str) -> bool:
    """Whether what was kept says what is labelled as not to be kept; as refused or denied it may be kept."""
    return says(kept, label) and (denies(label) or not denies(kept))


def _shared(text: str, other: str) -> float:
    own, there = _words(text), _words(other).tokens
    total = 2 * len(own.names) + len(own.others)
    return (2 * len(own.names & there) + len(own.others & there)) / total if total else 0.0


@lru_cache(maxsize=4096)
def _words(text: str) -> Words:
    whole = [term for term in analyse_query(text) if term.weight == 1.0]
    return Words(
        names=frozenset(term.token for term in whole if term.is_name),
        others=frozenset(term.token for term in whole if not term.is_name),
        tokens=frozenset(analyse(text)),
    )


def _end_of(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[-1]
