"""Whether what was said in a session states what a memory said before it was corrected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from backstory.domain.contradiction import disagree
from backstory.domain.evidence_passages import EvidencePassage
from backstory.domain.memory import Memory
from backstory.domain.near_duplicates import Verdict, compare
from backstory.domain.text import QueryTerm, analyse, analyse_query, normalise

_TELLING = 3
"""With fewer words than these a statement is in many a passage by chance."""
_MOST_OF_IT = 0.85
_SOME_OF_IT = 1 / 3
_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """A memory as it was, ``at`` when that ended, and the one that holds instead: None where the reader may not see it.

    ``surely`` tells that the two contradict each other; otherwise they may be two wordings of the same.
    """

    was: Memory
    now: Memory | None
    at: datetime

    @property
    def surely(self) -> bool:
        """Whether the two cannot both hold."""
        return self.now is not None and disagree(self.was.content, self.now.content) is not None

    @property
    def is_one(self) -> bool:
        """Whether anything was corrected at all; the same in other signs is none."""
        return self.now is None or compare(self.was.content, self.now.content).verdict is not Verdict.SAME


def is_outdated(passage: EvidencePassage, correction: Correction) -> bool:
    """Whether a passage says what was corrected: in the same words or nearly all of them, or as the message that it was
    taken from. One that states the correction as well is not outdated. Cost: some µs for one that shares few words, so
    that many can be tried."""
    was, now = correction.was, correction.now
    terms, held = _terms(was.content), _held(passage.text)
    share = _share(terms, held)
    if passage.message in was.provenance.messages:
        states = share >= _SOME_OF_IT
    else:
        states = share >= _MOST_OF_IT and (_verbatim(passage, was) or _before(passage, correction, terms, held))
    if not states:
        return False
    if now is None:
        return True
    newer = _only_in(now, was)
    return passage.message not in now.provenance.messages and not (newer and newer <= held)


def _verbatim(passage: EvidencePassage, was: Memory) -> bool:
    return normalise(was.content) in normalise(passage.text)


def _before(passage: EvidencePassage, correction: Correction, terms: Sequence[QueryTerm], held: frozenset[str]) -> bool:
    """Whether a passage with nearly all the words was said before the correction, and names all that is named."""
    names = (term.token for term in terms if term.is_name)
    return passage.at <= correction.at and len(terms) >= _TELLING and all(name in held for name in names)


def outdated_note(correction: Correction) -> str:
    """For people and models: that it is outdated, and what holds instead."""
    now = correction.now
    if now is None:
        return "outdated: replaced since"
    said = " ".join(now.content.split())
    said = said if len(said) <= _SHOWN_CHARS else said[: _SHOWN_CHARS - 1] + "…"
    return f"outdated: replaced by #{now.n}: {said}"


@lru_cache(maxsize=4096)
def _terms(text: str) -> tuple[QueryTerm, ...]:
    """The words of a memory, by which thousands are tried against each passage."""
    return tuple(analyse_query(text))


@lru_cache(maxsize=256)
def _held(text: str) -> frozenset[str]:
    return frozenset(analyse(text))


def _share(terms: Sequence[QueryTerm], held: frozenset[str]) -> float:
    total = there = 0.0
    for term in terms:
        total += term.weight
        there += term.weight if term.token in held else 0.0
    return there / total if total else 0.0


def _only_in(one: Memory, other: Memory) -> frozenset[str]:
    return frozenset(term.token for term in _terms(one.content)) - _held(other.content)
