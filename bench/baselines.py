"""Simple systems to compare with, over the same memories and prompts: grep, SQLite FTS5, and the cosine alone.

All of them see what Backstory sees: memories of the prompt's project and those that hold everywhere, superseded ones
hidden. What a prompt does not match is not returned.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing

from backstory.domain.stopwords import STOP_WORDS
from backstory.ports.models import Embedder
from bench.labelled import EVERY_PROJECT, LabelledSet, Question, Stored
from bench.measures import Answer

RESULTS = 20
_WORD = re.compile(r"[^\W_]+")
Scores = Sequence[float | None]
"""One for each memory of a set, in its order; None where nothing matches."""


def grep(labelled: LabelledSet) -> list[Answer]:
    """``grep -i`` for each word of the prompt: the more of them a memory holds, the better; ties in stored order."""
    texts = [memory.text.lower() for memory in labelled.memories]

    def score(question: Question) -> Scores:
        words = asked_words(question.text)
        return [float(count) if (count := sum(word in text for word in words)) else None for text in texts]

    return _answers(labelled, score)


def fts5(labelled: LabelledSet) -> list[Answer]:
    """SQLite FTS5 (porter over unicode61): the prompt's words by OR, ranked by bm25 over all memories."""
    with closing(sqlite3.connect(":memory:")) as raw:
        raw.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = 'porter unicode61 remove_diacritics 2')")
        rows = [(place, memory.text) for place, memory in enumerate(labelled.memories)]
        raw.executemany("INSERT INTO texts(rowid, text) VALUES (?, ?)", rows)

        def score(question: Question) -> Scores:
            scores: list[float | None] = [None] * len(rows)
            if words := asked_words(question.text):
                match = " OR ".join(f'"{word}"' for word in words)
                for place, rank in raw.execute("SELECT rowid, bm25(texts) FROM texts WHERE texts MATCH ?", (match,)):
                    scores[place] = -rank
            return scores

        return _answers(labelled, score)


async def dense(labelled: LabelledSet, embedder: Embedder) -> list[Answer]:
    """The cosine of the local model, over the vectors that Backstory stores."""
    import numpy

    model = await embedder.model()
    nothing = [0.0] * model.dimension
    memories = numpy.array([vector or nothing for vector in await embedder.embed([m.text for m in labelled.memories])])
    asked = numpy.array([vector or nothing for vector in await embedder.embed([q.text for q in labelled.questions])])
    cosines = dict(zip((question.id for question in labelled.questions), (asked @ memories.T).tolist(), strict=True))
    return _answers(labelled, lambda question: cosines[question.id])


def asked_words(text: str) -> list[str]:
    """The words of a prompt without stop words, each once."""
    words = dict.fromkeys(_WORD.findall(text.lower()))
    return [word for word in words if word not in STOP_WORDS]


def _answers(labelled: LabelledSet, score: Callable[[Question], Scores]) -> list[Answer]:
    outdated = {memory.supersedes for memory in labelled.memories}
    current = [(place, memory) for place, memory in enumerate(labelled.memories) if memory.id not in outdated]
    return [_answer(question, score(question), current) for question in labelled.questions]


def _answer(question: Question, scores: Scores, current: Iterable[tuple[int, Stored]]) -> Answer:
    everywhere = question.project == EVERY_PROJECT
    hits = [
        (value, memory.id)
        for place, memory in current
        if (everywhere or memory.project in (None, question.project)) and (value := scores[place]) is not None
    ]
    hits.sort(key=lambda hit: hit[0], reverse=True)
    found = tuple(name for _, name in hits[:RESULTS])
    return Answer(question=question, found=found, certainty=hits[0][0] if hits else -math.inf)
