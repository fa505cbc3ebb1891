"""The words of a query as they were typed, for people: tokens are stems, and "retri" reads like a mistake.

How a text becomes tokens is in ``text.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
    typed: dict[str, str] = {}
    parts: dict[str, frozenset[str]] = {}
    for word in dict.fromkeys(text[:_READ_CHARS].split()):
        tokens = analyse(word)
        if not tokens:
            continue
        whole, *rest = tokens
        bare = word.strip(_AROUND)
        if rest and len(whole) != len(bare):
            continue  # several words without a blank between them: its tokens stand for themselves
        typed.setdefault(whole, bare)
        parts.setdefault(whole, frozenset(rest) - {whole})
    return Wording(typed=typed, parts=parts)


AS_TOKENS = Wording()
"""For a query whose text is not at hand: tokens are shown as they are."""
