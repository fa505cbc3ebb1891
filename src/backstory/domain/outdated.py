"""Whether what was said in a session states what a memory said before it was corrected."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

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
    taken from. One that states the correction as well is not outdated."""
    was, now = correction.was, correction.now
    if now is not None and passage.message in now.provenance.messages:
        return False
    held = set(analyse(passage.text))
    terms = analyse_query(was.content)
    if now is not None and (newer := _only_in(now, was)) and newer <= held:
        return False
    share = _share(terms, held)
    if passage.message in was.provenance.messages:
        return share >= _SOME_OF_IT
    if normalise(was.content) in normalise(passage.text):
        return True
    names = {term.token for term in terms if term.is_name}
    return len(terms) >= _TELLING and share >= _MOST_OF_IT and names <= held and passage.at <= correction.at


def outdated_note(correction: Correction) -> str:
    """For people and models: that it is outdated, and what holds instead."""
    now = correction.now
    if now is None:
        return "outdated: replaced since"
    said = " ".join(now.content.split())
    said = said if len(said) <= _SHOWN_CHARS else said[: _SHOWN_CHARS - 1] + "…"
    return f"outdated: replaced by #{now.n}: {said}"


def _share(terms: list[QueryTerm], held: set[str]) -> float:
    total = sum(term.weight for term in terms)
    return sum(term.weight for term in terms if term.token in held) / total if total else 0.0


def _only_in(one: Memory, other: Memory) -> set[str]:
    return {term.token for term in analyse_query(one.content)} - set(analyse(other.content))
