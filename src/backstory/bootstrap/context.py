"""What puts memories, and quotes of earlier sessions, beside prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backstory.adapters.tokens import EstimatedTokens
from backstory.bootstrap.on_demand import SummariesOnDemand
from backstory.domain.relevance import Relevance
from backstory.services.context_block import ContextBlocks, ContextPolicy

if TYPE_CHECKING:
    from backstory.bootstrap.app import App
    from backstory.services.evidence_quotes import EvidenceQuotes
    from backstory.services.shared_observations import SharedObservations

# The rest of a prompt's deadline, once the query's vector is there: two searches, composing and one durable write.
RESERVED_MS = 300
JUDGED_WITHIN_S = 0.15
"""Half of what a host waits for a snapshot."""


def context_blocks(app: App) -> ContextBlocks:
    """The composer of blocks and snapshots, under the settings of ``context``."""
    context = app.settings.context
    policy = ContextPolicy(
        inject=context.inject,
        by_recency=context.selection == "recency",
        relevance=Relevance(app.settings.recall.relevance),
        block_budget_tokens=context.block_budget_tokens,
        snapshot_budget_tokens=context.snapshot_budget_tokens,
        max_entries=context.max_entries,
        core_slots=context.core_slots,
        embed_within_s=max(context.deadline_ms - RESERVED_MS, context.deadline_ms / 2) / 1000,
    )
    return ContextBlocks(
        app.backend,
        app.recall,
        clock=app.clock,
        tokens=EstimatedTokens(),
        policy=policy,
        quotes=_quotes(app),
        summaries=SummariesOnDemand(app) if app.settings.dream.summary else None,
        shared=_shared(app),
    )


def _quotes(app: App) -> EvidenceQuotes | None:
    """What is quoted of earlier sessions where memories are silent; None unless that is switched on."""
    if not app.settings.context.evidence:
        return None
    from backstory.services.evidence_quotes import EvidenceQuotes

    return EvidenceQuotes(
        app.evidence,
        app.backend.memories,
        app.backend.conversations,
        clock=app.clock,
        tokens=EstimatedTokens(),
        budget_tokens=app.settings.context.block_budget_tokens,
    )


def _shared(app: App) -> SharedObservations | None:
    """What other sessions of the project noted; None unless that is switched on, and sessions are observed."""
    settings = app.settings
    observed = settings.session.strategy == "observations" and settings.archive.enabled
    if not observed or settings.observation.scope != "project":
        return None
    from backstory.adapters.blocking import run_blocking
    from backstory.services.shared_observations import SharedObservations

    return SharedObservations(
        app.backend.digests,
        app.backend.conversations,
        app.backend.memories,
        clock=app.clock,
        tokens=EstimatedTokens(),
        budget_tokens=settings.observation.shared_tokens,
        within_s=JUDGED_WITHIN_S,
        aside=run_blocking,
    )
