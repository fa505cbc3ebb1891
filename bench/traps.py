"""Traps: prompts for which something wrong is remembered as well. Whether it is shown, unmarked, or before the answer.

A superseded trap is worded like a memory that was replaced, a cross-project one is answered in another project too, and
a stale one asks for what an old memory says of code that is gone (``stale_rows.py``).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from backstory.adapters.code_anchors import GitCodeAnchors
from backstory.adapters.tokens import EstimatedTokens
from backstory.domain.core_slots import CORE_SLOTS
from backstory.domain.ids import MemoryId, ProjectId
from backstory.domain.ranking import RankingPolicy
from backstory.domain.relevance import Relevance
from backstory.ports.backend import Backend
from backstory.ports.models import Embedder
from backstory.services.code_check import CodeCheck
from backstory.services.context_block import ContextBlocks, ContextPolicy
from backstory.services.maintenance import Maintenance
from backstory.services.query import Query
from backstory.services.recall import Recall
from bench.asking import ANYTHING, RESULTS, StandingClock
from bench.labelled import LabelledSet, Question, fill
from bench.measures import Figures
from bench.report import table
from bench.stale_rows import PROJECT, make_repository, stale_set
from bench.stores import STORES

KINDS = ("superseded-trap", "cross-project-trap", "stale-trap")
_BLOCK = ContextPolicy(
    inject=True, by_recency=False, relevance=Relevance.BALANCED, block_budget_tokens=1200,
    snapshot_budget_tokens=1200, max_entries=8, embed_within_s=None, core_slots=CORE_SLOTS,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Trapped:
    """What one trap got: the answers, the wrong memories, what was found best first, and the lines of the block."""

    question: Question
    wrong: frozenset[str]
    found: Sequence[str]
    shown: Mapping[str, str]

    @property
    def wrong_shown(self) -> list[str]:
        return [name for name in self.shown if name in self.wrong]

    @property
    def wrong_shown_first(self) -> bool:
        """Whether something wrong is shown before the first answer; without an answer nothing is before it."""
        return self._is_above(list(self.shown))

    @property
    def wrong_found_first(self) -> bool:
        """The same of all that was found, whether the gate lets it through or not."""
        return self._is_above(self.found)

    def _is_above(self, names: Sequence[str]) -> bool:
        ranks = [place for place, name in enumerate(names) if name in self.question.answers]
        return bool(ranks) and any(name in self.wrong for name in names[: ranks[0]])


async def trap(labelled: LabelledSet, embedder: Embedder, *, store: str) -> dict[str, Figures]:
    """The figures of each kind of trap: those of the set, and the stale ones among its memories."""
    asked = [question for question in labelled.questions if question.kind in KINDS]
    trapped = await _ask(replace(labelled, questions=asked), embedder, store=store)
    trapped += await _ask(stale_set(labelled), embedder, store=store, with_code=True)
    return {kind: _figures([row for row in trapped if row.question.kind == kind]) for kind in KINDS}


def traps_as_text(traps: Mapping[str, Figures]) -> str:
    """One table for all kinds. What is wrong must not be shown without a mark, nor before the answer."""
    header = ("traps", "n", "R@1", "answer shown", "wrong shown", "unmarked", "before the answer", "ranked before it")
    return table(header, [(kind, *figures.values()) for kind, figures in traps.items()])


def _figures(rows: Sequence[Trapped]) -> Figures:
    firsts = sum(bool(row.found) and row.found[0] in row.question.answers for row in rows)
    wrong = [line for row in rows for line in (row.shown[name] for name in row.wrong_shown)]
    return {
        "n": len(rows),
        "r_at_1": round(100 * firsts / len(rows), 1) if rows else 0.0,
        "answer_shown": sum(not row.question.answers.isdisjoint(row.shown) for row in rows),
        "wrong_shown": len(wrong),
        "wrong_unmarked": sum("(check: " not in line for line in wrong),
        "wrong_shown_first": sum(row.wrong_shown_first for row in rows),
        "wrong_found_first": sum(row.wrong_found_first for row in rows),
    }


async def _ask(labelled: LabelledSet, embedder: Embedder, *, store: str, with_code: bool = False) -> list[Trapped]:
    with tempfile.TemporaryDirectory() as folder:
        backend = STORES[store].open(STORES[store].make(Path(folder)))
        names = await fill(backend, labelled)
        await Maintenance(backend, embedder, no_embedder="").embed_missing()
        clock = StandingClock(at=labelled.now)
        if with_code:
            code = make_repository(Path(folder) / PROJECT)
            await CodeCheck(backend, GitCodeAnchors(), clock=clock).check(ProjectId(PROJECT), code)
        recall = Recall(backend, embedder, clock=clock, policy=RankingPolicy(), no_embedder="")
        look = partial(_trapped, labelled, names, recall, _blocks(backend, recall, clock))
        trapped = [await look(question) for question in labelled.questions]
        await backend.memories.close()
    return trapped


def _blocks(backend: Backend, recall: Recall, clock: StandingClock) -> ContextBlocks:
    return ContextBlocks(backend, recall, clock=clock, tokens=EstimatedTokens(), policy=_BLOCK)


async def _trapped(
    labelled: LabelledSet, names: Mapping[MemoryId, str], recall: Recall, blocks: ContextBlocks, question: Question
) -> Trapped:
    query = Query(text=question.text, viewer=question.viewer(), threshold=ANYTHING, limit=RESULTS)
    found = [names[result.memory.id] for result in (await recall.recall(query)).results]
    context = await blocks.for_prompt(question.text, question.viewer())
    lines = (context.text or "").splitlines()
    shown = {
        names[item.memory]: next(line for line in lines if line.startswith(f"- [#{item.n},")) for item in context.shown
    }
    return Trapped(question=question, wrong=frozenset(_wrong(question, labelled)), found=found, shown=shown)


def _wrong(question: Question, labelled: LabelledSet) -> Iterable[str]:
    """What would mislead: whatever an answer replaced, whatever is another project's, the stale twin of an answer."""
    for memory in labelled.memories:
        if memory.id in question.answers and memory.supersedes is not None:
            yield memory.supersedes
        if memory.project not in (None, question.project):
            yield memory.id
    yield from (answer.replace("fresh", "stale") for answer in question.answers if answer.startswith("fresh "))
