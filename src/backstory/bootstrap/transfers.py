"""The services that bring other stores in, and everything out, over one store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backstory.services.exporting_lines import ExportingLines
from backstory.services.importing import Importing

if TYPE_CHECKING:
    from backstory.bootstrap.app import App
    from backstory.services.exporting import Run


def importing(app: App) -> Importing:
    """Imports under the application's settings."""
    from backstory.adapters.blocking import run_blocking
    from backstory.domain.part_admission import keep_limits

    archive = app.settings.archive
    return Importing(
        app.backend,
        app.identity,
        clock=app.clock,
        ids=app.ids,
        max_chars=app.limits.max_chars,
        keep=keep_limits(attachment_bytes=archive.attachment_max_bytes, tool_passages=archive.tool_passages),
        archive=archive.enabled,
        aside=run_blocking,
    )


def exporting_lines(app: App, run: Run) -> ExportingLines:
    """Everything as lines. ``run`` runs a coroutine to its end."""
    return ExportingLines(app.backend, clock=app.clock, run=run)
