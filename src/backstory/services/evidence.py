"""Find what was said in earlier sessions: the messages that answer a question, quoted with what stands beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo

from backstory.domain.evidence import (
    BY_WORDS,
    WITH_MEANING,
    EvidenceScore,
    EvidenceWeights,
    answers,
    explain_evidence,
    score_messages,
)
from backstory.domain.evidence_hints import date_hint, detail_hint, speaker_hint
from backstory.domain.evidence_passages import EvidencePassage, LoadedPassage, PassageNumber
from backstory.domain.evidence_signs import EvidenceStatistics, PassageSigns, read_signs
from backstory.domain.ids import SessionId
from backstory.domain.scope import Viewer
from backstory.domain.text import QueryTerm, analyse_query
from backstory.domain.time_range import TimeRange
from backstory.errors import InputError, ModelError
from backstory.ports.evidence import EvidenceIndex, PassageSearch, Sight
from backstory.ports.models import Embedder, EmbeddingModel, Vector
from backstory.ports.system import Clock

MAX_QUESTION_CHARS = 2000
MAX_LIMIT = 100
CANDIDATES = 200
"""Passages taken from each index; they come with their neighbours."""

_SHARE_OF_BEST = 0.4
"""A message that is far by itself is still shown when what stands around it lifts it this near to the best."""

NO_EVIDENCE = "no session here holds any of it"
NO_QUESTION = "nothing was asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceResult:
    """A message that answers: its best passage, those directly before and after it, how well (0 to 1) and why."""

    passage: EvidencePassage
    before: EvidencePassage | None
    after: EvidencePassage | None
    score: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFound:
    """The answer: messages, best first; or none and why. ``skipped`` says which part of the search was left out."""

    results: tuple[EvidenceResult, ...] = ()
    silent_because: str | None = None
    skipped: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """Everything known about the candidates of one question, before any weighing. ``with_meaning`` tells whether
    vectors took part."""

    signs: Sequence[PassageSigns] = ()
    loaded: Sequence[LoadedPassage] = ()
    with_meaning: bool = False
    skipped: str | None = None


@dataclass(slots=True)
class _Meaning:
    """What the vectors say: the model and the question's vector, and the cosines of the nearest passages."""

    model: EmbeddingModel | None = None
    vector: Vector | None = None
    nearest: dict[PassageNumber, float] = field(default_factory=dict)
    skipped: str | None = None


class EvidenceRecall:
    """Searches the archived messages by words and by meaning."""

    def __init__(
        self, index: EvidenceIndex, embedder: Embedder | None, *, clock: Clock, zone: tzinfo, no_embedder: str
    ) -> None:
        """``zone`` is where the person is, for the days that questions name. ``no_embedder`` says why there is none."""
        self._index = index
        self._embedder = embedder
        self._clock = clock
        self._zone = zone
        self._no_embedder = no_embedder

    async def search(
        self,
        question: str,
        *,
        viewer: Viewer,
        limit: int = 10,
        session: SessionId | None = None,
        said: TimeRange | None = None,
        lexical_only: bool = False,
    ) -> EvidenceFound:
        """Messages of the sessions that the viewer may read, or of one of them; ``said`` bounds the time.

        An empty question finds nothing. Raises InputError for a limit outside 1 to 100.
        """
        if not 1 <= limit <= MAX_LIMIT:
            raise InputError(f"limit is {limit}; it must lie between 1 and {MAX_LIMIT}", field="limit")
        sight = Sight(viewer=viewer, session=session, said=said)
        found = await self.signs(question, sight=sight, lexical_only=lexical_only)
        if not found.signs:
            silent = NO_EVIDENCE if question.strip() else NO_QUESTION
            return EvidenceFound(silent_because=silent, skipped=found.skipped)
        scores = score_messages(found.signs, weights_for(found))
        if not any(answers(score.best) for score in scores):
            return EvidenceFound(silent_because=_too_far(scores), skipped=found.skipped)
        floor = _SHARE_OF_BEST * scores[0].total
        passed = [score for score in scores if answers(score.best) or score.total >= floor]
        quote = _Quotes(found.loaded)
        return EvidenceFound(results=tuple(quote.result(score) for score in passed[:limit]), skipped=found.skipped)

    async def signs(self, question: str, *, sight: Sight, lexical_only: bool = False) -> Signs:
        """The candidates of a question and what speaks for each, not weighed yet."""
        text = question[:MAX_QUESTION_CHARS].strip()
        if not text:
            return Signs()
        terms = analyse_query(text)
        tokens = [term.token for term in terms]
        words = await self._index.search_text(tokens, sight, limit=CANDIDATES)
        meaning = _Meaning() if lexical_only else await self._meaning(text, sight)
        numbers = list(dict.fromkeys([*words.numbers, *meaning.nearest]))
        loaded = await self._index.neighbours(numbers, tokens=tokens)
        cosines = await self._cosines(meaning, loaded)
        return Signs(
            signs=self._read(text, terms, loaded, words, cosines),
            loaded=loaded,
            with_meaning=bool(cosines),
            skipped=meaning.skipped,
        )

    def _read(
        self,
        question: str,
        terms: Sequence[QueryTerm],
        loaded: Sequence[LoadedPassage],
        words: PassageSearch,
        cosines: Mapping[PassageNumber, float],
    ) -> list[PassageSigns]:
        return read_signs(
            terms,
            loaded,
            statistics=EvidenceStatistics(
                documents=words.documents, mean_length=words.mean_length, frequency=words.frequency
            ),
            cosines=cosines,
            speaker=speaker_hint(question, [item.passage for item in loaded]),
            date=date_hint(question, now=self._clock.now(), zone=self._zone),
            detail=detail_hint(question),
        )

    async def _meaning(self, text: str, sight: Sight) -> _Meaning:
        if self._embedder is None:
            return _Meaning(skipped=self._no_embedder)
        try:
            counts = await self._index.vector_counts()
            if not counts:
                return _Meaning(skipped="nothing that was said is embedded yet")
            model = await self._embedder.model()
            if model.name not in counts:
                others = ", ".join(sorted(counts))
                return _Meaning(skipped=f"embedded by {others}, not yet by {model.name}")
            from backstory.domain.admission import admit_evidence  # not needed by a search by words

            vector = (await self._embedder.embed([admit_evidence(text)]))[0]
            if vector is None:
                return _Meaning()
            nearest = await self._index.search_vectors(vector, sight, model=model, limit=CANDIDATES)
        except ModelError as error:
            return _Meaning(skipped=str(error))
        return _Meaning(model=model, vector=vector, nearest=dict(nearest))

    async def _cosines(self, meaning: _Meaning, loaded: Sequence[LoadedPassage]) -> Mapping[PassageNumber, float]:
        if meaning.model is None or meaning.vector is None:
            return {}
        others = [item.passage.number for item in loaded if item.passage.number not in meaning.nearest]
        return meaning.nearest | dict(await self._index.similarities(meaning.vector, others, model=meaning.model))


def weights_for(found: Signs) -> EvidenceWeights:
    """The weights that fit what took part in the search."""
    return WITH_MEANING if found.with_meaning else BY_WORDS


class _Quotes:
    """Passages with their neighbours."""

    def __init__(self, loaded: Sequence[LoadedPassage]) -> None:
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
            reasons=explain_evidence(score.best),
        )


def _too_far(scores: Sequence[EvidenceScore]) -> str:
    best = scores[0].best
    near = f"its meaning {best.cosine:.2f}, " if best.cosine is not None else ""
    return f"what comes nearest is too far: {near}{best.coverage:.0%} of the question's words"
