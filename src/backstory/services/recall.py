"""Find the memories that answer a query, say why each is there, or say why there are none."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from backstory.domain.memory import Memory
from backstory.domain.ranking import RankingPolicy, Score, explain
from backstory.domain.relevance import Fair, judge
from backstory.domain.selection import CURRENT, WITH_SUPERSEDED, Selection
from backstory.errors import InputError, StoreError
from backstory.ports.backend import Backend
from backstory.ports.models import Embedder, SecondEmbedder
from backstory.ports.store import Use
from backstory.ports.system import Aside, Clock
from backstory.services.candidates import CandidateSearch, Found, nothing_found_yet
from backstory.services.collapsing import collapse_results
from backstory.services.query import MAX_LIMIT, MAX_QUERY_CHARS, Query, Recalled, Result, Skipped
from backstory.services.query_reading import QueryReader
from backstory.services.second_reading import SecondReader

if TYPE_CHECKING:
    from backstory.domain.doubt import Doubt
    from backstory.domain.score_parts import Part
    from backstory.services.reranking import Reranker

T = TypeVar("T")

NOTHING_HERE = "there is no memory here yet"
NOTHING_ASKED_FOR = "no memory of the kind, area, tags and time asked for shares a word or a meaning with this"


class Recall:
    """Searches memories by words and by meaning."""

    def __init__(
        self,
        backend: Backend,
        embedder: Embedder | None,
        *,
        clock: Clock,
        policy: RankingPolicy,
        no_embedder: str,
        aside: Aside | None = None,
        reranker: Reranker | None = None,
        second: SecondEmbedder | None = None,
    ) -> None:
        """``no_embedder`` says why there is no embedder, for answers that had to do without one. ``aside`` runs a
        search's work of many small reads as one; left out, each read waits for itself. ``second`` joins in where the
        embedder read the query and time is left."""
        self._memories = backend.memories
        self._doubts = backend.doubts
        self._policy = policy
        self._search = CandidateSearch(backend, policy)
        self._reader = QueryReader(backend.vectors, embedder, no_embedder=no_embedder)
        self._second_reader = SecondReader(backend.vectors, second)
        self._clock = clock
        self._aside = aside or _in_place
        self._reranker = reranker

    async def recall(self, query: Query) -> Recalled:
        """Answer a query. Counts nothing as used: see ``recall_and_count``."""
        if not 1 <= query.limit <= MAX_LIMIT:
            raise InputError(f"limit is {query.limit}; it must lie between 1 and {MAX_LIMIT}", field="limit")
        started = time.monotonic()
        text = query.text[:MAX_QUERY_CHARS].strip()
        selection = self._selection(query)
        if not text:
            return await self._browse(query, selection)
        found = nothing_found_yet(limit=query.limit)
        by_words = self._aside(partial(self._search.search_words, text, selection, found))
        if query.lexical_only or not self._reader.can_read or not _loop_runs():
            await by_words
            await self._read(text, query, found)
        else:  # search by words while the model reads the query
            import asyncio

            beside = asyncio.ensure_future(by_words)
            try:
                await self._read(text, query, found)
            except BaseException:
                beside.cancel()  # whoever gave up does not wait for a store that hangs
                await asyncio.gather(beside, return_exceptions=True)
                raise
            await beside
        scored, recalled = await self._aside(partial(self._answer, query, selection, found))
        if self._reranker is None or not scored:
            return recalled
        return await self._rerank(self._reranker, query, scored, recalled, started)

    async def recall_and_count(self, query: Query) -> Recalled:
        """Answer a query on somebody's request, and count the memories shown as recalled.

        A store that is full or busy can still be read: counting is left out then, and only the log says so.
        """
        recalled = await self.recall(query)
        if recalled.results and not self._memories.capabilities.read_only:
            shown = tuple(result.memory.id for result in recalled.results)
            use = Use(memories=shown, at=self._clock.now(), session=query.viewer.session, surfaced=False)
            try:
                await self._memories.record_use(use)
            except StoreError as error:
                import logging

                log = logging.getLogger(__name__)
                log.warning("event=count_skipped session=%s reason=%s", query.viewer.session, error)
        return recalled

    def parts(self, results: Sequence[Result], query: Query) -> list[tuple[Part, ...]]:
        """What each kind of evidence and each circumstance added to the scores of results of this query, in order."""
        from backstory.domain.score_parts import score_parts
        from backstory.domain.typed_words import wording_of

        apart = partial(
            score_parts,
            wording=wording_of(query.text),
            project=query.viewer.project,
            now=self._clock.now(),
            policy=self._policy,
        )
        return [apart(result.memory, result.score) for result in results]

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
        memories = await self._memories.select(selection, limit=query.limit)
        nothing = Score(total=0.0, similarity=None, lexical=0.0, coverage=0.0, ties=0.0)
        doubts = await self._doubts.doubts([memory.id for memory in memories])
        results = tuple(_as_found(memory, nothing, doubts.get(memory.id)) for memory in memories)
        nothing_yet = "no memory is of the kind, area, tags and time asked for" if query.is_narrowed else NOTHING_HERE
        silent = None if results else nothing_yet
        return Recalled(results=results, silent_because=silent, considered=len(results))

    async def _read(self, text: str, query: Query, found: Found) -> None:
        if query.lexical_only:
            return
        started = time.monotonic()
        read = await self._reader.read(text, within_s=query.embed_within_s)
        if isinstance(read, Skipped):
            found.skipped.append(read)
        elif read is not None:
            found.asked = read
            wait = query.embed_within_s
            left = None if wait is None else max(0.0, wait - (time.monotonic() - started))
            also = await self._second_reader.read(text, within_s=left)
            if isinstance(also, Skipped):
                found.skipped.append(also)
            else:
                found.asked_second = also

    async def _answer(self, query: Query, selection: Selection, found: Found) -> tuple[Sequence[Result], Recalled]:
        """Everything that follows once the words were searched and the query was read: all matches, and the answer."""
        await self._search.search_meaning(selection, found)
        scored = await self._search.score(found, query, selection)
        passing, silent_because = _let_through(scored, query)
        passed = collapse_results(passing[: 2 * query.limit])
        return scored, Recalled(
            results=tuple(passed[: query.limit]),
            silent_because=silent_because if scored or not query.is_narrowed else NOTHING_ASKED_FOR,
            skipped=tuple(found.skipped),
            considered=len(scored),
        )

    async def _rerank(
        self, reranker: Reranker, query: Query, scored: Sequence[Result], recalled: Recalled, started: float
    ) -> Recalled:
        """What the language model makes of the best matches; the gate's answer where it makes nothing of them.

        Asked for by name, what passed the gate follows what the model chose; unasked, only that is offered.
        """
        from backstory.services.reranking import Reranked

        passed = {result.memory.id for result in recalled.results}
        among = [*recalled.results, *(result for result in scored if result.memory.id not in passed)]
        left = None if query.embed_within_s is None else query.embed_within_s - (time.monotonic() - started)
        verdict = await reranker.rerank(query.text[:MAX_QUERY_CHARS], among, viewer=query.viewer, within_s=left)
        if verdict is None:
            return recalled
        if not isinstance(verdict, Reranked):
            return replace(recalled, skipped=(*recalled.skipped, verdict))
        behind = verdict.behind if isinstance(query.threshold, Fair) else ()
        chosen = [*verdict.chosen, *(result for result in behind if result.memory.id in passed)]
        results = collapse_results(_to_offer(chosen, query))
        silent = None if results else verdict.silent_because
        return replace(recalled, results=tuple(results[: query.limit]), silent_because=silent)


def _let_through(scored: Sequence[Result], query: Query) -> tuple[list[Result], str | None]:
    """What passes the gate, and why nothing does. Unasked, those that nobody doubts are judged by themselves first, so
    that what replaced a doubted memory is not measured by how well that one fits."""
    if not isinstance(query.threshold, Fair):
        sure = [result for result in scored if result.doubt is None]
        if len(sure) < len(scored) and (passed := judge([result.score for result in sure], query.threshold).passed):
            return [sure[position] for position in passed], None
    verdict = judge([result.score for result in scored], query.threshold)
    return _to_offer([scored[position] for position in verdict.passed], query), verdict.silent_because


def _to_offer(passed: Sequence[Result], query: Query) -> list[Result]:
    """Unasked, what is to be checked is offered only where nothing else answers: it may well be wrong by now."""
    if isinstance(query.threshold, Fair):
        return list(passed)
    return [result for result in passed if result.doubt is None] or list(passed)


def _as_found(memory: Memory, score: Score, doubt: Doubt | None) -> Result:
    return Result(memory=memory, score=score, reasons=explain(score, doubt), doubt=doubt)


async def _in_place(work: Callable[[], Coroutine[Any, Any, T]]) -> T:  # Any: nothing is sent in, nothing is yielded
    return await work()


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
