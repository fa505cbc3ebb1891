"""What a search of the sessions found: messages that answer, each quoted with what stands beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backstory.domain.evidence import EvidenceScore, explain_evidence
from backstory.domain.evidence_passages import EvidencePassage, LoadedPassage
from backstory.domain.typed_words import AS_TOKENS, Wording


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceResult:
    """A message that answers: its best passage, those directly before and after it, how well (0 to 1) and why.

    ``outdated`` says, where what it states was corrected since, what holds instead; ``imported_from``, where a file
    told the session, of what product the file was.
    """

    passage: EvidencePassage
    before: EvidencePassage | None
    after: EvidencePassage | None
    score: float
    reasons: tuple[str, ...]
    outdated: str | None = None
    imported_from: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFound:
    """The answer: messages, best first; or none and why. ``skipped`` says which part of the search was left out."""

    results: tuple[EvidenceResult, ...] = ()
    silent_because: str | None = None
    skipped: str | None = None


class Quotes:
    """Passages with their neighbours."""

    def __init__(self, loaded: Sequence[LoadedPassage], wording: Wording = AS_TOKENS) -> None:
        self._wording = wording
        self._passages = {item.passage.number: item.passage for item in loaded}
        self._before = {item.passage.number: item.before for item in loaded}
        self._after = {item.before: item.passage.number for item in loaded if item.before is not None}

    def result(self, score: EvidenceScore) -> EvidenceResult:
        number = score.best.passage
        before, after = self._before[number], self._after.get(number)
        return EvidenceResult(
            passage=self._passages[number],
            before=None if before is None else self._passages.get(before),
            after=None if after is None else self._passages[after],
            score=score.total,
            reasons=explain_evidence(score.best, self._wording),
        )
