"""The words of a query as they were typed, for people: tokens are stems, and "retri" reads like a mistake.

How a text becomes tokens is in ``text.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from backstory.domain.text import analyse

_READ_CHARS = 2000
"""So much of a query is looked at; tokens from beyond it are shown as they are."""
_AROUND = ".,;:!?\"'`()[]{}<>“”‘’«»…。、，？！"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """``typed`` has the word each token comes from, ``parts`` the tokens that a whole name is also found by."""

    typed: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def of(self, matched: Sequence[str]) -> list[str]:
        """Tokens as they were typed, in order, each word once; parts of a name that is there whole are left out."""
        within = frozenset().union(*(self.parts.get(token, frozenset()) for token in matched))
        return list(dict.fromkeys(self.typed.get(token, token) for token in matched if token not in within))


def wording_of(text: str) -> Wording:
    """How a query was typed. A token that several words give is shown as the first of them."""
    return _wording_of(text[:_READ_CHARS])


@lru_cache(maxsize=4)  # asked by each step of one recall; reading a long prompt takes milliseconds
def _wording_of(text: str) -> Wording:
    typed: dict[str, str] = {}
    parts: dict[str, frozenset[str]] = {}
    for word in dict.fromkeys(text.split()):
        bare = word.strip(_AROUND)
        tokens = analyse(word)
        for whole in (names := _whole(bare, tokens)):
            typed.setdefault(whole, bare)
            parts.setdefault(whole, frozenset(tokens) - names)
    return Wording(typed=typed, parts=parts)


def _whole(bare: str, tokens: Sequence[str]) -> frozenset[str]:
    """The tokens that stand for all of a word: as it is written, and its letters joined (``usel`` for ``useLive``).

    None where several words stand without a blank between them: their tokens are shown as they are.
    """
    joined = analyse("".join(filter(str.isalnum, bare)).lower())
    as_written = tokens[:1] if len(tokens) == 1 or (tokens and len(tokens[0]) == len(bare)) else ()
    return frozenset(as_written) | (frozenset(joined) & frozenset(tokens) if len(joined) == 1 else frozenset())


AS_TOKENS = Wording()
"""For a query whose text is not at hand: tokens are shown as they are."""
