"""What a block says beside a prompt: the memories that were recalled and fit its budget, or why there is none.

Freezing it, and what is done where a store or a model fails, is ``context_block.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backstory.domain.context_block import Block, recall_block
from backstory.domain.conversation import ShownMemory
from backstory.domain.ids import ProjectId
from backstory.domain.scope import Viewer
from backstory.domain.selection import Selection
from backstory.ports.backend import Backend
from backstory.ports.system import Clock, TokenCounter
from backstory.services.query import Query, Recalled, Result
from backstory.services.recall import Recall


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A block for one prompt: its text, or None and why; and what was found on the way."""

    text: str | None
    shown: tuple[ShownMemory, ...] = ()
    silent_because: str | None = None


class PromptBlockComposer:
    """Composes blocks of at most ``budget_tokens`` and ``max_entries`` memories."""

    def __init__(
        self,
        backend: Backend,
        recall: Recall,
        *,
        clock: Clock,
        tokens: TokenCounter,
        budget_tokens: int,
        max_entries: int,
    ) -> None:
        self._backend = backend
        self._recall = recall
        self._clock = clock
        self._tokens = tokens
        self._budget_tokens = budget_tokens
        self._max_entries = max_entries

    async def compose(self, recalled: Recalled, query: Query) -> Context:
        """The block of what was recalled for a query. Raises what the store raises."""
        if not recalled.results:
            return Context(text=None, silent_because=await self.why_silent(recalled, query.viewer))
        block = recall_block(
            [result.memory for result in recalled.results],
            budget_tokens=self._budget_tokens,
            max_entries=self._max_entries,
            count_tokens=self._tokens.count,
            here=query.viewer.project,
            project_name=await self.project_names(),
            doubts={result.memory.id: result.doubt for result in recalled.results if result.doubt is not None},
        )
        if block is None:
            return Context(text=None, silent_because="no memory fits into the budget of the block")
        return Context(text=block.text, shown=self._shown(block, recalled.results, query))

    def _shown(self, block: Block, results: Sequence[Result], query: Query) -> tuple[ShownMemory, ...]:
        by_id = {result.memory.id: result for result in results}
        shown = [by_id[memory.id] for memory in block.shown]
        return tuple(
            ShownMemory(
                memory=result.memory.id,
                n=result.memory.n,
                score=round(result.score.total, 4),
                reason="; ".join(result.reasons),
                parts=tuple((part.name, round(part.value, 3)) for part in parts),
            )
            for result, parts in zip(shown, self._recall.parts(shown, query), strict=True)
        )

    async def why_silent(self, recalled: Recalled, viewer: Viewer) -> str | None:
        """Why nothing was recalled, and that there is more here than was asked, where there is."""
        selection = Selection(viewer=viewer, now=self._clock.now(), offerable=False)
        left_out = await self._backend.memories.select(selection, limit=1)
        if not left_out:
            return recalled.silent_because
        return f"{recalled.silent_because}; what is imported, from outside or private was left out, as always unasked"

    async def project_names(self) -> Callable[[ProjectId], str]:
        """What each project is called in a text."""
        projects = await self._backend.projects.projects()
        return lambda project_id: projects[project_id].name if project_id in projects else "unknown"
