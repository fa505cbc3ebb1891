"""The services that keep what was said in sessions, and let go of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backstory.bootstrap.app import App
    from backstory.services.conversation import Conversations
    from backstory.services.retention import Retention


def conversations(app: App) -> Conversations:
    """What takes messages in, under the settings of ``archive`` and ``capture``."""
    from backstory.adapters.blocking import run_blocking
    from backstory.domain.part_admission import keep_limits
    from backstory.services.conversation import Conversations

    archive = app.settings.archive
    return Conversations(
        app.backend.conversations,
        app.remember,
        clock=app.clock,
        archive=archive.enabled,
        capture=app.settings.capture.enabled,
        aside=run_blocking,
        keep=keep_limits(attachment_bytes=archive.attachment_max_bytes, tool_passages=archive.tool_passages),
    )


def retention(app: App) -> Retention:
    """What removes what was said longer ago than it is kept."""
    from backstory.services.retention import Retention

    return Retention(
        app.backend.conversations,
        app.backend.digests,
        clock=app.clock,
        days=app.settings.archive.retention_days,
    )
