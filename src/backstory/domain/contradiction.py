"""Whether two memories contradict each other, and what becomes of those that do.

Precise rather than complete: statements about different things are no contradiction, however alike their words are.
Whether texts say the same is in ``near_duplicates.py``.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from backstory.domain.clause import clauses
from backstory.domain.disagreement import Disagreement, differ, moved_on
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Active, Conflicted, Kind, Memory, Tier
from backstory.domain.near_duplicates import Verdict, compare
from backstory.domain.provenance import Origin, trust
from backstory.domain.restatement import readers
from backstory.domain.said_words import is_spaced

__all__ = ["Disagreement", "contradicts", "disagree", "flagged", "may_question", "resolved", "stands_firm"]

EVIDENCE_MAX_CHARS = 500
TOO_FAR_IN_MEANING = 0.25
"""Cosine of all-MiniLM-L6-v2 below which texts are about different things, whatever their words."""
LONGEST_CHARS = 2000
"""What is longer is no single statement."""
_MOST_CLAUSES = 4
_PASSING = frozenset({Kind.STATUS, Kind.EPISODIC})
"""Kinds that tell of a moment: the next of them is news, not a contradiction."""


def disagree(a: str, b: str, *, similarity: float | None = None) -> Disagreement | None:
    """In what two statements contradict each other; None where they do not, or not for certain.

    They do where they say the same of one thing but for a value (a number, path, name, weekday), a "not" or an
    opposite, or where one expressly rejects what the other says. ``similarity`` is the cosine of their vectors, where
    there is one. Scripts without gaps are not judged. About 0.1 ms for two sentences.
    """
    if max(len(a), len(b)) > LONGEST_CHARS:
        return None
    if not (is_spaced(a) and is_spaced(b)) or (similarity is not None and similarity < TOO_FAR_IN_MEANING):
        return None
    found = moved_on(a, b) or next(
        (
            found
            for one in clauses(a)[:_MOST_CLAUSES]
            for other in clauses(b)[:_MOST_CLAUSES]
            if (found := differ(one, other)) is not None
        ),
        None,
    )
    if found is None or compare(a, b, similarity=similarity).verdict is Verdict.SAME:
        return None
    return found


def contradicts(a: Memory, b: Memory, *, similarity: float | None = None) -> Disagreement | None:
    """Like ``disagree``, for memories: those for the same readers, about the same area, that tell no passing moment."""
    if a.id == b.id or readers(a) != readers(b) or not _PASSING.isdisjoint({a.kind, b.kind}):
        return None
    if (a.tier is Tier.TEMPORARY) is not (b.tier is Tier.TEMPORARY) or (a.area and b.area and a.area != b.area):
        return None
    return disagree(a.content, b.content, similarity=similarity)


def flagged(memory: Memory, *, evidence: str, against: MemoryId | None, now: datetime) -> Memory:
    """A memory put in question by another, or by what became of its source; unchanged where it is not current or is
    in conflict with one already."""
    match memory.status:
        case Active():
            pass
        case Conflicted(against=None) if against is not None:
            pass
        case _:
            return memory
    return replace(memory, status=Conflicted(evidence=evidence[:EVIDENCE_MAX_CHARS], since=now, against=against))


def resolved(memory: Memory) -> Memory:
    """A conflicted memory that is believed again; any other is unchanged."""
    return replace(memory, status=Active()) if isinstance(memory.status, Conflicted) else memory


def may_question(origin: Origin, memory: Memory) -> bool:
    """Whether a statement of this origin puts a memory in question: outside text never does that to what the user or
    the agent said."""
    return trust(origin) >= min(trust(Origin.AGENT), trust(memory.origin))


def stands_firm(memory: Memory) -> bool:
    """Whether only a person may decide against a memory: the user stated or confirmed it."""
    return memory.origin is Origin.USER
