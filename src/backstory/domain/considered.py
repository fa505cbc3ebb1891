"""What came near a prompt, and why it was shown or kept back.

Which memories come near is the indexes'; what passes is ``relevance.py``'s. Here the decision is put into words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from backstory.domain.ids import MemoryId, SessionId
from backstory.domain.memory import Memory, Sensitivity, Visibility
from backstory.domain.provenance import is_injectable
from backstory.domain.ranking import Score
from backstory.domain.relevance import Sure, Threshold, passes, sureness


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """One memory that came near a prompt. ``shown`` tells whether the block has it; ``because`` why, in a few words."""

    memory: Memory
    score: Score
    shown: bool
    because: str


def weigh_up(
    candidates: Sequence[tuple[Memory, Score]],
    *,
    threshold: Threshold,
    shown: Collection[MemoryId],
    session: SessionId | None,
) -> list[Considered]:
    """Each candidate (best first, as recalled now) with what became of it, in the same order.

    ``shown`` are those that the prompt's block has: it may be older than what is known now. ``session`` is the one in
    which the prompt was typed.
    """
    barred = {memory.id: _barred(memory, session) for memory, _ in candidates}
    offered = [score.total for memory, score in candidates if not barred[memory.id] and passes(score, threshold)]
    best = max(offered, default=0.0)
    weighed = []
    for memory, score in candidates:
        is_shown = memory.id in shown
        because = sureness(score, threshold) if is_shown else barred[memory.id] or _kept_back(score, threshold, best)
        weighed.append(Considered(memory=memory, score=score, shown=is_shown, because=because))
    return weighed


def _kept_back(score: Score, threshold: Threshold, best: float) -> str:
    if not passes(score, threshold):
        return f"too weak: {sureness(score, threshold)}"
    if isinstance(threshold, Sure) and max(score.total, score.undoubted) < threshold.beside_best * best:
        return f"far behind the best ({score.total:.2f} beside {best:.2f})"
    return f"would be shown by what is known now ({sureness(score, threshold)}), where there is room"


def _barred(memory: Memory, session: SessionId | None) -> str | None:
    """Why a memory is never offered unasked in a session, however well it fits."""
    if memory.sensitivity is Sensitivity.LOCAL_ONLY:
        return "local-only: it reaches no model"
    if memory.sensitivity is Sensitivity.PRIVATE:
        return "private: found by a search, never offered unasked"
    if not is_injectable(memory.origin):
        return f"from {memory.origin.value}: found by a search, never offered unasked"
    if memory.visibility is Visibility.SESSION and memory.session != session:
        return "of another session"
    return None
