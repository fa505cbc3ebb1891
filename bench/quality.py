"""How well recall ranks, and how well the gate tells prompts with an answer from prompts without: through the services.

Every prompt is asked of the real store (SQLite), the real embedder and ``services/recall.py``, once with meaning and
once by words alone.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

import anyio

from backstory.adapters.embedders.minilm import MiniLmEmbedder, availability
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.ranking import RankingPolicy, Score
from backstory.domain.relevance import UNASKED, Fair, Relevance, confidence, judge
from backstory.services.maintenance import Maintenance
from backstory.services.query import Query
from backstory.services.recall import Recall
from bench.gate_fit import Fitted, fit_gates
from bench.labelled import LabelledSet, Question, fill, read_sets
from bench.report import Report, Unavailable, table

ANYTHING = Fair(similarity=-1.0, coverage=0.0)
MODES = ("hybrid", "words")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A prompt and what came back: the set's ids of the memories, best first, each with its score."""

    question: Question
    found: Sequence[str]
    scores: Sequence[Score]

    @property
    def has_answer(self) -> bool:
        return bool(self.question.grades)

    @property
    def certainty(self) -> float:
        """How sure the gate is of its best memory; 0 when nothing was found or asked."""
        return max((confidence(score) for score in self.scores if score.asked), default=0.0)

    def offered(self, relevance: Relevance) -> list[str]:
        """What would be said unasked."""
        return [self.found[place] for place in judge(self.scores, UNASKED[relevance]).passed]


@dataclass(frozen=True, slots=True, kw_only=True)
class _StandingClock:
    at: datetime

    def now(self) -> datetime:
        return self.at


def run(options: argparse.Namespace) -> Report:
    """Measure both sets in both modes."""
    if (missing := availability()) is not None:
        raise Unavailable(missing)
    sets = read_sets(options.data)
    asked = {(labelled.name, mode): anyio.run(partial(ask, labelled, mode=mode)) for labelled in sets for mode in MODES}
    figures: dict[str, object] = {
        f"{name}/{mode}": {"ranking": ranking(rows), "gate": gate(rows)} for (name, mode), rows in asked.items()
    }
    parts = [_ranking_table(asked), _gate_table(asked), *(_by_kind(name, asked[name]) for name in asked)]
    if options.fit:
        fitted = {mode: _fit(asked, mode) for mode in MODES}
        figures["fit"] = {mode: fit.as_figures() for mode, fit in fitted.items()}
        parts += [fit.as_text(mode) for mode, fit in fitted.items()]
    return Report(
        bench="quality", store=options.store, data=options.data.name, figures=figures, text="\n\n".join(parts)
    )


async def ask(labelled: LabelledSet, *, mode: str, limit: int = 20) -> list[Asked]:
    """Ask every prompt of a set; ``limit`` results of each, 1 to 100."""
    with tempfile.TemporaryDirectory() as folder:
        backend = open_sqlite(Path(folder) / "quality.db")
        embedder = MiniLmEmbedder(None) if mode == "hybrid" else None
        names = await fill(backend, labelled)
        await Maintenance(backend, embedder, no_embedder="").embed_missing()
        clock = _StandingClock(at=labelled.now)
        recall = Recall(backend, embedder, clock=clock, policy=RankingPolicy(), no_embedder="")
        asked = []
        for question in labelled.questions:
            query = Query(text=question.text, viewer=question.viewer(), limit=limit, threshold=ANYTHING)
            recalled = await recall.recall(replace(query, with_superseded=question.history))
            found = [names[result.memory.id] for result in recalled.results]
            asked.append(Asked(question=question, found=found, scores=[result.score for result in recalled.results]))
        await backend.memories.close()
    return asked


def ranking(asked: Sequence[Asked]) -> dict[str, float]:
    """R@1 (the first answers), R@5 (share of the answers among five) and MRR, in per cent; prompts about what no longer
    holds are left out."""
    rows = [row for row in asked if row.question.answers and not row.question.history]
    return {
        "r_at_1": _percent([row.found[:1] != [] and row.found[0] in row.question.answers for row in rows]),
        "r_at_5": _percent([_share_within(row, 5) for row in rows]),
        "mrr": _percent([_reciprocal_rank(row) for row in rows]),
        "n": len(rows),
    }


def gate(asked: Sequence[Asked]) -> dict[str, object]:
    """How the gate tells the two kinds of prompt apart, and what it does at each setting."""
    rows = [row for row in asked if not row.question.history]
    yes = [row for row in rows if row.has_answer]
    no = [row for row in rows if not row.has_answer]
    settings = {relevance.value: _setting(yes, no, relevance) for relevance in Relevance}
    auc = area_under_curve([row.certainty for row in yes], [row.certainty for row in no])
    return {"auc": round(auc, 3), "with_answer": len(yes), "without": len(no), **settings}


def _setting(yes: Sequence[Asked], no: Sequence[Asked], relevance: Relevance) -> dict[str, float]:
    offered = [row.offered(relevance) for row in yes]
    spoken = [(row, said) for row, said in zip(yes, offered, strict=True) if said]
    return {
        "answered": _percent([bool(said) for said in offered]),
        "silent_without_answer": _percent([not row.offered(relevance) for row in no]),
        "right_among_said": _percent([bool(row.question.answers & set(said)) for row, said in spoken]),
        "memories_said": round(sum(len(said) for _, said in spoken) / max(1, len(spoken)), 2),
    }


def area_under_curve(higher: Sequence[float], lower: Sequence[float]) -> float:
    """The chance that one of ``higher`` is above one of ``lower``; equal ones count half."""
    wins = sum((one > other) + 0.5 * (one == other) for one in higher for other in lower)
    return wins / (len(higher) * len(lower))


def _share_within(row: Asked, count: int) -> float:
    return len(row.question.answers & set(row.found[:count])) / len(row.question.answers)


def _reciprocal_rank(row: Asked) -> float:
    return next((1 / rank for rank, name in enumerate(row.found, 1) if name in row.question.answers), 0.0)


def _percent(values: Sequence[float]) -> float:
    return round(100 * sum(values) / len(values), 1) if values else 0.0


Measured = Mapping[tuple[str, str], Sequence[Asked]]


def _ranking_table(asked: Measured) -> str:
    rows = [(f"{name}, {mode}", *ranking(rows).values()) for (name, mode), rows in asked.items()]
    return table(("ranking", "R@1", "R@5", "MRR", "n"), rows)


def _gate_table(asked: Measured) -> str:
    rows = []
    for (name, mode), measured in asked.items():
        figures = gate(measured)
        for relevance in Relevance:
            setting = figures[relevance.value]
            assert isinstance(setting, dict)
            rows.append((f"{name}, {mode}, {relevance.value}", figures["auc"], *setting.values()))
    return table(("gate", "AUC", "answered", "silent if none", "right if said", "said"), rows)


def _by_kind(name: tuple[str, str], asked: Sequence[Asked]) -> str:
    """For each kind of prompt: how it ranks, and how often the balanced gate speaks."""
    kinds: dict[str, list[Asked]] = {}
    for row in asked:
        kinds.setdefault(_kind(row.question), []).append(row)
    rows = [
        (kind, ranking(rows)["r_at_1"], ranking(rows)["r_at_5"], _spoken(rows), len(rows))
        if rows[0].has_answer
        else (kind, "", "", _spoken(rows), len(rows))
        for kind, rows in sorted(kinds.items(), key=_answerable_first)
    ]
    return table((", ".join(name), "R@1", "R@5", "speaks", "n"), rows)


def _kind(question: Question) -> str:
    if question.history:
        return "history"
    return f"{question.kind} {question.sub}".strip()


def _answerable_first(item: tuple[str, list[Asked]]) -> tuple[bool, str]:
    return not item[1][0].has_answer, item[0]


def _spoken(rows: Sequence[Asked]) -> float:
    return _percent([bool(row.offered(Relevance.BALANCED)) for row in rows])


def _fit(asked: Measured, mode: str) -> Fitted:
    """Fit the gate of one mode on both sets. Folds are projects; the smaller set is a fold of its own.

    With meaning, the label is whether the prompt has an answer at all. By words alone it is whether the best memory is
    of use, since a prompt whose answer shares no word with it has to stay silent.
    """
    label: Callable[[Asked], bool] = _best_is_useful if mode == "words" else _has_answer
    best, labels, folds = [], [], []
    for (name, asked_mode), rows in asked.items():
        for row in rows:
            if asked_mode == mode and row.scores and not row.question.history:
                best.append(row.scores[0])
                labels.append(label(row))
                folds.append(f"{name}/{row.question.project}")
    return fit_gates(best, labels, folds, by_words=mode == "words")


def _has_answer(row: Asked) -> bool:
    return row.has_answer


def _best_is_useful(row: Asked) -> bool:
    return row.found[0] in row.question.grades
