"""The services that keep memories true: distilling, contradictions, consolidation, feedback, trust and forgetting.

Apart from ``app.py``: none of them takes part in a recall.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backstory.bootstrap.app import App


class Truth:
    """These services over one application, each made, and its modules imported, when it is first asked for."""

    def __init__(self, app: App) -> None:
        self._app = app
