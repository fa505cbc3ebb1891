"""Services that most prompts do not need, made and imported when one does: a hook that an agent waits for opens the
store for a single prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backstory.domain.ids import ProjectId
from backstory.domain.scope import Viewer
from backstory.services.wishes import Captured, Prompt, wishes

if TYPE_CHECKING:
    from backstory.bootstrap.app import App
    from backstory.domain.dream_state import Summary


class CaptureOnDemand:
    """See ``services.conversation.Conversations``, which is asked only for a prompt that asks for something."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def capture(self, prompt: Prompt, viewer: Viewer) -> Captured:
        """Store what the prompt asks to be remembered."""
        return await self._app.conversations.capture(prompt, viewer) if self.asks(prompt) else Captured()

    def asks(self, prompt: Prompt) -> bool:
        """Whether the prompt asks for anything to be remembered."""
        return self._app.settings.capture.enabled and bool(wishes(prompt))


class SummariesOnDemand:
    """See ``services.dreaming_summary.Summaries``: only the snapshot of a session has any."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def offered(self, project: ProjectId | None) -> Sequence[Summary]:
        """The summaries that may be shown in a project."""
        summaries = self._app.truth.summaries
        return [] if summaries is None else await summaries.offered(project)
