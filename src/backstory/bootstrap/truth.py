"""The services that keep memories true: distilling, contradictions, consolidation, feedback, trust and forgetting.

Apart from ``app.py``: none of them takes part in a recall.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backstory.bootstrap.app import App
    from backstory.services.code_check import CodeCheck
    from backstory.services.conflicts import Conflicts
    from backstory.services.consolidate import Consolidate
    from backstory.services.dreaming import Dreaming
    from backstory.services.dreaming_inspection import DreamInspection
    from backstory.services.dreaming_summary import Summaries, SummaryWriter
    from backstory.services.erasure import Erasing
    from backstory.services.explanation import Explanation
    from backstory.services.feedback import Feedback
    from backstory.services.pruning import Pruning
    from backstory.services.review import Review
    from backstory.services.secrets_sweep import SecretsSweep


class Truth:
    """These services over one application, each made, and its modules imported, when it is first asked for."""

    def __init__(self, app: App) -> None:
        self._app = app

    @cached_property
    def code_check(self) -> CodeCheck:
        from backstory.adapters.code_anchors import GitCodeAnchors
        from backstory.services.code_check import CodeCheck

        return CodeCheck(self._app.backend, GitCodeAnchors(), clock=self._app.clock)

    @cached_property
    def conflicts(self) -> Conflicts:
        from backstory.services.conflicts import Conflicts

        app = self._app
        return Conflicts(app.backend, app.reference, clock=app.clock, ids=app.ids, limits=app.limits)

    @cached_property
    def feedback(self) -> Feedback:
        from backstory.services.feedback import Feedback

        app = self._app
        return Feedback(app.backend.memories, app.reference, clock=app.clock, ids=app.ids)

    @cached_property
    def explanation(self) -> Explanation:
        """Works scores out anew; the language model is not asked."""
        from backstory.domain.ranking import RankingPolicy
        from backstory.domain.relevance import Relevance
        from backstory.services.explanation import Explanation
        from backstory.services.recall import Recall

        app = self._app
        recall = Recall(
            app.backend,
            app.embedder,
            clock=app.clock,
            policy=RankingPolicy(),
            no_embedder=app.no_embedder,
            second=app.second,
        )
        relevance = Relevance(app.settings.recall.relevance)
        return Explanation(recall, app.inspection, app.backend.conversations, relevance=relevance)

    @cached_property
    def pruning(self) -> Pruning:
        from backstory.domain.pruning import PruningPolicy
        from backstory.services.pruning import Pruning

        app = self._app
        policy = PruningPolicy(at_most=app.settings.dream.max_facts)
        return Pruning(app.backend.memories, clock=app.clock, ids=app.ids, policy=policy)

    @cached_property
    def dreaming(self) -> Dreaming:
        from backstory.bootstrap.dreams import dreaming

        return dreaming(self._app, self._summary_writer)

    @cached_property
    def dreams(self) -> DreamInspection:
        from backstory.services.dreaming_inspection import DreamInspection

        return DreamInspection(self._app.backend.dreams, clock=self._app.clock)

    @cached_property
    def summaries(self) -> Summaries | None:
        """The summaries that sessions begin with; None where they are hidden."""
        if not self._app.settings.dream.summary:
            return None
        from backstory.services.dreaming_summary import Summaries

        return Summaries(self._app.backend.dreams, self._app.backend.memories, clock=self._app.clock)

    @cached_property
    def _summary_writer(self) -> SummaryWriter | None:
        from backstory.bootstrap.dreams import summary_writer

        return summary_writer(self._app)

    @cached_property
    def erasing(self) -> Erasing:
        from backstory.services.erasure import Erasing

        app = self._app
        return Erasing(app.backend, app.reference, app.remember, clock=app.clock, ids=app.ids)

    @cached_property
    def secrets_sweep(self) -> SecretsSweep:
        from backstory.services.secrets_sweep import SecretsSweep

        app = self._app
        return SecretsSweep(app.backend, clock=app.clock, ids=app.ids)

    @cached_property
    def consolidate(self) -> Consolidate:
        from backstory.adapters.blocking import run_blocking
        from backstory.adapters.near_vectors import NearVectors
        from backstory.services.consolidate import Consolidate
        from backstory.services.near_in_meaning import NearInMeaning

        app = self._app
        meaning = NearInMeaning(
            app.backend.vectors,
            app.embedder,
            no_embedder=app.no_embedder,
            nearness=NearVectors,
            aside=run_blocking,
        )
        return Consolidate(
            app.backend.memories,
            meaning,
            clock=app.clock,
            ids=app.ids,
            aside=run_blocking,
        )

    @cached_property
    def review(self) -> Review:
        from backstory.services.review import Review

        app = self._app
        return Review(
            app.backend.memories, app.reference, app.remember, clock=app.clock, ids=app.ids, text=app.backend.text
        )
