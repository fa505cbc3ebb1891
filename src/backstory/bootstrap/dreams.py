"""What distils sessions: the services under the options of ``dream``, and the language model they may ask."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from backstory.services.dreaming import LEASE, Dreaming
from backstory.services.dreaming_journal import DreamPolicy
from backstory.services.dreaming_questions import Questions
from backstory.services.dreaming_work import Distilling
from backstory.services.repercussions import Repercussions

if TYPE_CHECKING:
    from backstory.bootstrap.app import App
    from backstory.services.dreaming_summary import SummaryWriter

_QUESTIONS = 2
"""Of one stretch, each of which may take as long as the model is given."""


def dreaming(app: App, summaries: SummaryWriter | None) -> Dreaming:
    """The distilling of sessions. Without a model in this process it goes by rules."""
    from backstory.adapters.blocking import run_blocking

    settings = app.settings
    timeout_s = settings.models.timeout_ms / 1000
    questions = Questions(
        app.text_model, timeout_s=timeout_s, max_chars=settings.dream.transcript_chars, aside=run_blocking
    )
    distilling = Distilling(
        app.backend.memories,
        app.backend.conversations,
        questions,
        Repercussions(app.backend.memories, app.backend.text),
        clock=app.clock,
        ids=app.ids,
        limits=app.limits,
        aside=run_blocking,
    )
    return Dreaming(
        app.backend.dreams,
        app.backend.memories,
        app.backend.conversations,
        distilling,
        summaries,
        app.truth.pruning,
        policy=DreamPolicy(
            enabled=settings.dream.enabled and settings.archive.enabled,
            subagents=settings.opencode.subagents,
            transcript_chars=settings.dream.transcript_chars,
        ),
        clock=app.clock,
        ids=app.ids,
        lease=LEASE + _QUESTIONS * timedelta(seconds=timeout_s),
    )


def summary_writer(app: App) -> SummaryWriter | None:
    """What writes summaries; None without a model, and where they are hidden."""
    if app.text_model is None or not app.settings.dream.summary:
        return None
    from backstory.services.dreaming_summary import SummaryWriter

    return SummaryWriter(
        app.backend.dreams,
        app.backend.memories,
        app.text_model,
        clock=app.clock,
        timeout_s=app.settings.models.timeout_ms / 1000,
    )
