"""Candidates from both indexes, and how well each answers. Whether they answer at all is judged in ``recall.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from backstory.domain.ids import MemoryId
from backstory.domain.memory import Visibility
from backstory.domain.ranking import Meaning, RankingPolicy, explain, match, rank_key, score_memory
from backstory.domain.second_model import as_first
from backstory.domain.selection import Selection, selects
from backstory.domain.text import analyse_query
from backstory.domain.typed_words import wording_of
from backstory.domain.word_match import (
    NO_WORDS,
    WordMatch,
    WordStatistics,
    agreement,
    match_words,
    weigh_query,
    weigh_words,
)
from backstory.errors import ModelError
from backstory.ports.backend import Backend
from backstory.ports.index import TextSearch
from backstory.ports.models import EmbeddingModel, Vector
from backstory.services.query import Query, Result, Skipped
from backstory.services.query_reading import ReadQuery
from backstory.services.second_reading import PART, ReadBySecond

# Asked of each index at the least, and compared word by word: 60 and 40 of them ranked no labelled prompt otherwise.
_CANDIDATES = 48
_COMPARED = 32
_RESERVED = 16  # more of each index for the project's own, where global ones may have crowded them out
_LOADED_AT_LEAST = 24  # of the candidates, before it is known which others circumstances may bring among the best


@dataclass(slots=True)
class Found:
    """What the indexes found: for each memory its word match and its similarity.

    ``no_words`` is the match of a memory that holds none of the query's words; ``wanted`` how many each index is asked
    for. ``beyond`` is the most that the similarity of a memory outside the list can be, None where the list has all.
    ``second`` and ``beyond_second`` are the same by a second model, on the scale of the first; ``usual_second`` is the
    mean of its nearest. ``own`` are memories of the viewer's project that were looked for apart.
    """

    wanted: int = _CANDIDATES
    words: dict[MemoryId, WordMatch] = field(default_factory=dict)
    no_words: WordMatch = NO_WORDS
    statistics: WordStatistics | None = None
    similarity: dict[MemoryId, float] = field(default_factory=dict)
    beyond: float | None = None
    second: dict[MemoryId, float] = field(default_factory=dict)
    beyond_second: float | None = None
    usual_second: float = 0.0
    own: set[MemoryId] = field(default_factory=set)
    asked: ReadQuery | None = None
    asked_second: ReadBySecond | None = None
    skipped: list[Skipped] = field(default_factory=list)


Scale = Callable[[float], float]
"""From a model's cosine to a similarity."""


class _Candidate(NamedTuple):
    """A memory the indexes found, and what its words and its meaning say for it."""

    id: MemoryId
    words: WordMatch
    meaning: Meaning | None
    evidence: float


def nothing_found_yet(*, limit: int) -> Found:
    """Where a search for ``limit`` results begins."""
    return Found(wanted=max(_CANDIDATES, limit))


class CandidateSearch:
    """Searches by words and by meaning, and scores what was found."""

    def __init__(self, backend: Backend, policy: RankingPolicy) -> None:
        self._backend = backend
        self._policy = policy

    async def search_words(self, text: str, selection: Selection, found: Found) -> None:
        terms = analyse_query(text)
        tokens = [term.token for term in terms]
        search = await self._backend.text.search_text(tokens, selection, limit=found.wanted)
        found.statistics = _statistics(search)
        asked = weigh_query(terms, found.statistics)
        found.no_words = match_words(asked, held={}, length=0)
        found.words = {hit.id: match_words(asked, held=hit.matched, length=hit.length) for hit in search.hits}
        told = [match(words, None, self._policy) for words in found.words.values()]
        if len(told) >= found.wanted and self._may_crowd(told, selection):
            reserved = await self._backend.text.search_text(tokens, _of_project(selection), limit=_RESERVED)
            for hit in reserved.hits:
                found.words.setdefault(hit.id, match_words(asked, held=hit.matched, length=hit.length))
                found.own.add(hit.id)

    async def search_meaning(self, selection: Selection, found: Found) -> None:
        if found.asked is None:
            return
        asked, second = found.asked, found.asked_second
        try:
            vector = asked.passage.vector if asked.passage.query is None else asked.passage.query
            found.similarity, found.beyond = await self._nearest(vector, asked.model, selection, found)
        except ModelError as error:
            found.skipped.append(Skipped(part="meaning", reason=str(error)))
            return
        if second is None:
            return
        try:
            found.second, found.beyond_second = await self._nearest(
                second.vector, second.model, selection, found, on_scale=as_first
            )
            found.usual_second = sum(found.second.values()) / max(1, len(found.second))
        except ModelError as error:
            found.skipped.append(Skipped(part=PART, reason=str(error)))

    async def _nearest(
        self, vector: Vector, model: EmbeddingModel, selection: Selection, found: Found, *, on_scale: Scale = float
    ) -> tuple[dict[MemoryId, float], float | None]:
        """The nearest memories by one model, and the most that the similarity of any other can be, None where there are
        no others; those of the project that were looked for apart are noted as ``own``."""
        search = partial(self._backend.vectors.search_vectors, vector, model=model)
        hits = await search(selection, limit=found.wanted)
        near = {hit.id: on_scale(hit.similarity) for hit in hits}
        if len(hits) < found.wanted:
            return near, None
        beyond = on_scale(hits[-1].similarity)
        if self._may_crowd([self._policy.similarity * similarity for similarity in near.values()], selection):
            reserved = await search(_of_project(selection), limit=_RESERVED)
            near |= {hit.id: on_scale(hit.similarity) for hit in reserved}
            found.own |= {hit.id for hit in reserved}
        return near, beyond

    def _may_crowd(self, evidence: Sequence[float], selection: Selection) -> bool:
        """Whether a memory of the project may stand behind the end of a full list and yet be best, since it is the
        project's own: the list is so level that this outweighs it, and not of chance matches alone."""
        viewer = selection.viewer
        if viewer.project is None or viewer.all_projects or selection.visibility is not None:
            return False
        best, lead = max(evidence), self._policy.own_project
        return best > 2.0 * lead and best - min(evidence) < lead

    async def score(self, found: Found, query: Query, selection: Selection) -> list[Result]:
        candidates = await self._compare_words(found, _candidates(found, self._policy))
        first = max(2 * query.limit, _LOADED_AT_LEAST)
        results = await self._load(candidates[:first], query, selection)
        results += await self._load(_that_may_rise(candidates[first:], results, query, self._policy), query, selection)
        return sorted(results, key=lambda result: rank_key(result.memory, result.score), reverse=True)

    async def _load(self, candidates: Sequence[_Candidate], query: Query, selection: Selection) -> list[Result]:
        if not candidates:
            return []
        ids = [candidate.id for candidate in candidates]
        memories = await self._backend.memories.get(ids)
        doubts = await self._backend.doubts.doubts(ids)
        question = query.text.rstrip().endswith(("?", "？"))
        wording = wording_of(query.text)
        results = []
        for candidate in candidates:
            memory = memories.get(candidate.id)
            if memory is None or not selects(selection, memory):
                continue  # forgotten, replaced or made local-only since the index found it
            doubt = doubts.get(memory.id)
            score = score_memory(
                memory,
                words=candidate.words,
                meaning=candidate.meaning,
                question=question,
                doubt=doubt,
                project=query.viewer.project,
                now=selection.now,
                policy=self._policy,
            )
            results.append(Result(memory=memory, score=score, reasons=explain(score, doubt, wording), doubt=doubt))
        return results

    async def _compare_words(self, found: Found, candidates: list[_Candidate]) -> list[_Candidate]:
        """The candidates in order again, after the words of the first were compared with the query's, where the model
        gave vectors of words."""
        words = None if found.asked is None else found.asked.passage.words
        if found.asked is None or words is None or found.statistics is None:
            return candidates
        if found.own:
            lead = self._policy.own_project
            candidates = sorted(candidates, key=lambda c: c.evidence + lead * (c.id in found.own), reverse=True)
        ids = [candidate.id for candidate in candidates[:_COMPARED]]
        compared = await self._backend.vectors.compare_words(words, ids, model=found.asked.model)
        weights = weigh_words(words.words, found.statistics)
        for position, candidate in enumerate(candidates[:_COMPARED]):
            agreed = compared.get(candidate.id)
            if agreed is not None and candidate.meaning is not None:
                meaning = Meaning(
                    similarity=candidate.meaning.similarity,
                    agreement=agreement(agreed.nearest, weights),
                    answered=agreed.answered,
                    words=agreed.words,
                    second=candidate.meaning.second,
                    apart=candidate.meaning.apart,
                )
                candidates[position] = _candidate(candidate.id, candidate.words, meaning, self._policy)
        return sorted(candidates, key=_by_evidence, reverse=True)


def _candidates(found: Found, policy: RankingPolicy) -> list[_Candidate]:
    """All that the indexes found, the best matches first as far as can be told without comparing words."""
    # with a full list of neighbours, a memory outside it is at most as near as the last one; with a short list, it has
    # no vector yet and is judged by its words, or by the first model alone
    candidates = []
    for memory_id in dict.fromkeys([*found.words, *found.similarity, *found.second]):
        similarity = found.similarity.get(memory_id, found.beyond)
        second = found.second.get(memory_id, found.beyond_second)
        apart = None if second is None else second - found.usual_second
        meaning = None if similarity is None else Meaning(similarity=similarity, second=second, apart=apart)
        candidates.append(_candidate(memory_id, found.words.get(memory_id, found.no_words), meaning, policy))
    return sorted(candidates, key=_by_evidence, reverse=True)


def _that_may_rise(
    rest: Sequence[_Candidate], results: Sequence[Result], query: Query, policy: RankingPolicy
) -> Sequence[_Candidate]:
    """Those of the rest that circumstances may bring among the best; which these are is known of loaded ones only."""
    if len(results) < query.limit:
        return rest
    last = sorted((result.score.total for result in results), reverse=True)[query.limit - 1]
    return [candidate for candidate in rest if policy.as_score(candidate.evidence + policy.most_ties) >= last]


def _candidate(memory_id: MemoryId, words: WordMatch, meaning: Meaning | None, policy: RankingPolicy) -> _Candidate:
    return _Candidate(memory_id, words, meaning, match(words, meaning, policy))


def _of_project(selection: Selection) -> Selection:
    return replace(selection, visibility=Visibility.PROJECT)


def _by_evidence(candidate: _Candidate) -> float:
    return candidate.evidence


def _statistics(search: TextSearch) -> WordStatistics:
    return WordStatistics(documents=search.documents, mean_length=search.mean_length, frequency=search.frequency)
