"""Asks every prompt of a labelled set of Backstory itself: the real store, the real model, ``services/recall.py``."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from backstory.domain.ranking import RankingPolicy, Score
from backstory.domain.relevance import UNASKED, Fair, Relevance, confidence
from backstory.ports.backend import Backend
from backstory.ports.models import Embedder, SecondEmbedder
from backstory.services.maintenance import Maintenance
from backstory.services.query import Query
from backstory.services.recall import Recall
from bench.labelled import LabelledSet, Question, fill
from bench.measures import Answer
from bench.stores import STORES

ANYTHING = Fair(similarity=-1.0, coverage=0.0)
"""Lets every candidate through, so that the ranking can be seen without the gate."""
RESULTS = 20
OFFERED = 10

Prepare = Callable[[Backend], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A prompt, what came back without the gate, and what each setting of the gate would say unasked."""

    question: Question
    found: tuple[str, ...]
    scores: tuple[Score, ...]
    said: Mapping[Relevance, tuple[str, ...]]

    @property
    def answer(self) -> Answer:
        """With the gate's own certainty, that of its surest memory; 0 for a prompt that asks for nothing."""
        unsure = 0.0 if self.found else -math.inf
        certainty = max((confidence(score) for score in self.scores if score.asked), default=unsure)
        return Answer(question=self.question, found=self.found, certainty=certainty)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingClock:
    """A clock that shows the moment at which a set's prompts are asked."""

    at: datetime

    def now(self) -> datetime:
        return self.at


async def ask(
    labelled: LabelledSet,
    *,
    embedder: Embedder | None,
    store: str = "sqlite",
    prepare: Prepare | None = None,
    results: int = RESULTS,
    second: SecondEmbedder | None = None,
) -> list[Asked]:
    """Fill a new store with the set, ``prepare`` it further, and ask; without an embedder by words alone, with a second
    one by both.

    Prompts about what no longer holds are asked with superseded memories included, as such a search would be.
    """
    with tempfile.TemporaryDirectory() as folder:
        backend = STORES[store].open(STORES[store].make(Path(folder)))
        names = await fill(backend, labelled)
        if prepare is not None:
            await prepare(backend)
        await Maintenance(backend, embedder, no_embedder="", second=second).embed_missing()
        clock = StandingClock(at=labelled.now)
        recall = Recall(backend, embedder, clock=clock, policy=RankingPolicy(), no_embedder="", second=second)
        asked = []
        for question in labelled.questions:
            query = Query(text=question.text, viewer=question.viewer(), with_superseded=question.history)
            open_answer = await recall.recall(replace(query, threshold=ANYTHING, limit=results))
            said = {
                relevance: tuple(
                    names[result.memory.id]
                    for result in (await recall.recall(replace(query, threshold=threshold, limit=OFFERED))).results
                )
                for relevance, threshold in UNASKED.items()
            }
            found = tuple(names[result.memory.id] for result in open_answer.results)
            scores = tuple(result.score for result in open_answer.results)
            asked.append(Asked(question=question, found=found, scores=scores, said=said))
        await backend.memories.close()
    return asked


def settings(asked: Sequence[Asked]) -> dict[str, dict[str, float]]:
    """What each setting of ``recall.relevance`` does to the prompts: the answerable ones for which something is said,
    the others that meet silence, how often what is said holds an answer, and how many memories are said."""
    rows = [row for row in asked if not row.question.history]
    return {relevance.value: _setting(rows, relevance) for relevance in UNASKED}


def _setting(rows: Sequence[Asked], relevance: Relevance) -> dict[str, float]:
    yes = [row for row in rows if row.question.grades]
    no = [row for row in rows if not row.question.grades]
    spoken = [row for row in yes if row.said[relevance]]
    return {
        "answered_kept": _share(len(spoken), len(yes)),
        "silent_on_no_answer": _share(sum(not row.said[relevance] for row in no), len(no)),
        "right_among_said": _share(
            sum(not row.question.answers.isdisjoint(row.said[relevance]) for row in spoken), len(spoken)
        ),
        "memories_said": round(sum(len(row.said[relevance]) for row in spoken) / max(1, len(spoken)), 2),
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0
