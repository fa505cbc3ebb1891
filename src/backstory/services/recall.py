"""Find the memories that answer a query, say why each is there, or say why there are none."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from backstory.domain.ids import MemoryId
from backstory.domain.memory import Kind, Memory, Superseded
from backstory.domain.provenance import trust
from backstory.domain.ranking import (
    NO_WORDS,
    Meaning,
    RankingPolicy,
    Score,
    WordMatch,
    WordStatistics,
    agreement,
    explain,
    match,
    match_words,
    rank_key,
    score_memory,
    weigh_words,
)
from backstory.domain.relevance import REQUESTED, Threshold, judge
from backstory.domain.scope import Viewer
from backstory.domain.selection import CURRENT, WITH_SUPERSEDED, Selection, selects
from backstory.domain.text import QueryTerm, analyse_query
from backstory.domain.time_range import TimeRange
from backstory.errors import InputError, ModelError, StoreError
from backstory.ports.backend import Backend
from backstory.ports.index import TextSearch
from backstory.ports.models import Embedder, EmbeddingModel, Passage, WordVectors
from backstory.ports.store import Use
from backstory.ports.system import Clock

MAX_QUERY_CHARS = 2000  # more than this of a long prompt adds noise and time, not meaning
MAX_LIMIT = 100
_CANDIDATES = 60
NOTHING_HERE = "there is no memory here yet"
NOTHING_ASKED_FOR = "no memory of the kind, area, tags and time asked for shares a word or a meaning with this"
_COMPARED = 40  # candidates whose words are compared with the query's, one by one
_LOADED_AT_LEAST = 24  # of the candidates; the rest are too far behind for a tie-breaker to bring them into the results


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is looked for. An empty ``text`` browses, newest first.

    ``offerable`` leaves out what is never offered unasked. ``threshold`` says how good a match must be.
    ``embed_within_s`` bounds the wait for the query's vector; None waits.
    """

    text: str
    viewer: Viewer
    limit: int = 10
    tags: tuple[str, ...] = ()
    kinds: frozenset[Kind] = frozenset()
    area: str | None = None
    learned: TimeRange | None = None
    with_superseded: bool = False
    offerable: bool | None = None
    threshold: Threshold = REQUESTED
    lexical_only: bool = False
    embed_within_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One memory that answers, how well (0 to 1), and why."""

    memory: Memory
    score: Score
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A part of the search that could not be done, so that the answer may be poorer than usual."""

    part: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The answer: results, best first; or none and why. ``considered`` counts the candidates that were scored."""

    results: tuple[Result, ...] = ()
    silent_because: str | None = None
    skipped: tuple[Skipped, ...] = ()
    considered: int = 0


@dataclass(slots=True)
class _Evidence:
    """What the indexes found: for each memory its word match and its similarity.

    ``no_words`` is the match of a memory that holds none of the query's words.
    """

    words: dict[MemoryId, WordMatch] = field(default_factory=dict)
    no_words: WordMatch = NO_WORDS
    statistics: WordStatistics | None = None
    similarity: dict[MemoryId, float] = field(default_factory=dict)
    asked: WordVectors | None = None
    model: EmbeddingModel | None = None
    skipped: list[Skipped] = field(default_factory=list)


_Agreement = tuple[float, float]
"""How the query's words agree with a memory's, and the memory's with the query's."""
_Candidate = tuple[MemoryId, WordMatch, float | None]
"""A memory the indexes found, its word match and its similarity."""


class Recall:
    """Searches memories by words and by meaning."""

    def __init__(
        self, backend: Backend, embedder: Embedder | None, *, clock: Clock, policy: RankingPolicy, no_embedder: str
    ) -> None:
        """``no_embedder`` says why there is no embedder, for answers that had to do without one."""
        self._backend = backend
        self._embedder = embedder
        self._clock = clock
        self._policy = policy
        self._no_embedder = no_embedder
        self._searchable: str | None = None  # the model of which vectors were seen; saves counting them each time

    async def recall(self, query: Query) -> Recalled:
        """Answer a query. Counts nothing as used: see ``recall_and_count``."""
        if not 1 <= query.limit <= MAX_LIMIT:
            raise InputError(f"limit is {query.limit}; it must lie between 1 and {MAX_LIMIT}", field="limit")
        text = query.text[:MAX_QUERY_CHARS].strip()
        selection = self._selection(query)
        if not text:
            return await self._browse(query, selection)
        terms = analyse_query(text)
        evidence = _Evidence()
        await self._search(text, terms, query, selection, evidence)
        scored = await self._score(evidence, query, selection)
        verdict = judge([result.score for result in scored], query.threshold)
        passed = _collapse([scored[position] for position in verdict.passed[: 2 * query.limit]])
        return Recalled(
            results=tuple(passed[: query.limit]),
            silent_because=verdict.silent_because if scored or not _is_narrowed(query) else NOTHING_ASKED_FOR,
            skipped=tuple(evidence.skipped),
            considered=len(scored),
        )

    async def recall_and_count(self, query: Query) -> Recalled:
        """Answer a query on somebody's request, and count the memories shown as recalled.

        A store that is full or busy can still be read: counting is left out then, and only the log says so.
        """
        recalled = await self.recall(query)
        if recalled.results and not self._backend.memories.capabilities.read_only:
            shown = tuple(result.memory.id for result in recalled.results)
            use = Use(memories=shown, at=self._clock.now(), session=query.viewer.session, surfaced=False)
            try:
                await self._backend.memories.record_use(use)
            except StoreError as error:
                import logging

                log = logging.getLogger(__name__)
                log.warning("event=count_skipped session=%s reason=%s", query.viewer.session, error)
        return recalled

    def _selection(self, query: Query) -> Selection:
        return Selection(
            viewer=query.viewer,
            now=self._clock.now(),
            states=WITH_SUPERSEDED if query.with_superseded else CURRENT,
            kinds=query.kinds,
            tags=query.tags,
            area=query.area,
            learned=query.learned,
            offerable=query.offerable,
        )

    async def _browse(self, query: Query, selection: Selection) -> Recalled:
        memories = await self._backend.memories.select(selection, limit=query.limit)
        nothing = Score(total=0.0, similarity=None, lexical=0.0, coverage=0.0, ties=0.0)
        results = tuple(Result(memory=memory, score=nothing, reasons=("newest",)) for memory in memories)
        nothing_yet = "no memory is of the kind, area, tags and time asked for" if _is_narrowed(query) else NOTHING_HERE
        silent = None if results else nothing_yet
        return Recalled(results=results, silent_because=silent, considered=len(results))

    async def _search(
        self, text: str, terms: Sequence[QueryTerm], query: Query, selection: Selection, evidence: _Evidence
    ) -> None:
        """Search by words while the model reads the query, where an event loop can do both at once."""
        by_words = self._search_words(terms, selection, evidence)
        if query.lexical_only or self._embedder is None or not _loop_runs():
            await by_words
            await self._search_meaning(text, query, selection, evidence)
            return
        import asyncio

        beside = asyncio.ensure_future(by_words)
        try:
            await self._search_meaning(text, query, selection, evidence)
        finally:
            await beside

    async def _search_words(self, terms: Sequence[QueryTerm], selection: Selection, evidence: _Evidence) -> None:
        search = await self._backend.text.search_text([term.token for term in terms], selection, limit=_CANDIDATES)
        statistics = _statistics(search)
        evidence.statistics = statistics
        evidence.no_words = match_words(terms, held={}, length=0, statistics=statistics)
        for hit in search.hits:
            evidence.words[hit.id] = match_words(terms, held=hit.matched, length=hit.length, statistics=statistics)

    async def _search_meaning(self, text: str, query: Query, selection: Selection, evidence: _Evidence) -> None:
        if query.lexical_only:
            return
        if self._embedder is None:
            evidence.skipped.append(Skipped(part="meaning", reason=self._no_embedder))
            return
        try:
            model = await self._searchable_model(evidence)
            if model is None:
                return
            from backstory.domain.admission import admit_evidence  # not needed by a lexical search

            passage = await _within(self._embedder, admit_evidence(text), query.embed_within_s)
            if passage is None:
                return
            hits = await self._backend.vectors.search_vectors(passage.vector, selection, model=model, limit=_CANDIDATES)
        except ModelError as error:
            evidence.skipped.append(Skipped(part="meaning", reason=str(error)))
            return
        evidence.similarity.update((hit.id, hit.similarity) for hit in hits)
        evidence.asked, evidence.model = passage.words, model

    async def _searchable_model(self, evidence: _Evidence) -> EmbeddingModel | None:
        """The model whose vectors can be searched; None when there are none, so that no model is loaded for nothing."""
        assert self._embedder is not None
        if self._searchable is None:
            counts = await self._backend.vectors.vector_counts()
            if not counts:
                return None
            model = await self._embedder.model()
            if model.name not in counts:
                others = ", ".join(sorted(counts))
                reason = f"embedded by {others}, not yet by {model.name}; words alone for now"
                evidence.skipped.append(Skipped(part="meaning", reason=reason))
                return None
            self._searchable = model.name
        return await self._embedder.model()

    async def _score(self, evidence: _Evidence, query: Query, selection: Selection) -> list[Result]:
        candidates = self._candidates(evidence)
        agreed = await self._compare_words(evidence, [memory_id for memory_id, _, _ in candidates[:_COMPARED]])
        candidates = self._best(candidates, agreed)[: max(2 * query.limit, _LOADED_AT_LEAST)]
        memories = await self._backend.memories.get([memory_id for memory_id, _, _ in candidates])
        question = query.text.rstrip().endswith(("?", "？"))
        results = []
        for memory_id, words, similarity in candidates:
            memory = memories.get(memory_id)
            if memory is None or not selects(selection, memory):
                continue  # forgotten, replaced or made local-only since the index found it
            score = score_memory(
                memory,
                words=words,
                meaning=_meaning(similarity, agreed.get(memory_id)),
                question=question,
                project=query.viewer.project,
                now=self._clock.now(),
                policy=self._policy,
            )
            results.append(Result(memory=memory, score=score, reasons=explain(score)))
        return sorted(results, key=lambda result: rank_key(result.memory, result.score), reverse=True)

    async def _compare_words(self, evidence: _Evidence, ids: Sequence[MemoryId]) -> dict[MemoryId, _Agreement]:
        """How the words of the candidates agree with the query's, where the model gave vectors of words."""
        if evidence.asked is None or evidence.model is None or evidence.statistics is None:
            return {}
        weights = weigh_words(evidence.asked.words, evidence.statistics)
        compared = await self._backend.vectors.compare_words(evidence.asked, ids, model=evidence.model)
        return {key: (agreement(item.nearest, weights), item.answered) for key, item in compared.items()}

    def _candidates(self, evidence: _Evidence) -> list[_Candidate]:
        """All that the indexes found, the best matches first as far as can be told without comparing words."""
        # with a full list of neighbours, a memory outside it is at most as near as the last one; with a short list,
        # it has no vector yet and is judged by its words
        full = len(evidence.similarity) >= _CANDIDATES
        beyond = min(evidence.similarity.values()) if full else None
        candidates = [
            (memory_id, evidence.words.get(memory_id, evidence.no_words), evidence.similarity.get(memory_id, beyond))
            for memory_id in dict.fromkeys([*evidence.words, *evidence.similarity])
        ]
        return self._best(candidates, {})

    def _best(self, candidates: Sequence[_Candidate], agreed: Mapping[MemoryId, _Agreement]) -> list[_Candidate]:
        def evidence_for(found: _Candidate) -> float:
            memory_id, words, similarity = found
            return match(words, _meaning(similarity, agreed.get(memory_id)), self._policy)

        return sorted(candidates, key=evidence_for, reverse=True)


def _meaning(similarity: float | None, agreed: _Agreement | None) -> Meaning | None:
    if similarity is None:
        return None
    agreement_, answered = agreed or (None, None)
    return Meaning(similarity=similarity, agreement=agreement_, answered=answered)


def _loop_runs() -> bool:
    """Whether an event loop drives this; asyncio is not imported to find out, since one-shot commands do without."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _is_narrowed(query: Query) -> bool:
    return bool(query.tags or query.kinds or query.area or query.learned)


def _statistics(search: TextSearch) -> WordStatistics:
    return WordStatistics(documents=search.documents, mean_length=search.mean_length, frequency=search.frequency)


def _collapse(results: Sequence[Result]) -> list[Result]:
    """Keep one of those that say the same: what still holds, then the most trusted, then the best match; in order."""
    if len(results) < 2:
        return list(results)
    from backstory.domain.near_duplicates import collapse

    kept: dict[int, Result] = {}
    for group in collapse([result.memory.content for result in results]):
        positions = (group.kept, *group.also)
        best = max(positions, key=lambda position: _standing(results[position].memory))
        others = [results[position].memory.n for position in positions if position != best]
        kept[best] = _also_said(results[best], others)
    return [kept[position] for position in sorted(kept)]


def _standing(memory: Memory) -> tuple[bool, int]:
    return not isinstance(memory.status, Superseded), trust(memory.origin)


def _also_said(result: Result, numbers: Sequence[int]) -> Result:
    if not numbers:
        return result
    said = f"also said in {', '.join(f'#{number}' for number in sorted(numbers))}"
    return replace(result, reasons=(*result.reasons, said))


async def _within(embedder: Embedder, text: str, seconds: float | None) -> Passage | None:
    """The query as the model reads it, within a time. Raises ModelUnavailable when it took longer."""
    if seconds is None:
        return (await embedder.read([text]))[0]
    import anyio

    from backstory.errors import ModelUnavailable

    with anyio.move_on_after(seconds):
        return (await embedder.read([text]))[0]
    raise ModelUnavailable(f"the embedder did not answer within {seconds:.1f} s")
